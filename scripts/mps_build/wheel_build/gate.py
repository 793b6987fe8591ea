"""ConfigureRun + recipe -> passed, or stopped within two minutes: the result of configure against the recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.cmake_summary import ConfigureFacts, parse_configure
from mps_build.common.errors import GateError
from mps_build.common.recipe.model import Gate

_FALSE = {"", "0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigureRun:
    """What a configure left to judge: its log, its cache and, if it came to its end, the facts it wrote."""

    log_text: str
    cache_text: str
    facts: Mapping[str, Any] | None
    build: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One point at which configure differs from the recipe; only a fresh build folder fixes `stale`."""

    key: str
    found: str
    wanted: str
    reason: str
    fix: str
    stale: bool = False


def check_gate(run: ConfigureRun, gate: Gate, *, fresh: bool) -> ConfigureFacts:
    """Return what configure decided, if it is what the recipe requires.

    Args:
        fresh: the build folder was made by this very configure: nothing in it can be stale.

    Raises:
        GateError: with every mismatch, its cause, and how to fix it.
    """
    facts = parse_configure(run.log_text, run.cache_text)
    mismatches = judge(facts, gate, written=run.facts, fresh=fresh)
    if mismatches:
        lines = [f"{each.key}: wanted {each.wanted}, came out {each.found}: {each.reason}" for each in mismatches]
        fixes = list(dict.fromkeys(each.fix for each in mismatches))
        raise GateError(
            "configure did not give what the recipe requires:\n  " + "\n  ".join(lines),
            hint="; ".join(fixes),
            document={"gate": [_row(each) for each in mismatches]},
        )
    return facts


def judge(
    facts: ConfigureFacts, gate: Gate, *, written: Mapping[str, Any] | None, fresh: bool = False
) -> tuple[Mismatch, ...]:
    """Return every point at which a configure differs from the gate.

    The summary decides, the cache explains (its USE_MPS says INTERNAL=1 behind a closed gate). `written`,
    what overrides.cmake saw at the end of configure, must not contradict the summary, and answers what neither
    holds (a C++ standard that is not a cache entry). What nobody says is a mismatch: never accepted as right.
    """
    found: list[Mismatch] = []
    if not facts.generated:
        return (_mismatch("configure", "not finished", "finished", facts.reason or "no build files were written"),)
    found += _mps(facts, gate)
    if gate.use_mps and facts.use_mps:
        found += _metal(facts, gate, fresh=fresh)
    standard = _said(written, "CMAKE_CXX_STANDARD") or facts.cxx_standard
    if gate.cxx_standard and standard != gate.cxx_standard:
        reason = "another standard than this release is written in" if standard else "configure does not say which"
        found.append(_mismatch("C++ standard", standard or "not said", gate.cxx_standard, reason))
    openmp = facts.openmp
    if openmp is None and written is not None:
        openmp = _truth(_said(written, "USE_OPENMP"))
    if openmp != gate.openmp:
        reason = "libomp was not found" if gate.openmp else "an OpenMP of the host leaked in"
        reason = "configure does not say whether" if openmp is None else reason
        found.append(_mismatch("OpenMP", _word(openmp), _word(gate.openmp), reason))
    if written is not None and facts.use_mps is not None and _truth(_said(written, "USE_MPS")) != facts.use_mps:
        reason = "the summary and CMake's own variable contradict each other"
        found.append(_mismatch("USE_MPS", _said(written, "USE_MPS"), _word(facts.use_mps), reason))
    return tuple(found)


def _mps(facts: ConfigureFacts, gate: Gate) -> list[Mismatch]:
    found: list[Mismatch] = []
    if facts.use_mps != gate.use_mps:
        wanted, came = _word(gate.use_mps), _word(facts.use_mps)
        if facts.mps_switched_off:
            found.append(
                _mismatch(
                    "USE_MPS",
                    came,
                    wanted,
                    facts.reason,
                    fix="remove USE_MPS=0; the next build starts in a fresh build folder",
                )
            )
        else:
            reason = facts.reason or "the summary does not say ON"
            found.append(_mismatch("USE_MPS", came, wanted, reason, fix=_fix(facts)))
    elif gate.use_mps and any(name in facts.missing for name in ("mpsgraph_in_sdk", "mpsgraph_in_system")):
        # find_library takes MetalPerformanceShaders where MPSGraph is not there.
        found.append(_mismatch("MPSGraph", "missing", "found", facts.reason, fix=_fix(facts)))
    return found


