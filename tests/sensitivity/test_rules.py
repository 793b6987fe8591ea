"""The rules over all overloads notice the fault that each is for, and a right device passes."""

from __future__ import annotations

import inspect
import math
from typing import Any

import pytest
import torch

from device_suite.cases import Case
from device_suite.overloads.described import dtype_of, overload, texts
from device_suite.overloads.forwards import choices_of
from device_suite.rules.asked import RULES, samples_of, stored, wider
from device_suite.rules.changes import ChangedCall
from device_suite.rules.modules import MODULES, NOT_ASKED
from device_suite.runs import Bench
from device_suite.states import run_case
from fuller_samples import faults, fuller_call, fuller_calls
from rule_candidates import candidates, is_written
from rule_faults import FAULTS, Fault, Faulty, drops_what_is_past, right
from rule_faults_operands import FAULTS as OPERAND_FAULTS
from rule_faults_options import FAULTS as OPTION_FAULTS
from rule_faults_wide import FAULTS as WIDE_FAULTS
from rule_samples import in_float32
from rule_verdicts import Overload, reads_beyond, special
from suite_in_process import Suite

aten = torch.ops.aten


def _cases() -> dict[str, Case]:
    return {case.id: case for case in Suite(["conditions", "random"]).cases}


CASES = _cases()


@pytest.mark.parametrize(("case", "fault"), FAULTS + WIDE_FAULTS + OPTION_FAULTS + OPERAND_FAULTS)
def test_a_rule_notices_its_fault(case: str, fault: Fault) -> None:
    run_case(CASES[case], _faulty_bench(right))
    with pytest.raises(AssertionError):
        run_case(CASES[case], _faulty_bench(fault))


def test_the_fault_of_a_threshold_shows_nowhere_below_it() -> None:
    """A case that asks below, at and above is needed: what asks no size above passes."""
    with pytest.raises(AssertionError, match="out"):
        run_case(CASES["threshold-inner-float32"], _faulty_bench(drops_what_is_past(65_536)))
    run_case(CASES["threshold-inner-float32"], _faulty_bench(drops_what_is_past(65_537)))


def _faulty_bench(fault: Fault) -> Bench:
    return Bench(torch.device("cpu"), around=lambda: Faulty(fault))


def test_every_module_that_keeps_something_is_asked_or_says_why_not() -> None:
    keeps = {name for name in torch.nn.modules.__all__ if _keeps(getattr(torch.nn, name))}

    assert len(keeps) > 55
    assert keeps == {*(name for name in MODULES if hasattr(torch.nn, name)), *NOT_ASKED}
    assert not set(MODULES) & set(NOT_ASKED)


def _keeps(kind: Any) -> bool:
    """Say whether the source of a class, or of one that it is made of, makes parameters, buffers or modules."""
    own = [one for one in kind.__mro__ if one not in (torch.nn.Module, object) and one.__module__[:8] == "torch.nn"]
    words = ("Parameter(", "register_buffer(", "register_parameter(", "self_attn", "Sequential(")
    return any(word in inspect.getsource(one) for one in own for word in words)


def test_no_rule_writes_to_memory_in_which_places_are_one() -> None:
    """Met with _softmax_backward_data.out: the CPU writes beyond such a result."""
    for name, asked in stored()["form"].items():
        written = is_written(overload(name), stored()["samples"][name][0])
        for _, *changes in asked:
            assert not any(one[0] == "layout" and one[2] == "expanded" and written[one[1]] for one in changes), name


def test_every_sample_is_asked_by_a_rule() -> None:
    asked = {name for rule in RULES for name in stored()[rule]}

    assert len(asked) > 1100
    assert asked <= set(stored()["samples"])


def test_live_memory_lies_around_a_view_whose_places_are_wrong() -> None:
    call = [["@float32 3x4 dense 1 2", 0, "@int64 2 dense 0 2"], {}]
    made = ChangedCall(aten.index_select.default, call, [["layout", 0, "inside"], ["place", 1, 3]])
    (x, _, places), _ = made.arguments(made.bases, torch.device("cpu"), lambda dtype: dtype)

    assert made.bases[0].shape == (7, 4) and x.storage_offset() == 8
    assert 3 in places.tolist()


def test_special_values_stand_in_one_operand_alone() -> None:
    call = [["@float32 3x4 dense 1 2", "@float32 3x4 dense 1 2"], {}]
    made = ChangedCall(aten.add.Tensor, call, [["put", 1, "none"]])

    assert bool(made.bases[0].isfinite().all())
    assert [float(one) for one in made.bases[1].flatten()[6:9]][1:] == [math.inf, -math.inf]
    assert bool(made.bases[1].flatten()[6].isnan())


def test_candidates_are_lists_that_a_call_can_have() -> None:
    call = [["@float32 3x4 dense 1 2", "@float32 4x5 dense 1 2"], {}]
    for rule in RULES:
        for changes in candidates(rule, aten.mm.default, call):
            assert len(texts(ChangedCall(aten.mm.default, call, changes).call)) == 2


