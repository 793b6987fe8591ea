"""From any probe's argv and answer to facts: which parser reads which program, and what wins over what."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import hardware, resources, versions, xcode
from .answers import Answer, Call, Facts, calls_of
from .known_tool_errors import diagnose, noise_in

Parser = Callable[[Answer, Call], Facts]

NOT_UNDERSTOOD: Mapping[str, Any] = {"not_understood": True}


def parse_probe(
    argv: Sequence[str], stdout: str, stderr: str, exit: int | None = None, env: Mapping[str, str] | None = None
) -> Facts:
    """Return what a probe's answer tells, by the vocabulary of docs/host/recorded_macs.md, or `not_understood`.

    An error beats whatever else was printed, since what it says holds and the rest may not.

    >>> parse_probe(["xcodebuild", "-version"], "Xcode 16.1\\nBuild version 16B40\\n", "", 0)
    {'version': '16.1', 'build': '16B40', 'beta': False}
    >>> parse_probe(["sw_vers"], "no such thing", "", 0)
    {'not_understood': True}
    """
    answer = Answer.of(stdout, stderr, exit)
    calls = calls_of(argv)
    calls = tuple(Call(program=c.program, arguments=c.arguments, environ={**(env or {}), **c.environ}) for c in calls)
    noise = noise_in(answer)
    trouble = diagnose(answer, calls) if not _is_document(calls) else None
    facts: Facts = {}
    if trouble is None or trouble.get("fatal") is False:
        facts = _answers(answer, calls)
    facts = {**facts, **(trouble or {})}
    if not facts and not noise:
        return dict(NOT_UNDERSTOOD)
    return {**facts, **({"noise": noise} if noise else {})}


def _answers(answer: Answer, calls: Sequence[Call]) -> Facts:
    readers = [(parser, call) for call in calls if (parser := _reader(call)) is not None]
    if not readers:
        return _sniffed(answer)
    merged: Facts = {}
    proof_is_missing = False
    for parser, call in readers:
        facts = parser(answer, call)
        # Where the call that proves something left no word, the words of the calls before it prove nothing.
        proof_is_missing |= not facts and call.program.startswith("metal")
        if merged and facts.get("vendor"):
            facts = {key: facts[key] for key in ("clang_version", "clang_build") if key in facts}
        merged |= facts
    if proof_is_missing or _failed_silently(answer, [call for _, call in readers], merged):
        return {}
    return {key: value for key, value in merged.items() if value is not None or key in _SAID_TO_BE_NOTHING}


# Facts whose "nothing" is an answer: requested, and the line is not there.
_SAID_TO_BE_NOTHING = frozenset(
    {"value", "usable", "cpu_speed_limit", "battery_percent", "session", "gpu_cores", "git", "ccache", "sccache"}
)
_DEVELOPER_TOOLS = frozenset(
    {"xcodebuild", "xcode-select", "xcrun", "metal", "metallib", "clang", "clang++", "cc", "c++", "gcc", "g++", "ld"}
)


def _failed_silently(answer: Answer, calls: Sequence[Call], facts: Facts) -> bool:
    """Say whether a developer tool failed for a reason that we do not know: then what it printed is not an answer."""
    requested = any(call.program in _DEVELOPER_TOOLS for call in calls)
    return requested and answer.exit not in (0, None, 141) and "done" not in facts


def _is_document(calls: Sequence[Call]) -> bool:
    """Say whether the answer is a file's content: a crash report may quote any error."""
    return bool(calls) and all(call.program in ("cat", "head", "tail", "less") for call in calls)


def _reader(call: Call) -> Parser | None:
    if re.fullmatch(r"python\d*(?:\.\d+)?t?", call.program):
        return _python
    return _READERS.get(call.program) or (xcode.parse_clang if _is_clang(call.program) else None)


def _is_clang(program: str) -> bool:
    stem = program.rstrip("0123456789.-")
    return stem.endswith(("clang", "clang++")) or program in ("cc", "c++", "gcc", "g++")


def _xcodebuild(answer: Answer, call: Call) -> Facts:
    if call.has("downloadComponent", "importComponent"):
        return xcode.parse_component_download(answer)
    if call.has("showComponent"):
        return xcode.parse_component(answer)
    if call.has("showsdks"):
        return xcode.parse_show_sdks(answer)
    if call.has("checkFirstLaunchStatus"):
        return xcode.parse_first_launch(answer)
    if call.has("runFirstLaunch"):
        return xcode.parse_run_first_launch(answer)
    if call.has("version") and call.has("sdk"):
        return xcode.parse_sdk_records(answer, call)
    return xcode.parse_xcode_version(answer)


def _xcode_select(answer: Answer, call: Call) -> Facts:
    if call.has("p", "print-path"):
        return xcode.parse_developer_dir(answer, dict(call.environ))
    return xcode.parse_xcode_select_version(answer) if call.has("version", "v") else {}


def _xcrun(answer: Answer, call: Call) -> Facts:
    for options, parser in (
        (("show-sdk-path",), xcode.parse_sdk_path),
        (("show-sdk-version", "show-sdk-platform-version"), xcode.parse_sdk_version),
        (("show-sdk-build-version",), xcode.parse_sdk_build),
        (("show-sdk-platform-path",), xcode.parse_platform_path),
        (("f", "find"), xcode.parse_found_tool),
    ):
        if call.has(*options):
            return parser(answer)
    return {}


def _metal(answer: Answer, call: Call) -> Facts:
    if any(argument.startswith("-std=") for argument in call.arguments):
        return xcode.parse_metal_proof(answer)
    return xcode.parse_metal_version(answer) if call.has("version", "v") else {}