def _metal(facts: ConfigureFacts, gate: Gate, *, fresh: bool) -> list[Mismatch]:
    pairs: tuple[tuple[str, bool | None, bool, Callable[[ConfigureFacts], str]], ...] = (
        ("CAN_COMPILE_METAL", facts.can_compile_metal, gate.can_compile_metal, lambda f: f.reason),
        (
            "CAN_COMPILE_METAL_40",
            facts.can_compile_metal_40,
            gate.can_compile_metal_40,
            lambda f: "the Metal compiler does not know Metal 4 (it takes Xcode 26 and its Metal Toolchain)",
        ),
    )
    found: list[Mismatch] = []
    for key, came, wanted, reason in pairs:
        if not wanted or came is True:
            continue
        if facts.metal_is_stale and not fresh:
            why = "kept from an earlier configure of this build folder; this one did not try the compiler"
            found.append(
                Mismatch(
                    key=key,
                    found=_word(came),
                    wanted="ON",
                    reason=why,
                    fix="a fresh build folder (or -UCAN_COMPILE_METAL -UCAN_COMPILE_METAL_FOUND)",
                    stale=True,
                )
            )
        else:
            found.append(_mismatch(key, _word(came), "ON", reason(facts) or "not said", fix=_fix(facts, metal=True)))
    return found


def _fix(facts: ConfigureFacts, *, metal: bool = False) -> str:
    """Return the command that fixes what is missing."""
    by_cause = {
        "xcrun": "xcode-select --install, or install Xcode",
        "sdk": "xcrun --sdk macosx --show-sdk-version must answer: install Xcode, or sudo xcode-select --reset",
        "sdk_too_old": "install a newer Xcode and point DEVELOPER_DIR at it",
        "mpsgraph_in_sdk": "this SDK has no MetalPerformanceShadersGraph: choose another Xcode with DEVELOPER_DIR",
        "mpsgraph_in_system": "this macOS, or a sandbox, hides MetalPerformanceShadersGraph: build outside the sandbox",
        "mpsgraph": "nox -s doctor tells where MetalPerformanceShadersGraph is missing",
        "metal_compiler": "install Xcode (the Command Line Tools have no `metal`), or --allow-jit-shaders",
        "metal_toolchain": "xcodebuild -downloadComponent MetalToolchain",
        "metal_too_old": "install Xcode 15 or newer, or --allow-jit-shaders",
    }
    for cause in facts.missing:
        if cause in by_cause:
            return by_cause[cause]
    return "nox -s doctor says what is missing" + (", or --without-metal4" if metal else "")


def _mismatch(key: str, found: str, wanted: str, reason: str, *, fix: str = "nox -s doctor says more") -> Mismatch:
    return Mismatch(key=key, found=found, wanted=wanted, reason=reason, fix=fix)


def _row(mismatch: Mismatch) -> dict[str, Any]:
    return {
        "key": mismatch.key,
        "found": mismatch.found,
        "wanted": mismatch.wanted,
        "reason": mismatch.reason,
        "fix": mismatch.fix,
        "stale": mismatch.stale,
    }


def _said(written: Mapping[str, Any] | None, name: str) -> str:
    """Return a variable as overrides.cmake saw it; what CMake does not define is empty, and so false."""
    return "" if written is None else str(written.get(name, ""))


def _truth(text: str) -> bool:
    text = text.upper()
    return text not in _FALSE and not text.endswith("-NOTFOUND")


def _word(value: bool | None) -> str:
    return "not said" if value is None else "ON" if value else "OFF"