def test_no_rule_puts_a_place_where_the_cpu_would_write_anywhere() -> None:
    """Met with max_pool2d_with_indices_backward: it looks at no index, and one run in three ended in a signal."""
    for name in stored()["places"]:
        assert choices_of(name) is None, name
    for name, asked in stored()["special"].items():
        for sample, *changes in asked:
            every = texts(samples_of(name)[sample])
            beside = any(dtype_of(one).is_floating_point for one in every)
            plain = not any(one[0] == "kind" for one in changes)
            assert not (beside and plain and not dtype_of(every[changes[-1][1]]).is_floating_point), name


def test_what_the_cpu_reads_beyond_an_operand_is_not_asked() -> None:
    """Met with _ctc_loss.Tensor: a false alarm in one run of some, by lengths past its targets."""
    (call,) = stored()["samples"]["_ctc_loss.Tensor"]

    assert reads_beyond(aten._ctc_loss.Tensor, ChangedCall(aten._ctc_loss.Tensor, call, [["swap", 3, 5]]))
    assert not reads_beyond(aten._ctc_loss.Tensor, ChangedCall(aten._ctc_loss.Tensor, call, []))


def test_indices_follow_from_the_values_that_were_put_into_their_input() -> None:
    name = "max_pool2d_with_indices_backward.default"
    call = [["@float32 1x1x1x1 dense 1 1", "@float32 1x1x2x2 dense 0 1", [2, 2], [2, 2], [0, 0], [1, 1], False], {}]
    call[0].append("@int64 1x1x1x1 dense 0 3")  # type: ignore[attr-defined]

    _, x, chosen = ChangedCall(overload(name), call, [["put", 1, "inf"]], choices_of(name)).bases

    assert x.reshape(-1)[chosen.item()] == math.inf


def test_a_gradient_of_whole_numbers_is_asked_in_float32() -> None:
    func = overload("avg_pool2d_backward.default")
    call = [["@int64 1x1x1x1 dense 0 0", "@int64 1x1x2x2 dense -9 6", [2, 2], [], [0, 0], False, True, None], {}]

    gradient, x, *_ = in_float32(func, call)[0]

    assert (gradient, x) == ("@float32 1x1x1x1 dense -1 1", "@float32 1x1x2x2 dense -4 4")
    whole = [name for name, calls in stored()["samples"].items() if in_float32(overload(name), calls[0]) != calls[0]]
    assert whole == []


def test_what_the_cpus_vector_code_answers_otherwise_is_not_asked() -> None:
    """hardtanh's gradient of NaN: 0 in vectors, the gradient that came in beside gaps in memory."""
    func = overload("hardtanh_backward.default")
    call = [["@float32 5x7 dense -2 2", "@float32 5x7 dense -2 2", -1, 1], {}]

    reason, _ = special(
        Overload(func, "hardtanh_backward.default", call), ChangedCall(func, call, [["put", 1, "nan"]]), []
    )

    assert "vectorised" in reason


def test_no_infinity_is_put_where_formulas_choose_what_comes_of_it() -> None:
    half = [[["@float32 7 dense 1 2"], [0.5]], {}]
    other = [[["@float32 7 dense 1 2"], [1.5]], {}]
    pow_, between = overload("_foreach_pow.ScalarList"), overload("linspace.Tensor_Tensor")
    ends = [["@float32 - dense 0 0", "@float32 - dense 1 1", 5], {}]

    def words(func: Any, call: Any) -> set[Any]:
        return {change[-1][2] for change in candidates("special", func, call)}

    assert words(pow_, other) - words(pow_, half) == {"-inf"}
    assert words(between, ends) == {"nan"}


def test_no_overload_is_asked_with_calls_that_say_less_than_another_that_is_answered() -> None:
    """Of one element, of equal numbers, or without an operand: what a rule changes in such a call says little."""
    names = {*stored()["samples"], *wider()["samples"]}
    lacking = [name for name in sorted(names) if fuller_calls(name, samples_of(name))]

    assert lacking == []


def test_a_call_says_less_with_equal_numbers_sides_of_one_and_operands_left_out() -> None:
    linear = torch.ops.aten.linear.default
    full = [["@float32 3x6 dense -2 2", "@float32 4x6 dense -2 2", "@float32 4 dense -2 2"], {}]

    assert faults(linear, full) == 0
    assert faults(linear, [["@float32 3x6 dense -2 2", "@float32 4x6 dense 2 2"], {}]) == 2
    assert faults(linear, [["@float32 1x6 dense -2 2", *full[0][1:]], {}]) == 1
    assert faults(linear, [["@int64 3x6 dense -2 2", "@int64 4x6 dense -2 2", "@int64 4 dense -2 2"], {}]) == 1


def test_a_call_of_little_is_mended_so_that_the_cpu_answers_it() -> None:
    call = fuller_call("trace.default", [[["@complex64 0x7 dense 0 1"], {}]])

    assert faults(torch.ops.aten.trace.default, call) == 0


def test_places_that_are_fractions_and_options_turned_are_asked_where_the_cpu_refuses_them() -> None:
    places = [change for _, *changes in stored()["refused"]["put.default"] for change in changes]
    turned = [change for _, *changes in wider()["options"]["linalg_solve.default"] for change in changes]

    assert ["dtype", 1, "float32"] in places
    assert ["arg", "left", False] in turned
