"""One small function per rule: facts in, what is wrong out. The ids are those of the audit's documentation."""

from __future__ import annotations

from collections.abc import Iterator

from ...limits import MOST_EVIDENCE, MOST_FINDINGS
from ..model import Finding, WheelFacts
from ..releases import Wanted
from . import archives, binaries, names, torch
from .rule import Rule

ALL: tuple[Rule, ...] = (
    *archives.RULES,
    *names.RULES,
    *binaries.RULES,
    *torch.RULES,
)


def apply_rules(facts: WheelFacts, wanted: Wanted) -> tuple[Finding, ...]:
    """Return the findings of every rule that can be judged: full ones need full facts, most a readable archive."""
    findings: list[Finding] = []
    for rule in ALL:
        if (rule.torch_only and not wanted.is_torch) or (rule.needs_full and not facts.is_full):
            continue
        if not facts.archive.is_readable and not rule.of_archive:
            continue
        findings += _found(rule, facts, wanted)
    return tuple(findings)


def _found(rule: Rule, facts: WheelFacts, wanted: Wanted) -> Iterator[Finding]:
    """Yield what one rule finds, not more than anybody reads and cut to what a screen holds."""
    for number, hit in enumerate(rule.check(facts, wanted)):
        is_last = number == MOST_FINDINGS
        yield Finding(
            rule=rule.id,
            level=hit.level or rule.level,
            member=None if is_last else hit.member,
            evidence=f"and more; {MOST_FINDINGS} are listed" if is_last else _cut(hit.evidence),
            reason=rule.reason,
        )
        if is_last:
            return


def _cut(text: str) -> str:
    return text if len(text) <= MOST_EVIDENCE else f"{text[:MOST_EVIDENCE]}… ({len(text)} characters)"
