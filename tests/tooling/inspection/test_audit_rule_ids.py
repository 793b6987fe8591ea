"""The audit's rules."""

from __future__ import annotations

from mps_build.inspection.audit.rules import ALL


def test_every_rule_has_an_id_of_its_own() -> None:
    assert len({rule.id for rule in ALL}) == len(ALL)
