"""Path -> Audit: reads the facts, applies the rules, grants a profile's exceptions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...common.errors import UsageError
from ...common.files import fault_of, named, open_regular
from ...common.reporting import Reporter, SilentReporter
from ...common.stopping import budget_of
from ..limits import BYTES_A_SECOND, CPU_SECONDS, MOST_UNPACKED_BYTES
from .facts import collect_facts, collector_paused
from .model import Audit, Expectation, Finding, Profile, WheelFacts
from .releases import TORCH_CPU, Wanted, wanted_of
from .render import describe_facts
from .rules import apply_rules
from .rules.torch import section_names


def audit_wheel(
    path: Path,
    *,
    profile: Profile = "strict",
    expectation: Expectation | None = None,
    quick: bool = False,
    reporter: Reporter | None = None,
) -> Audit:
    """Return the verdict on the wheel at `path`, whatever the file holds.

    Args:
        profile: `official` turns what the official wheels of old releases are known for into warnings.
        expectation: what a recipe declares; None judges by the wheel's name alone.
        quick: names and headers only.

    Raises:
        UsageError: no file is there, or its name is not that of a wheel.
        OverBudget: reading it takes more time or memory than any honest wheel does.
    """
    _check_path(path)
    with named(path), budget_of(path.name, cpu_seconds=cpu_seconds(path)), collector_paused():
        facts = collect_facts(path, quick=quick, reporter=reporter or SilentReporter())
        return judge(facts, profile=profile, expectation=expectation, quick=quick)


def audit_installed(
    root: Path,
    info: str,
    *,
    profile: Profile = "official",
    expectation: Expectation | None = None,
    quick: bool = False,
    reporter: Reporter | None = None,
) -> Audit:
    """Return the verdict on the package whose `.dist-info` folder `info` lies in `root`."""
    from .facts import collect_installed

    facts = collect_installed(root, info, quick=quick, reporter=reporter or SilentReporter())
    return judge(facts, profile=profile, expectation=expectation, quick=quick)


def cpu_seconds(*paths: Path) -> float:
    """Return the processor time that auditing these files may take: wheels unpack to some five times their size."""
    unpacked = sum(min(5 * path.stat().st_size, MOST_UNPACKED_BYTES) for path in paths)
    return CPU_SECONDS * len(paths) + unpacked / BYTES_A_SECOND


def judge(facts: WheelFacts, *, profile: Profile, expectation: Expectation | None, quick: bool) -> Audit:
    """Return the verdict on facts."""
    version = facts.name.version if facts.name else next(iter(facts.metadata.get("version", ())), "")
    wanted = wanted_of(facts.distribution, version, expectation, facts.metadata.get("requires-dist", ()))
    findings = apply_rules(facts, wanted)
    if profile == "official" and wanted.is_torch:
        findings = _excuse(findings, wanted.release)
    order = {"error": 0, "warning": 1}
    return Audit(
        profile=profile,
        quick=quick,
        kind=kind_of(facts, wanted),
        findings=tuple(sorted(findings, key=lambda finding: order[finding.level])),
        facts=facts,
        facts_document=describe_facts(facts),
    )


def kind_of(facts: WheelFacts, wanted: Wanted) -> str:
    """Return how torch gets its Metal kernels: `aot` (embedded), `jit` (compiled at first use), or `off`.

    Any other wheel is `generic`.
    """
    if not wanted.is_torch:
        return "generic"
    if section_names(facts):
        return "aot"
    macho = facts.macho(TORCH_CPU)
    graph = "/MetalPerformanceShadersGraph.framework/"
    return "jit" if macho and any(graph in dependency.path for dependency in macho.dependencies) else "off"


def _excuse(findings: tuple[Finding, ...], release: tuple[int, ...]) -> tuple[Finding, ...]:
    # Read here, not above: the reader of YAML costs more than a quick audit.
    from .releases import find_exception, load_exceptions

    exceptions = load_exceptions()

    def judged(finding: Finding) -> Finding:
        exception = find_exception(exceptions, finding, release) if finding.level == "error" else None
        if exception is None:
            return finding
        return replace(finding, level="warning", reason=f"{finding.reason} (official: {exception.reason})")

    return tuple(judged(finding) for finding in findings)


def _check_path(path: Path) -> None:
    hint = "give a .whl file, or a requirement such as torch==2.15.0"
    if fault := fault_of(path):
        raise UsageError(f"{path}: {fault}", hint=hint)
    if path.suffix != ".whl":
        raise UsageError(f"{path}: is not a wheel (its name does not end in .whl)", hint=hint)
    try:
        open_regular(path).close()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}", hint="fix its permissions") from error
