"""What torch's host code does with large tensors, as the families state it, and the scripts that show it on a Mac."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from mps_build.common.workspace import CHECKOUT
from mps_build.kernels.families.shared.contracts import Contract, load_contracts, load_families
from mps_build.kernels.families.shared.large import Rule, load_guards, load_rules, rule_of
from pydantic import ValidationError
from rows import for_each

RULES = [(folder, rule) for folder, rules in load_rules().items() for rule in rules]


SCHEMA = json.loads((CHECKOUT / "schemas" / "kernel_large_rules.schema.json").read_text(encoding="utf-8"))


SECTIONS = [(name, each["large"]) for name, each in load_families().items() if "large" in each]


# Tensors whose addresses are in a table are called as its fields are, which a contract does not name.
BEHIND_TABLES = {"params", "data"}


GOOD = {"contracts": ["*"], "host": ["launch"], "call": "torch.good({input})", "source": "a test"}


def covered(folder: str, rule: Rule) -> list[Contract]:
    return [each for each in load_contracts() if each.folder == folder and any(
        re.fullmatch(pattern.replace("*", ".*"), each.family) for pattern in rule.contracts
    )]  # fmt: skip


@for_each(RULES)
def test_a_rule_speaks_of_contracts_that_are_there_and_names_their_arguments(folder: str, rule: Rule) -> None:
    contracts = covered(folder, rule)
    arguments = {name for each in contracts for name in each.arguments.split(", ")}
    parts = {name for each in contracts for name in each.pattern.groupindex}
    called = {name.removesuffix("_shape") for name in re.findall(r"\{(\w+)\}", rule.call)}

    assert contracts
    assert called <= arguments | parts | BEHIND_TABLES
    assert {name for ask in rule.asks for name in ask.of} <= arguments


def test_the_first_rule_that_fits_is_taken() -> None:
    contract = next(each for each in load_contracts() if each.family == "cat")

    narrow, wide = (rule_of(contract, f"cat_int{bits}_t_float_float") for bits in (32, 64))

    assert narrow is not None and wide is not None
    assert [ask.guard for ask in narrow.asks] == ["isTooLargeForMPSGraph"]
    assert not wide.asks


@pytest.mark.parametrize(
    "fields",
    [
        {"host": []},
        {"guards": []},
        {"asks": [{"guard": "nobody", "then": "cuts"}]},
        {"asks": [{"guard": "with_32bit_indexing", "then": "hopes"}]},
        {"asks": [{"then": "cuts"}]},
        {"asks": [{"message": "too large", "then": "refuses"}]},
        {"asks": [{"guard": "with_32bit_indexing", "then": "cuts", "most": 3, "quantity": "bytes"}]},
    ],
)
def test_a_rule_that_is_not_whole_is_refused(tmp_path: Path, fields: dict[str, object]) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "family.yaml").write_text(json.dumps({"large": [GOOD]}), encoding="utf-8")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "family.yaml").write_text(json.dumps({"large": [{**GOOD, **fields}]}), encoding="utf-8")

    with pytest.raises(ValidationError):
        load_rules(tmp_path)
    (tmp_path / "bad" / "family.yaml").unlink()
    load_families.cache_clear()
    assert list(load_rules(tmp_path)) == ["good"]


@for_each(SECTIONS)
def test_the_rules_fit_their_schema(folder: str, rules: object) -> None:
    assert rules, folder
    Draft202012Validator(SCHEMA).validate(rules)


def test_every_guard_says_where_it_stands_and_a_name_with_two_meanings_tells_them_apart() -> None:
    names = [each.symbol for each in load_guards()]

    assert len(set(names)) == len(names)
    assert all(each.source for each in load_guards())


def test_what_limits_a_choice_by_a_text_of_the_host_says_nothing_without_that_text() -> None:
    """A format of names that another release does not have would leave a kernel without its limit: a false finding."""
    for folder, rule in RULES:
        for ask in rule.asks:
            if "{}" in ask.message:
                assert rule.held == ask.message, folder


PAGE = (CHECKOUT / "docs" / "inspect" / "kernels_large.md").read_text(encoding="utf-8")


SECTION = PAGE.partition("<!-- scripts: large -->")[2].partition("<!-- end: scripts -->")[0]


SCRIPTS = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)


MOST_LINES = 15


def test_each_is_short_and_says_how_many_elements_it_has() -> None:
    assert len(SCRIPTS) >= 8
    for script in SCRIPTS:
        assert len(script.splitlines()) <= MOST_LINES
        assert len(re.findall(r"^n = 2\*\*\d+ [+-] \d+", script, re.MULTILINE)) == 1
        assert "assert " in script


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda text: re.sub(r"\W+", "-", text.splitlines()[-1])[:40])
def test_it_runs_and_holds_on_the_cpu_with_fewer_elements(script: str) -> None:
    torch = pytest.importorskip("torch")
    # 2**32 and 2**26 become 2**12 and 2**6: the calls, their types and what they must give stay.
    small = re.sub(r"^n = 2\*\*(\d+)", lambda match: f"n = 2**{max(int(match[1]) - 20, 6)}", script, flags=re.MULTILINE)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")  # of sparse tensors, that their invariants are not checked

    exec(compile(small.replace('"mps"', '"cpu"'), "script", "exec"), {})
