"""One small function per rule: facts in, what is wrong out. The ids are those of the audit's documentation."""

from __future__ import annotations

from ..model import Finding, WheelFacts
from ..releases import Wanted
from . import archives, binaries, libraries, metal, names, torch
from .rule import Rule

ALL: tuple[Rule, ...] = (
    *archives.RULES,
    *names.RULES,
    *binaries.RULES,
    *libraries.RULES,
    *torch.RULES,
    *metal.RULES,
)


def apply_rules(facts: WheelFacts, wanted: Wanted) -> tuple[Finding, ...]:
    """Return the findings of every rule that can be judged: full ones need full facts, most a readable archive."""
    findings = []
    for rule in ALL:
        if (rule.torch_only and not wanted.is_torch) or (rule.needs_full and not facts.is_full):
            continue
        if not facts.archive.is_readable and not rule.of_archive:
            continue
        for hit in rule.check(facts, wanted):
            findings.append(
                Finding(
                    rule=rule.id,
                    level=hit.level or rule.level,
                    member=hit.member,
                    evidence=hit.evidence,
                    reason=rule.reason,
                )
            )
    return tuple(findings)
