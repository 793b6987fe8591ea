"""The ledger of assumptions: every rule of the software MPSGraph states what it was taken from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mps_build.simulation.ledger import Entry, Ledger, graph_rules, ledger_page, read_ledger
from pydantic import ValidationError


def test_each_rule_has_one_source_and_each_pattern_a_rule() -> None:
    assert read_ledger().faults(graph_rules()) == []


def test_each_rule_of_metal_is_shown_by_a_scenario_or_a_test_that_is_there() -> None:
    here = Path(__file__).parent
    scenarios = set(re.findall(r"SCENARIO\((\w+)\)", (here / "metal_rules.mm").read_text(encoding="utf-8")))
    named = set(re.findall(r'\("(\w+)",', (here / "test_native_metal.py").read_text(encoding="utf-8")))
    tests = {
        name
        for path in here.parent.rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }

    rules = read_ledger().metal
    assert len(rules) > 10
    assert [each.shown_by for each in rules if each.shown_by not in (scenarios & named) | tests] == []


def test_rules_are_read_from_methods_and_macros(tmp_path: Path) -> None:
    (tmp_path / "a.mm").write_text(
        "@implementation MPSGraph (A)\nONE(sin, at::sin(x[0]))\nREDUCE(reductionSum, sum(x[0], over))\n"
        "- (T *)castTensor:(T *)tensor\n       toType:(MPSDataType)type name:(NSString *)name {\n}\n"
        "- (void)dealloc {\n}\n"
        "@end\n@implementation MPSGraphTensor\n- (MPSShape *)shape {\n}\n@end\n"
    )

    assert graph_rules(tmp_path) == {
        "sinWithTensor:name:",
        "reductionSumWithTensor:axes:name:",
        "reductionSumWithTensor:axis:name:",
        "castTensor:toType:name:",
    }


def test_a_rule_without_a_source_and_a_pattern_without_a_rule_are_reported() -> None:
    entry = Entry(rules=("sin*", "gone*"), source="assumed", says="x")

    assert Ledger(schema_version=1, entries=(entry,), metal=()).faults(
        {"sinWithTensor:name:", "cosWithTensor:name:"}
    ) == [
        "cosWithTensor:name:: 0 entries, not one",
        "gone*: fits no rule",
    ]


@pytest.mark.parametrize("facts", [{"source": "documented"}, {"source": "assumed", "of": "a page"}])
def test_what_is_not_assumed_names_where_it_is_from(facts: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="names what a rule was taken from"):
        Entry(rules=("sin*",), says="x", **facts)  # type: ignore[arg-type]


def test_the_page_has_each_source_and_each_method() -> None:
    page = ledger_page()

    assert "## From nothing: assumed" in page
    for selector in graph_rules():
        assert f"`{selector.split(':')[0]}`" in page
