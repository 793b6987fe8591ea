"""Macs on Linux: recorded, put together of probes, and imitated as far as that goes without root."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mps_build.common import strict_yaml
from mps_build.common.process import Captured, Command, capture
from mps_build.common.recipe import catalogue as recipe_files
from mps_build.host.host import Host, observe
from mps_build.host.macos.xcode import PROOF_MARK
from mps_build.host.probes.probers import RecordedProber
from mps_build.host.probes.recording import recording_of
from mps_build.host.probes.table import METAL_PROOF
from mps_build.host.requirements.findings import Finding
from mps_build.host.requirements.inspect import inspect

SPECIMENS = Path(__file__).parents[2] / "recorded" / "specimens"

# May be left out, never wrong; beside an error everything may but `error` and `fatal`.
DETAILS = frozenset(
    {
        "target", "installed_dir", "config_file", "sdk_names", "classic_for", "toolchain_identifier", "progress_mb",
        "suspicious", "maybe_conda", "xcode_select_version", "noise",
    }
)  # fmt: skip


def specimens(*names: str) -> list[dict[str, Any]]:
    """Return the specimens of these files."""
    rows = []
    for name in names:
        rows += strict_yaml.unchecked((SPECIMENS / f"{name}.yaml").read_text(encoding="utf-8"))
    return rows


@cache
def hosts() -> tuple[dict[str, Any], ...]:
    """Return the Macs of the specimens."""
    return tuple(specimens("hosts"))


def faults_of(answer: Mapping[str, Any], specimen: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with an answer: nothing, if it is right by the fact or by one that is acceptable too."""
    wanted = [specimen["fact"], *specimen.get("acceptable_also", [])]
    faults = [list(_faults(answer, fact)) for fact in wanted]
    return min(faults, key=len)


def lies_of(answer: Mapping[str, Any], specimen: Mapping[str, Any]) -> list[str]:
    """Return what an answer to a text that was cut says wrongly; what it does not say is not a lie."""
    wanted = [specimen["fact"], *specimen.get("acceptable_also", [])]
    lies = [list(_lies(answer, fact)) for fact in wanted]
    return min(lies, key=len)


def _faults(answer: Mapping[str, Any], fact: Mapping[str, Any]) -> Iterator[str]:
    for key, value in answer.items():
        if value is not None and (key not in fact or fact[key] != value):
            yield f"{key} is {value!r}, not {fact.get(key)!r}"
    details = DETAILS | (fact.keys() - {"error", "fatal"} if "error" in fact else set())
    for key, value in fact.items():
        if value is not None and key not in details and answer.get(key) is None:
            yield f"{key} is missing: {value!r}"


def _lies(answer: Mapping[str, Any], fact: Mapping[str, Any]) -> Iterator[str]:
    for key, value in answer.items():
        if key in ("not_understood", "complete") or value is None or value == "unknown":
            continue
        if not _says_no_more(value, fact.get(key)):
            yield f"{key} is {value!r}, not {fact.get(key)!r}"


def _says_no_more(value: Any, truth: Any) -> bool:
    """Say whether a value is the truth, or the first part of a list that is."""
    return bool(
        value == truth or (isinstance(value, list) and isinstance(truth, list) and value == truth[: len(value)])
    )


def recorded_mac(folder: Path, name: str) -> Path:
    """Write the recording of one host of the specimens, and return its path."""
    path = folder / "mac.json"
    path.write_text(json.dumps(recorded_document(name)))
    return path


def recorded_document(name: str) -> dict[str, Any]:
    """Return the recording of one host of the specimens."""
    host = next(each for each in hosts() if each["id"] == name)
    probes = [{key: probe.get(key) for key in ("argv", "stdout", "stderr", "exit")} for probe in host["probes"]]
    return {"schema": 1, "recorded_on": "2026-11-01", "tool": "test", "probes": probes}


Probe = dict[str, Any]


find_recipe = cache(recipe_files.find_recipe)


all_recipes = cache(recipe_files.all_recipes)


CLT = (
    "xcode-select: error: tool 'xcodebuild' requires Xcode, but active developer directory "
    "'/Library/Developer/CommandLineTools' is a command line tools instance\n"
)


METAL_MISSING = (
    "error: cannot execute tool 'metal' due to missing Metal Toolchain; "
    "use: xcodebuild -downloadComponent MetalToolchain\n"
)


