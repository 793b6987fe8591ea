"""The budget of a run: what the core leaves is drawn, and the same is drawn by each process of a run."""

from __future__ import annotations

from typing import Any

import pytest

import core_keys
import operators
import transforms
from engine import budget
from engine.budget import CORE, NO_LIMIT, Budget, budget_of
from engine.layer import Drawn
from engine.sampler import Sampler, chosen
from suite_in_process import Suite

_PLAIN: dict[str, Any] = {"--cases": 0, "--keys": 0, "--time": "", "--seed": 0, "--quick": False, "--layer": ""}
_PLAIN.update({"--only": "", "--after": "", "--op": "", "--shard": ""})


def _budget(**given: Any) -> Budget:
    return budget_of({**_PLAIN, **{f"--{name}": value for name, value in given.items()}}.__getitem__)


def _drawn(given: Budget) -> list[str]:
    cases = Drawn()
    cases.draw(given)
    return [case.id for case in cases]


def test_what_is_drawn_is_what_the_core_leaves() -> None:
    cases, keys = sum(part.cases for part in CORE.values()), sum(part.keys for part in CORE.values())
    quick = sum(part.quick_keys for part in CORE.values())

    assert (_budget().cases, _budget().keys) == (8_000 - cases, 10_000 - keys)
    assert _budget(quick=True).keys == 2_000 - quick
    assert _budget(layer="drawn").keys == 10_000
    assert _budget(layer="drawn,smoke").keys == 10_000 - CORE["smoke"].keys
    assert _budget(cases=1).cases == 0
    assert (_budget(layer="drawn", cases=50).cases, _budget(layer="drawn", cases=50).keys) == (50, NO_LIMIT)
    assert (_budget(layer="drawn", keys=50).cases, _budget(layer="drawn", keys=50).keys) == (NO_LIMIT, 50)
    assert (_budget(layer="drawn", time="10m").cases, _budget(layer="drawn", time="10m").seconds) == (NO_LIMIT, 600.0)
    assert _budget(op="aten.add").cases == _budget(layer="drawn", op="aten.add").cases == budget.OPERATOR_CASES
    assert (_budget(only="exp:*", cases=60).cases, _budget(only="exp:*").cases) == (60, budget.OPERATOR_CASES)


@pytest.mark.parametrize("given", [{"cases": -1}, {"keys": -1}, {"time": "soon"}, {"time": "0"}])
def test_a_budget_that_is_none_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"--{next(iter(given))} takes"):
        _budget(**given)


def test_each_process_of_a_run_draws_the_same_also_one_that_takes_over() -> None:
    whole = _drawn(_budget(layer="drawn", keys=1_500))

    assert whole == _drawn(_budget(layer="drawn", keys=1_500, shard="1/4"))
    assert whole == _drawn(_budget(layer="drawn", keys=1_500, after=whole[600]))


def test_with_a_time_a_process_that_takes_over_draws_what_is_behind() -> None:
    whole = _drawn(Budget(cases=1_200, keys=NO_LIMIT))

    behind = _drawn(Budget(cases=100, keys=NO_LIMIT, seconds=10_000.0, after=whole[900]))

    assert behind == whole[901:1001]
    assert _drawn(Budget(cases=100, keys=NO_LIMIT, seconds=10_000.0, after="issue-1")) == whole[:100]


@pytest.mark.parametrize("text", ["no_such:layout:3", "add:no_such:3", "arange:gradient:1"])
def test_an_id_that_names_what_is_not_there_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        _drawn(Budget(only=(text,)))


def test_the_default_holds_ten_thousand_keys_at_any_seed() -> None:
    for seed in range(3):
        found = chosen(Sampler(operators.described(), transforms.known(), seed), cases=8_000, most_keys=10_000)
        assert 9_000 < sum(one.new_keys for one in found) <= 10_000
        assert len(found) <= 8_000


def test_the_core_dispatches_what_is_reserved_for_it() -> None:
    for layer, part in core_keys.measured(Suite(), timed=False).items():
        reserved = CORE[layer]
        assert part.cases <= reserved.cases, layer
        assert reserved.keys * 0.7 < len(part.keys) <= reserved.keys, (layer, len(part.keys))
        assert part.quick_cases <= reserved.quick_cases, layer
        assert len(part.quick_keys) <= reserved.quick_keys, (layer, len(part.quick_keys))
    assert sum(part.keys for part in CORE.values()) < budget.DEFAULT_KEYS
    assert sum(part.quick_keys for part in CORE.values()) < budget.QUICK_KEYS


def test_what_is_drawn_is_of_the_patterns_that_are_named() -> None:
    of_one = _drawn(_budget(only="conv_transpose?d:*, exp2:*", cases=60))

    assert len(of_one) == 60
    assert {name.partition(":")[0] for name in of_one} == {"exp2", *(f"conv_transpose{n}d" for n in (1, 2, 3))}
    assert len(_drawn(_budget(only="exp:*"))) == budget.OPERATOR_CASES
    assert {name.split(":")[1] for name in _drawn(_budget(only="*:refusal:*", cases=40))} == {"refusal"}
    assert _drawn(_budget(only="exp:layout:17, exp:*:3")) == ["exp:layout:17", *sorted(_drawn(_budget(only="exp:*:3")))]
    assert _drawn(_budget(only="issue-1*,smoke-*")) == []
    assert len(_drawn(_budget(only="exp:layout:1?", cases=60))) <= 10
