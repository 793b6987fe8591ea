"""The page on the audit shows every rule as the code has it."""

from __future__ import annotations

from pathlib import Path

from mps_build.inspection.audit.render import rules_table
from mps_build.inspection.audit.rules import ALL

PAGE = Path(__file__).parents[3] / "docs" / "audit.md"


def test_the_table_of_rules_is_that_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition("test_audit_docs.py -->\n")[2].partition("\n<!-- end of rules -->")[0]

    assert table == rules_table(), "put the output of audit.render.rules_table() between the two marks"


def test_every_rule_has_an_id_of_its_own() -> None:
    assert len({rule.id for rule in ALL}) == len(ALL)
