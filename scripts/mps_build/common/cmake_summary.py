"""What PyTorch's configure decided about MPS, from its log and its CMakeCache.txt.

The summary in the log decides; the cache only explains. In the cache, `USE_MPS:INTERNAL` means that the gate was
closed whatever the value says (cmake_dependent_option), BOOL means that it was open and the value is the answer, and
a configure that failed leaves `BOOL=ON` behind as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .logs.text import Line, meant_lines, squeeze

Missing = Literal[
    "xcrun",  # the program is not there at all
    "sdk",  # xcrun is there and gives no SDK
    "sdk_too_old",
    "mpsgraph",  # one of the next two; without the cache nobody can say which
    "mpsgraph_in_sdk",
    "mpsgraph_in_system",
    "metal_compiler",
    "metal_toolchain",  # Xcode 26 without its component
    "metal_too_old",  # a compiler that does not know the language requested
]

_FALSE = re.compile(r"(?:0|OFF|NO|FALSE|N|IGNORE|NOTFOUND|.*-NOTFOUND)?$", re.IGNORECASE)
_WRITTEN = re.compile(r"^\s*(?:--\s+)?Build files have been written to: ?(.*)$")
_INCOMPLETE = re.compile(r"^\s*--\s+(?:Configuring|Generating) incomplete, errors occurred!|^Generate step failed")
_SUMMARY_LINE = re.compile(r"^\s*--\s+([A-Za-z_][\w +]{0,60}?)\s{0,60}: ?(.*)$")
_OF_THE_GATE = re.compile(
    r"mps supported: |MPS: unable to get MacOS sdk version|MPSGraph framework|(?<!\*)\*{4,} Summary \*{4}"
    r"|^\s*--\s+USE_MPS\s*:|CLANG_VERSION_STRING:|[Mm]achine can(?: not|not)? compile metal"
)
_NO_XCRUN = re.compile(
    r"xcrun: (?:command )?not found|command not found: xcrun|xcrun'?: No such file"
    r"|[Nn]o such file or directory:? .?xcrun"
)
_SDK = re.compile(r"sdk version: (\d+(?:\.\d+)*), mps supported: (\S+)")
_CANNOT_COMPILE = re.compile(r"Machine can(?: not|not) compile metal shaders, fails with (.*?)(?: Call Stack|$)")
_CACHE_ENTRY = re.compile(r'^"?([^#/\s"][^:="]*)"?:([A-Z]+)=(.*)$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigureFacts:
    """What one configure of PyTorch came out with; None always means "not said".

    Attributes:
        use_mps: the summary's answer, as CMake reads truth.
        can_compile_metal: meaningless, and so None, unless MPS is on.
        can_compile_metal_40: of releases from 2.12; from the probe's line, the summary or the cache.
        missing: what was not there, as far as log and cache tell.
        generated: build files were written; without it no other answer counts.
        metal_probed: this run tried the Metal compiler. False: `can_compile_metal` is a leftover of the cache.
        mps_switched_off: the gate was open and USE_MPS was refused, now or in an earlier configure of the tree.
        metal_kind: how shaders go into the wheel: compiled ahead, or as source compiled at first use.
        reason: one sentence on what keeps MPS or the Metal compiler out; empty if nothing does.
        reason_id: the id of a known cause (host/triage/causes.yaml).
    """

    use_mps: bool | None
    can_compile_metal: bool | None
    can_compile_metal_40: bool | None
    sdk_version: str | None
    missing: tuple[Missing, ...]
    generated: bool
    metal_probed: bool | None
    mps_switched_off: bool
    cxx_standard: str | None
    openmp: bool | None
    lapack: bool | None
    metal_kind: Literal["aot", "jit"] | None
    reason: str
    reason_id: str | None
    system: str | None
    torch_version: str | None
    compiler_id: str | None
    compiler_version: str | None
    ccache: str | None
    build_folder: str | None

    @property
    def mps_is_on(self) -> bool:
        """A build from here has MPS: the summary says so, and there is something to build."""
        return self.use_mps is True and self.generated

    @property
    def metal_is_stale(self) -> bool:
        """CAN_COMPILE_METAL was not found out by this configure but kept from an earlier one."""
        return self.can_compile_metal is not None and self.metal_probed is False


def parse_configure(log_text: str, cache_text: str = "") -> ConfigureFacts:
    """Return what the last configure in the log decided; `cache_text` is its CMakeCache.txt, if at hand."""
    cache = {name: (kind, value.strip()) for name, kind, value in _CACHE_ENTRY.findall(cache_text.replace("\r", ""))}
    lines, build_folder = _last_run(meant_lines(log_text), cache.get("CMAKE_CACHEFILE_DIR", ("", ""))[1])
    summary = _summary(lines)
    prose = squeeze(" ".join(line.text for line in lines))
    use_mps = _truth(summary.get("USE_MPS"))
    sdk = next(reversed(list(_SDK.finditer(prose))), None)
    metal, metal_40 = _metal(use_mps, summary, cache, prose)
    cannot = _CANNOT_COMPILE.search(prose)
    probed = bool(cannot) or "Machine can compile metal shaders" in prose
    switched_off = use_mps is False and (
        _kind(cache, "USE_MPS") == "BOOL"
        if cache
        else bool(sdk and _truth(sdk[2])) and "MPSGraph framework found" in prose
    )
    missing, reason, reason_id = _reason(
        use_mps=use_mps, sdk=sdk, prose=prose, cache=cache, switched_off=switched_off, system=summary.get("System")
    )
    if use_mps and metal is False:
        wants, metal_reason, reason_id = _metal_reason(cannot[1] if cannot else None)
        missing, reason = (*missing, *wants), f"{reason}; {metal_reason}" if reason else metal_reason
    return ConfigureFacts(
        use_mps=use_mps,
        can_compile_metal=metal,
        can_compile_metal_40=metal_40,
        sdk_version=sdk[1] if sdk else None,
        missing=missing,
        generated=build_folder is not None,
        metal_probed=probed if metal is not None else None,
        mps_switched_off=switched_off,
        cxx_standard=_value(cache, "CMAKE_CXX_STANDARD"),
        openmp=_truth(summary.get("USE_OPENMP")),
        lapack=_truth(summary.get("USE_LAPACK")),
        metal_kind=None if metal is None else "aot" if metal else "jit",
        reason=reason,
        reason_id=reason_id,
        system=summary.get("System"),
        torch_version=summary.get("TORCH_VERSION"),
        compiler_id=summary.get("C++ compiler id"),
        compiler_version=summary.get("C++ compiler version"),
        ccache=None if _truth(summary.get("Found ccache")) is not True else summary["Found ccache"],
        build_folder=build_folder,
    )


def _last_run(lines: tuple[Line, ...], cache_folder: str) -> tuple[tuple[Line, ...], str | None]:
    """Return the lines of the last configure that came as far as the gate, and the folder it wrote build files to.

    A log is appended to by a second configure, and a third-party project configured on the way (protoc for the
    host) writes an ending of its own.
    """
    ends = {index: match[1].strip() for index, line in enumerate(lines) if (match := _WRITTEN.match(line.text))}
    folders = {folder for folder in ends.values() if folder}
    outer = {cache_folder} if cache_folder in folders else {f for f in folders if not _is_below_another(f, folders)}
    runs: list[tuple[list[Line], str | None]] = [([], None)]
    for index, line in enumerate(lines):
        if line.text.startswith("$ ") and runs[-1][0]:  # our own logs name each command they append
            runs.append(([], None))
        runs[-1][0].append(line)
        if index in ends and (not folders or ends[index] in outer):
            runs[-1] = (runs[-1][0], ends[index])
            runs.append(([], None))
        elif _INCOMPLETE.search(line.text):
            runs.append(([], None))
    for run, folder in reversed(runs):
        if any(_OF_THE_GATE.search(line.text) for line in run):
            return tuple(run), folder
    return lines, None


def _is_below_another(folder: str, folders: set[str]) -> bool:
    return any(folder != other and folder.startswith(other.rstrip("/") + "/") for other in folders)


def _summary(lines: tuple[Line, ...]) -> dict[str, str]:
    entries: dict[str, str] = {}
    for line in lines:
        if match := _SUMMARY_LINE.match(line.text):
            entries[match[1]] = match[2].strip()
    return entries


def _truth(value: str | None) -> bool | None:
    return None if value is None else not _FALSE.match(value)


def _kind(cache: dict[str, tuple[str, str]], name: str) -> str | None:
    return cache[name][0] if name in cache else None


def _value(cache: dict[str, tuple[str, str]], name: str) -> str | None:
    return cache[name][1] or None if name in cache else None


def _metal(
    use_mps: bool | None, summary: dict[str, str], cache: dict[str, tuple[str, str]], prose: str
) -> tuple[bool | None, bool | None]:
    if not use_mps:
        return None, None  # a stale YES stays in summary and cache when MPS went off
    metal = _truth(summary.get("CAN_COMPILE_METAL") or None)
    metal_40 = _truth(summary.get("CAN_COMPILE_METAL_40") or None)
    if metal_40 is None and "Metal toolchain supports Metal 4.0" in prose:
        metal_40 = True
    if metal_40 is None and "Metal toolchain does not support Metal 4.0" in prose:
        metal_40 = False
    if metal_40 is None:
        metal_40 = _truth(_value(cache, "CAN_COMPILE_METAL_40"))
    return metal, metal_40


def _reason(
    *,
    use_mps: bool | None,
    sdk: re.Match[str] | None,
    prose: str,
    cache: dict[str, tuple[str, str]],
    switched_off: bool,
    system: str | None,
) -> tuple[tuple[Missing, ...], str, str | None]:
    if switched_off:
        return (), "USE_MPS was switched off, now or in an earlier configure of this tree", None
    if use_mps is None and ("MPS: unable" in prose or "MPSGraph framework" in prose or sdk):
        stopped = "configure did not come as far as its summary"
        missing, reason, reason_id = _closed_gate(sdk, prose, cache)
        return missing, f"{stopped}; {reason}" if reason else stopped, reason_id
    if use_mps is None:
        return (), "the log holds no summary of PyTorch's configure", None
    if use_mps is False:
        if system not in (None, "Darwin"):
            return (), f"configured for {system}, not for macOS", None
        missing, reason, reason_id = _closed_gate(sdk, prose, cache)
        return missing, reason or "MPS is off and neither log nor cache says why", reason_id
    other = _not_mpsgraph(cache)
    if other:
        return other, "CMake took MetalPerformanceShaders for MPSGraph, which is not there", None
    return (), "", None


def _closed_gate(
    sdk: re.Match[str] | None, prose: str, cache: dict[str, tuple[str, str]]
) -> tuple[tuple[Missing, ...], str, str | None]:
    if "MPS: unable to get MacOS sdk version" in prose:
        if _NO_XCRUN.search(prose):
            return ("xcrun",), "there is no xcrun, so no SDK was found", "B16"
        return ("sdk",), "xcrun gave no macOS SDK", "B16"
    if sdk and not _truth(sdk[2]):
        return ("sdk_too_old",), f"the SDK {sdk[1]} is older than 12.3", "B16"
    if "MPSGraph framework not found" in prose:
        where: tuple[Missing, ...] = _not_mpsgraph(cache) or ("mpsgraph",)
        places = {"mpsgraph_in_sdk": "in the SDK", "mpsgraph_in_system": "under /System/Library/Frameworks"}
        text = " and ".join(places[name] for name in where if name in places)
        return where, f"MPSGraph is missing {text or 'in the SDK or in the system'}", "B16"
    return (), "", None


def _not_mpsgraph(cache: dict[str, tuple[str, str]]) -> tuple[Missing, ...]:
    """Return the places without MPSGraph: find_library takes MetalPerformanceShaders in its stead."""
    places: list[Missing] = []
    for entry, name in (("_MPS_sdk_path_", "mpsgraph_in_sdk"), ("_MPS_fwrk_path_", "mpsgraph_in_system")):
        path = _value(cache, entry)
        if path is not None and not path.rstrip("/").endswith("MetalPerformanceShadersGraph.framework"):
            places.append(name)  # type: ignore[arg-type]
    return tuple(places)


def _metal_reason(words: str | None) -> tuple[tuple[Missing, ...], str, str | None]:
    if words is None:
        return (), "CAN_COMPILE_METAL is NO from an earlier configure; this one did not try the compiler", None
    if "missing Metal Toolchain" in words:
        return ("metal_toolchain",), "Xcode's Metal Toolchain component is not installed", "B18"
    if re.search(r"invalid value '[^']*' in '-std=", words):
        return ("metal_too_old",), f"the Metal compiler is too old: {words.strip()}", "B17"
    return ("metal_compiler",), f"no Metal compiler: {words.strip()}", "B17"
