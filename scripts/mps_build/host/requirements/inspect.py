"""A host against a recipe, and against all: every requirement and reason at once. Pure, so recorded hosts test it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mps_build.common.recipe.model import Recipe

from ..host import Host, Xcode
from ..probes.probers import Observation
from ..probes.table import METAL_PROOF, decides
from .findings import Finding
from .machine import machine_findings, resource_findings
from .tools import tool_findings
from .way import workable
from .xcode import choose_xcode, chosen_suits, xcode_findings

# The proof is a script; a person runs the compiler it calls.
_METAL = ("xcrun", "--sdk", "macosx", "metal", "--version")


def unanswered_findings(host: Host, *, others_matter: bool) -> Iterator[Finding]:
    """Yield each probe that did not answer within its longest limit.

    Args:
        others_matter: the chosen Xcode does not suit, so what another one answers decides.
    """
    for row in host.observations:
        if not row.facts.get("timed_out"):
            continue
        command = shlex.join(_by_hand(row))
        stops = decides(row.argv) and (others_matter or not _of_another_xcode(row))
        yield Finding(
            id="probe_timed_out",
            level="blocker" if stops else "not_recorded",
            what="No answer",
            found=f"`{command}`: {row.text or 'no answer in time'}",
            wanted="an answer in time",
            fix=f"run `{command}` by hand until it answers, then run the same command again",
            stops=("build",),
        )


def _by_hand(row: Observation) -> tuple[str, ...]:
    return (*row.argv[: row.argv.index("sh")], *_METAL) if METAL_PROOF in row.argv else row.argv


def _of_another_xcode(row: Observation) -> bool:
    return row.argv[0] in ("env", "mdfind")


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


# The macOS SDK of each Xcode that official wheels were made with (docs/host/recorded_macs.md).
_SDK_OF = {
    "13.3.1": "12.3",
    "13.4.1": "12.3",
    "14.0.1": "12.3",
    "14.3.1": "13.3",
    "15.4": "14.5",
    "26.4": "26.4",
    "26.5": "26.5",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Buildability:
    """One recipe on a host: what stops the build, if anything, and the Xcode it would take."""

    recipe: str
    blockers: tuple[str, ...]
    xcode: str | None
    developer_dir: str | None

    def document(self) -> dict[str, Any]:
        """Return the row of `doctor --all --json`; `builds` is true without blockers."""
        return {**asdict(self), "blockers": list(self.blockers), "builds": not self.blockers}


def buildability_of(host: Host, recipes: Sequence[Recipe]) -> tuple[Buildability, ...]:
    """Return each recipe's buildability, in the order given."""
    rows = []
    for recipe in recipes:
        xcode = choose_xcode(host, recipe) if host.system == "Darwin" else None
        rows.append(
            Buildability(
                recipe=recipe.name,
                blockers=tuple(blockers(inspect(host, recipe), stops="build")),
                xcode=xcode.version if xcode else None,
                developer_dir=xcode.developer_dir if xcode else None,
            )
        )
    return tuple(rows)


def unlocked_by(host: Host, recipes: Sequence[Recipe]) -> dict[str, list[str]]:
    """Return what further recipes one installation would make buildable: the same rules on a host that had it.

    Whether an old Xcode still starts on a new macOS is in no record: that must be tried.
    """
    if host.system != "Darwin":
        return {}
    stopped = [recipe for recipe in recipes if blockers(inspect(host, recipe), stops="build")]
    alike: dict[tuple[str, ...], list[str]] = {}
    for what, better in _better_hosts(host):
        names = tuple(recipe.name for recipe in stopped if not blockers(inspect(better, recipe), stops="build"))
        if names:
            alike.setdefault(names, []).append(what)
    return {" or ".join(installations): list(names) for names, installations in alike.items()}


def _better_hosts(host: Host) -> list[tuple[str, Host]]:
    better = []
    for version, sdk in _SDK_OF.items():
        standards = ("3.1", "4.0") if version.startswith("26") else ("3.1",) if version.startswith("15") else ()
        xcode = Xcode(
            version=version,
            build=None,
            beta=False,
            developer_dir=f"/Applications/Xcode_{version}.app/Contents/Developer",
            chosen=False,
            sdk_version=sdk,
            metal_standards=standards,
        )
        component = " with the Metal Toolchain" if version.startswith("26") else ""
        better.append((f"Xcode {version}{component}", replace(host, xcodes=(*host.xcodes, xcode))))
    return better
