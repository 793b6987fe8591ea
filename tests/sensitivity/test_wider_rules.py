"""The wider rules: each has a fault that it must notice, and what they may not ask stays out."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from device_suite.cases import Cases
from device_suite.overloads.described import overload
from device_suite.rules.asked import WIDER_RULES, add_rule, samples_of, stored, wider
from device_suite.rules.changes import ChangedCall
from device_suite.rules.derived import Derived
from device_suite.rules.public import public_of
from device_suite.rules.refusing import is_gap
from rule_candidates import is_written
from rule_faults import FAULTS
from rule_faults_operands import FAULTS as OPERAND_FAULTS
from rule_faults_options import FAULTS as OPTION_FAULTS
from rule_verdicts import Overload
from wider_candidates import RULES_IN_WORDS, WIDER
from wider_verdicts import described_so, options

aten = torch.ops.aten


def test_every_wider_rule_asks_many_overloads_and_has_a_fault_that_it_notices() -> None:
    assert set(WIDER) == set(RULES_IN_WORDS) == set(WIDER_RULES)
    assert {case.partition("-")[0] for case, _ in FAULTS + OPTION_FAULTS + OPERAND_FAULTS} >= set(WIDER_RULES)
    assert min(len(wider()[rule]) for rule in WIDER_RULES) > 40


def test_the_calls_of_the_pool_are_other_calls_and_every_row_has_one() -> None:
    assert not [name for name, calls in wider()["samples"].items() if stored()["samples"].get(name) == calls]
    for rule in WIDER_RULES:
        for name, rows in wider()[rule].items():
            assert all(row[0] < len(samples_of(name)) for row in rows), name


def test_what_is_made_of_others_is_asked_as_torch_has_it() -> None:
    assert public_of(aten.cosine_similarity.default) is torch.cosine_similarity
    assert public_of(aten.linalg_pinv.atol_rtol_float) is torch.linalg.pinv
    assert public_of(aten.mm.default) is aten.mm.default
    assert "cosine_similarity.default" in wider()["options"]


def test_a_place_is_valid_in_its_lower_half_alone() -> None:
    call = [["@float32 3x4 dense 1 2", 0, "@int64 2 dense 0 2"], {}]
    (plain, wide) = (ChangedCall(aten.index_select.default, call, one).bases[1] for one in ([], [["wide", 1, -1]]))

    assert plain.tolist() != wide.tolist()
    assert [int(one) & 0xFFFFFFFF for one in wide] == plain.tolist()


def test_a_value_that_no_back_end_takes_is_no_gap() -> None:
    assert not is_gap(RuntimeError("negative padding is not supported"))
    assert is_gap(NotImplementedError("padding of five dimensions is not supported"))


def test_what_takes_much_memory_before_it_is_refused_is_not_asked() -> None:
    call = [["@float32 5 dense 0 1"], {"r": 2}]
    changes = [["arg", "r", 1 << 40]]
    made = ChangedCall(aten.combinations.default, call, changes)

    reason, _ = options(Overload(aten.combinations.default, "combinations.default", call), made, changes)

    assert "memory" in reason


def test_strides_are_compared_where_torch_describes_them_as_the_cpu_has_them() -> None:
    call, *_ = stored()["samples"]["nonzero.default"]
    assert described_so(aten.nonzero.default, ChangedCall(aten.nonzero.default, call, []))

    flat = [["@int64 3x4 dense 0 2"], {}]  # it describes none: how many there are follows from the values
    assert not described_so(aten._unique2.default, ChangedCall(aten._unique2.default, flat, []))


def test_a_gradient_is_asked_with_deterministic_algorithms_and_without_and_leaves_the_mode() -> None:
    modes = []

    class Noted:
        _schema, _overloadname = aten.exp.default._schema, "default"

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            modes.append(torch.are_deterministic_algorithms_enabled())
            return x.exp()

    found: Any = Derived(Noted(), deterministic=True)(torch.zeros(2))

    assert modes == [True, False] and not torch.are_deterministic_algorithms_enabled()
    assert [len(one) for one in found] == [2, 2]


@pytest.mark.parametrize("rule", WIDER_RULES)
def test_the_rest_of_a_rule_waits_for_full_and_nothing_is_asked_twice(rule: str) -> None:
    cases, asked = Cases("conditions"), []
    add_rule(cases, rule, lambda overloads, bench: asked.append(overloads), most=1)
    for case in cases:
        assert case.full == case.quiet == case.id.endswith("-rest")
        case.act(None)
    rows = [(name, str(row)) for overloads in asked for name, rows in overloads for row in rows]

    assert sorted(rows) == sorted((name, str(row)) for name, rows in wider()[rule].items() for row in rows)


def test_every_out_of_a_call_is_laid_otherwise() -> None:
    for name, rows in wider()["outs"].items():
        for sample, *changes in rows:
            assert len(changes) == sum(is_written(overload(name), samples_of(name)[sample], as_out=True)), name