def answered(*argv: str, stdout: str = "", stderr: str = "", exit: int | None = 0) -> Probe:
    return {"argv": list(argv), "stdout": stdout, "stderr": stderr, "exit": exit}


def under(path: str, *argv: str, **answer: Any) -> Probe:
    return answered("env", f"DEVELOPER_DIR={path}/Contents/Developer", *argv, **answer)


MAC = (
    answered("sw_vers", stdout="ProductName:\t\tmacOS\nProductVersion:\t\t26.4\nBuildVersion:\t\t25E246\n"),
    answered(
        "uname",
        "-a",
        stdout="Darwin mac.local 25.4.0 Darwin Kernel Version 25.4.0: Thu Mar 19 19:28:14 PDT 2026; "
        "root:xnu-12377.101.15~1/RELEASE_ARM64_T8132 arm64\n",
    ),
    answered(
        "sysctl",
        "hw.memsize",
        "hw.cputype",
        "hw.physicalcpu",
        "machdep.cpu.brand_string",
        stdout="hw.memsize: 25769803776\nhw.cputype: 16777228\nhw.physicalcpu: 10\n"
        "machdep.cpu.brand_string: Apple M4\n",
    ),
)


XCODE_26 = (
    answered("xcodebuild", "-version", stdout="Xcode 26.5\nBuild version 17F42\n"),
    answered("xcode-select", "-p", stdout="/Applications/Xcode_26.5.app/Contents/Developer\n"),
    answered("xcrun", "--sdk", "macosx", "--show-sdk-version", stdout="26.5\n"),
)


PROVED = answered("sh", "-c", METAL_PROOF, stdout=f"{PROOF_MARK} metal3.1\n{PROOF_MARK} metal4.0\n")


def host_of(*probes: Probe) -> Host:
    return observe(RecordedProber(recording_of({"probes": list(probes)}, name="a recording")))


def findings_of(probes: Sequence[Probe], recipe: str = "v2.15.0") -> dict[str, Finding]:
    return {finding.id: finding for finding in inspect(host_of(*probes), find_recipe(recipe))}


SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
DEVELOPER_DIR = "/Applications/Xcode 26.5.app/Contents/Developer"
# What the interpreter itself says; packages that were imported before ask these names later.
_SITE = """
import collections, os, platform, sys, sysconfig
sysconfig.get_config_vars()  # the build machine has no file of a Mac's
sys.platform = "darwin"
_U = collections.namedtuple("uname_result", "sysname nodename release version machine")
_KERNEL = "Darwin Kernel Version 24.3.0: Thu Jan  2 20:24:16 PST 2025; root:xnu-11215.81.4~3/RELEASE_ARM64_T6031"
os.uname = lambda: _U("Darwin", "mac.local", "24.3.0", _KERNEL, "arm64")
platform.system = lambda: "Darwin"
platform.machine = lambda: "arm64"
platform.mac_ver = lambda *_: ("15.3", ("", "", ""), "arm64")
"""
# A module of CPython's own on a Mac; urllib.request imports it where sys.platform is darwin.
_PROXIES = """
def _get_proxy_settings(): return {}
def _get_proxies(): return {}
"""
_LLVM = {"otool": "llvm-otool", "lipo": "llvm-lipo", "install_name_tool": "llvm-install-name-tool"}


# Apple's otool takes -m (names are no archive members), LLVM's does not know it.
_DIALECT = {"otool": 'for word; do shift; [ "$word" = -m ] || set -- "$@" "$word"; done\n'}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImitatedMac:
    """Where it lies: `calls` has a line for each call of a tool that delocate uses."""

    folder: Path
    python: Path
    tools: Path
    calls: Path

    def environ(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("HOME", "MPS_BUILD_CACHE", "PIP_INDEX_URL") if name in os.environ}
        pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        path = os.pathsep.join([str(self.tools), "/usr/bin", "/bin", "/usr/sbin", "/sbin"])
        return {**kept, **pip, "PATH": path, "MPS_BUILD_WORK": str(self.folder / "work"), **more}

    def run(self, command: str, *arguments: str, timeout_seconds: float = 600, **environ: str) -> Captured:
        """Run one command of the tool's, as `mps-build COMMAND ...` on a Mac."""
        argv = (str(self.python), "-m", "mps_build", command, *arguments)
        call = Command(argv=argv, cwd=self.folder, environ=self.environ(**environ))
        return capture(call, timeout_seconds=timeout_seconds)