def _sw_vers(answer: Answer, call: Call) -> Facts:
    options = [argument for argument in call.arguments if argument.startswith("-")]
    return versions.parse_sw_vers_value(answer, options[0]) if options else versions.parse_sw_vers(answer)


def _uname(answer: Answer, call: Call) -> Facts:
    if call.has("m"):
        return versions.parse_machine(answer)
    option = next((argument for argument in call.arguments if argument in ("-r", "-v", "-p", "-s")), None)
    if option:
        return versions.parse_uname_value(answer, option)
    return versions.parse_uname(answer) or resources.parse_linux_kernel(answer)


def _system_profiler(answer: Answer, call: Call) -> Facts:
    facts: Facts = {}
    if any("Displays" in argument for argument in call.arguments):
        facts |= hardware.parse_displays(answer, as_document=call.has("json", "xml"))
    if any(argument in ("SPHardwareDataType", "SPSoftwareDataType") for argument in call.arguments):
        facts |= hardware.parse_hardware(answer)
    return facts


def _df(answer: Answer, call: Call) -> Facts:
    return resources.parse_df(answer, listing=not any(not word.startswith("-") for word in call.arguments))


def _pmset(answer: Answer, call: Call) -> Facts:
    if any(word in call.arguments for word in ("therm", "thermlog")):
        return resources.parse_thermal(answer)
    if any(word in call.arguments for word in ("batt", "ps")):
        return resources.parse_battery(answer)
    return resources.parse_low_power(answer)


def _launchctl(answer: Answer, call: Call) -> Facts:
    return resources.parse_session(answer) if "managername" in call.arguments else resources.parse_bootstrap(answer)


def _diskutil(answer: Answer, call: Call) -> Facts:
    return resources.parse_apfs_list(answer) if "apfs" in call.arguments else resources.parse_diskutil_info(answer)


def _python(answer: Answer, call: Call) -> Facts:
    words = " ".join(call.arguments)
    if "collect_env" in words:
        return hardware.parse_collect_env(answer)
    if "mac_ver" in words:
        return versions.parse_mac_ver(answer)
    if "platform.machine" in words:
        return versions.parse_machine(answer)
    if call.arguments[:2] == ("-m", "platform") or "platform.platform" in words:
        return versions.parse_python_platform(answer)
    return versions.parse_python_version(answer)


def _ls(answer: Answer, call: Call) -> Facts:
    if any(argument.rstrip("/").endswith("include") for argument in call.arguments):
        return resources.parse_header_folders(answer)
    return xcode.parse_xcode_paths(answer)


def _env(answer: Answer, call: Call) -> Facts:
    return resources.parse_leaks(answer) or xcode.parse_variables(answer)


def _echo(answer: Answer, call: Call) -> Facts:
    """Read `echo $SDKROOT`; what else is echoed says nothing."""
    name = next(
        (word.strip("${}") for word in call.arguments if word.strip("${}") in ("SDKROOT", "DEVELOPER_DIR")), None
    )
    return xcode.parse_variables(answer, echoed=name) if name else {}


def _document(answer: Answer, call: Call) -> Facts:
    return _sniffed(answer)


def _sniffed(answer: Answer) -> Facts:
    """Read a text whose program says nothing of its form, by its content."""
    text = answer.stdout
    if "<key>ProductVersion</key>" in text or "<key>ProductBuildVersion</key>" in text:
        return versions.parse_system_plist(text)
    if "Chipset Model" in text or '"SPDisplaysDataType"' in text:
        return hardware.parse_displays(answer)
    if '"bug_type"' in text or '"cpuType"' in text or '"os_version"' in text:
        return hardware.parse_ips(text)
    if "Code Type:" in text or "OS Version:" in text:
        return hardware.parse_crash_text(text)
    if "PyTorch version:" in text:
        return hardware.parse_collect_env(answer)
    if "MemTotal:" in text:
        return resources.parse_meminfo(answer)
    if hardware.names_a_model(text):
        return hardware.parse_hardware(answer)
    return xcode.parse_xcode_version(answer)


_READERS: Mapping[str, Parser] = {
    "xcodebuild": _xcodebuild,
    "xcode-select": _xcode_select,
    "xcrun": _xcrun,
    "mdfind": lambda answer, call: xcode.parse_xcode_paths(answer),
    "ls": _ls,
    "env": _env,
    "echo": _echo,
    "git": lambda answer, call: resources.parse_tool_version(answer, "git") if call.has("version") else {},
    "ccache": lambda answer, call: resources.parse_tool_version(answer, "ccache"),
    "sccache": lambda answer, call: resources.parse_tool_version(answer, "sccache"),
    "nproc": lambda answer, call: resources.parse_nproc(answer),
    "pkgutil": lambda answer, call: xcode.parse_receipt(answer),
    "metal": _metal,
    "metallib": lambda answer, call: xcode.parse_metallib_version(answer),
    "ld": lambda answer, call: xcode.parse_ld(answer),
    "sw_vers": _sw_vers,
    "uname": _uname,
    "sysctl": hardware.parse_sysctl,
    "system_profiler": _system_profiler,
    "ioreg": lambda answer, call: hardware.parse_ioreg(answer),
    "df": _df,
    "diskutil": _diskutil,
    "pmset": _pmset,
    "notifyutil": lambda answer, call: resources.parse_thermal_pressure(answer),
    "vm_stat": lambda answer, call: resources.parse_vm_stat(answer),
    "launchctl": _launchctl,
    "csrutil": lambda answer, call: resources.parse_csrutil(answer),
    "file": lambda answer, call: versions.parse_binary(answer),
    "cat": _document,
}
