"""A host against a recipe: every requirement, every reason at once. Pure, so that recorded hosts test it anywhere."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from mps_build.common.recipe.model import Recipe

from ..host import Host
from .findings import Finding
from .machine import machine_findings, resource_findings
from .tools import tool_findings
from .unanswered import unanswered_findings
from .way import workable
from .xcode import chosen_suits, xcode_findings

# The order of warnings in a report; blockers come in the order of their rules.
_WARNINGS = (
    "low_memory",
    "low_disk",
    "low_power",
    "on_battery",
    "no_gui_session",
    "thermal_unknown",
    "thermal_throttled",
    "macos_beta",
    "compat_version",
    "gpu_unknown",
    "virtual_unknown",
    "xcode_unknown",
)
_DISK_LAST = ("disk_full",)


def inspect(host: Host, recipe: Recipe) -> tuple[Finding, ...]:
    """Return the doctor's lines on this host for this recipe."""
    if host.system != "Darwin":
        return (
            *elsewhere_findings(host, recipe),
            *resource_findings(host),
            *tool_findings(host, recipe),
            *unanswered_findings(host, others_matter=False),
            *_not_understood(host),
        )
    return (
        *machine_findings(host, recipe),
        *workable((*xcode_findings(host, recipe), *tool_findings(host, recipe)), host, recipe),
        *unanswered_findings(host, others_matter=not chosen_suits(host, recipe)),
        *_not_understood(host),
    )


def blockers(findings: tuple[Finding, ...], *, stops: str | None = None) -> list[str]:
    """Return the ids of what stops this host (from building, or from using MPS), each once."""
    ids = [f.id for f in findings if f.level == "blocker" and (stops is None or stops in f.stops)]
    return sorted(dict.fromkeys(ids), key=lambda name: name in _DISK_LAST)


def warnings(findings: tuple[Finding, ...]) -> list[str]:
    """Return the ids of what is worth a warning, each once."""
    ids = dict.fromkeys(finding.id for finding in findings if finding.level == "warning")
    return sorted(ids, key=lambda name: _WARNINGS.index(name) if name in _WARNINGS else len(_WARNINGS))


def _not_understood(host: Host) -> Iterator[Finding]:
    """Yield every answer that no parser understands, with its text: it is neither well nor ill."""
    for row in host.observations:
        if row.facts.get("not_understood") and row.text and not row.text.endswith(": command not found"):
            lines = row.text.splitlines()
            more = f" (and {len(lines) - 3} lines more)" if len(lines) > 3 else ""
            yield Finding(
                id="not_understood",
                level="not_understood",
                what="Not understood",
                found=f"`{shlex.join(row.argv)[:120]}` answered: {' / '.join(lines[:3])[:300]}{more}",
                fix="please report this answer: nox -s doctor -- --record FILE, see docs/host/recorded_macs.md",
            )


def elsewhere_findings(host: Host, recipe: Recipe) -> tuple[Finding, ...]:
    """Return what a host that is not a Mac lacks; a recipe that is cross-built with zig lacks nothing."""
    if recipe.cross is not None:
        return (
            Finding(id="system", level="ok", what="System", found=host.system, wanted="any: cross-compiled with zig"),
        )
    mac = "a Mac with Apple silicon; what can be done here stands below"
    rows = (
        ("not_macos", "macOS", host.system, f"macOS {recipe.host.macos} or newer"),
        ("not_apple_silicon", "Chip", host.arch or "unknown", "Apple silicon"),
        ("xcode_missing", "Xcode", "none: Xcode runs on macOS alone", f"Xcode {recipe.host.xcode} or newer"),
        ("sdk_missing", "macOS SDK", "none", f"{recipe.host.sdk} or newer"),
    )
    findings = [
        Finding(id=name, level="blocker", what=what, found=found, wanted=wanted, fix=mac)
        for name, what, found, wanted in rows
    ]
    if recipe.host.metal_compiler == "required":
        findings.append(
            Finding(
                id="metal_compiler_missing",
                level="blocker",
                what="Metal compiler",
                found="none: Apple provides it for macOS only",
                wanted="a working Metal compiler",
                fix=mac,
            )
        )
    return tuple(findings)