def imitated_mac(folder: Path, *, packages: Path | None = None) -> ImitatedMac:
    """Make the Mac in a folder.

    Args:
        packages: a folder with delocate; None leaves it out, as a broken installation would.
    """
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "python")], check=True)
    site = next((folder / "python" / "lib").glob("python*/site-packages"))
    ours = [path for path in sys.path if path.endswith("site-packages")]
    places = [str(SCRIPTS), *([str(packages)] if packages else []), *ours]
    (site / "mac.pth").write_text("".join(f"{place}\n" for place in places), encoding="utf-8")
    (site / "sitecustomize.py").write_text(_SITE, encoding="utf-8")
    (site / "_scproxy.py").write_text(_PROXIES, encoding="utf-8")
    mac = ImitatedMac(
        folder=folder, python=folder / "python" / "bin" / "python", tools=folder / "tools", calls=folder / "calls"
    )
    mac.tools.mkdir()
    mac.calls.touch()
    for name, body in {**_answers(), **_apple(mac.calls)}.items():
        (mac.tools / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (mac.tools / name).chmod(0o755)
    return mac


def llvm_tools() -> dict[str, str] | None:
    """Return LLVM's programs for Apple's names, or None where one is missing (Debian: apt install llvm)."""
    places = [*map(str, sorted(Path("/usr/lib").glob("llvm-*/bin"), reverse=True)), os.environ.get("PATH", "")]
    found = {name: shutil.which(llvm, path=os.pathsep.join(places)) for name, llvm in _LLVM.items()}
    return {name: path for name, path in found.items() if path} if all(found.values()) else None


def _answers() -> dict[str, str]:
    """Return the scripts that answer as an M3 Max's tools do, from its specimen."""
    row = next(row for row in specimens("hosts") if row["id"].startswith("m3max"))
    said = {shlex.join(probe["argv"]): str(probe["stdout"]) for probe in row["probes"]}
    profiler = {kind: said[f"system_profiler {kind}"] for kind in ("SPHardwareDataType", "SPDisplaysDataType")}
    hardware, displays = (shlex.quote(profiler[kind]) for kind in ("SPHardwareDataType", "SPDisplaysDataType"))
    scripts = {
        argv[0]: f"printf %s {shlex.quote(text)}"
        for words, text in said.items()
        if (argv := shlex.split(words))[0] in ("sw_vers", "sysctl", "uname", "launchctl")
    }
    return {
        **scripts,
        "system_profiler": f"case $1 in SPH*) printf %s {hardware} ;; *) printf %s {displays} ;; esac",
        "pmset": "echo 'Note: No thermal warning level has been recorded'",
        "notifyutil": "echo 'com.apple.system.thermalpressurelevel 0'",
        "mdfind": f"echo '{DEVELOPER_DIR.removesuffix('/Contents/Developer')}'",
        "pkgutil": "echo \"No receipt for '$1' found at '/'.\" >&2; exit 1",
    }


def _apple(calls: Path) -> dict[str, str]:
    """Return Apple's own tools: shims that take the Xcode of DEVELOPER_DIR, since none is chosen for the machine."""
    none = "xcode-select: error: unable to get active developer directory, use `sudo xcode-select --switch FOLDER`"
    shim = f"[ -n \"$DEVELOPER_DIR\" ] || {{ echo '{none}' >&2; exit 1; }}"
    noted = f'echo "$(basename "$0") $*" >> {shlex.quote(str(calls))}'
    llvm = llvm_tools() or {}
    return {
        "git": f'{shim}\nexec {shutil.which("git")} "$@"',
        "xcode-select": f"{shim}\nprintf '%s\\n' \"$DEVELOPER_DIR\"",
        "xcodebuild": f"{shim}\nprintf 'Xcode 26.5\\nBuild version 17F42\\n'",
        "xcrun": f'{shim}\ncase "$*" in *show-sdk-version) echo 26.5 ;;'
        " *metal*--version) echo 'Apple metal version 32023.883 (metalfe-32023.883)' ;; *metal*)"
        ' while [ "$#" -gt 1 ]; do [ "$1" != -o ] || : > "$2"; shift; done ;; esac',
        "codesign": f"{shim}\n{noted}",
        **{name: f'{shim}\n{noted}\n{_DIALECT.get(name, "")}exec {path} "$@"' for name, path in llvm.items()},
    }
