"""The rules over all overloads notice the fault that each is for, and a right device passes."""

from __future__ import annotations

import math
from typing import Any, Callable

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from device_suite.cases import Case
from device_suite.overloads.described import dtype_of, overload, texts
from device_suite.overloads.forwards import choices_of
from device_suite.rules.asked import RULES, stored
from device_suite.rules.changes import ChangedCall
from device_suite.runs import Bench
from device_suite.states import run_case
from rule_calls import in_float32
from rule_candidates import candidates, is_written
from rule_verdicts import Overload, reads_beyond, special
from suite_in_process import Suite

aten = torch.ops.aten
Fault = Callable[[Any, Any, Any], Any]


class _Faulty(TorchDispatchMode):
    """Answers as a fault does; `fault` gets (overload, positional arguments, the others)."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self._fault = fault

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._fault(func, list(args), dict(kwargs or {}))


def _right(func: Any, args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs)


def _clamps_places(func: Any, args: Any, kwargs: Any) -> Any:
    if func is aten.index_select.default:
        args[2] = args[2].clamp(0, args[0].shape[args[1]] - 1)
    return func(*args, **kwargs)


def _takes_any_bias(func: Any, args: Any, kwargs: Any) -> Any:
    try:
        return func(*args, **kwargs)
    except RuntimeError:
        if func is not aten.native_layer_norm.default:
            raise
        return args[0], args[0], args[0]


def _writes_before_it_refuses(func: Any, args: Any, kwargs: Any) -> Any:
    try:
        return func(*args, **kwargs)
    except RuntimeError:
        if func is aten.addmm.default:
            args[1].zero_()
        raise


def _loses_nan(func: Any, args: Any, kwargs: Any) -> Any:
    if func is aten.addmm.default:
        args[2] = args[2].nan_to_num(0.0)
    return func(*args, **kwargs)


def _stale() -> Fault:
    """Keep a constant of the first call with these shapes and dtypes: the graph's key lacks `alpha`."""
    known: dict[Any, Any] = {}

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        if func is aten.add.Tensor:
            key = tuple((x.shape, x.dtype) for x in args if isinstance(x, torch.Tensor))
            kwargs["alpha"] = known.setdefault(key, kwargs.get("alpha", 1))
        return func(*args, **kwargs)

    return fault


def _dense(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    return answer.contiguous() if func is aten.exp.default else answer


def _copies(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    return answer.clone() if func is aten.transpose.int else answer


def _rounds_twice(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    if func is aten.lerp.Tensor and answer.dtype == torch.float16:
        return args[0] + args[2] * (args[1] - args[0])
    return answer


def _answers_nan(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    return answer * math.nan if func is aten.lerp.Tensor and answer.dtype == torch.float16 else answer


def _overwrites(func: Any, args: Any, kwargs: Any) -> Any:
    """Convert in the source's own memory: pytorch 189563."""
    answer = func(*args, **kwargs)
    if func is aten._to_copy.default and args[0].dtype == torch.float32 and answer.dtype == torch.float16:
        args[0].zero_()
    return answer


def _own_generator(func: Any, args: Any, kwargs: Any) -> Any:
    """Draw from the default generator too, whatever generator is given."""
    if kwargs.get("generator") is not None:
        torch.rand(3)
    return func(*args, **kwargs)


def _cases() -> dict[str, Case]:
    return {case.id: case for case in Suite(["conditions", "random"]).cases}


CASES = _cases()


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        ("places-index_select", _clamps_places),
        ("refused-native_layer_norm", _takes_any_bias),
        ("refused-addmm", _writes_before_it_refuses),
        ("special-addmm", _loses_nan),
        ("turns-add", _stale()),
        ("form-exp", _dense),
        ("form-transpose", _copies),
        ("rounding-lerp", _rounds_twice),
        ("rounding-lerp", _answers_nan),
        ("conversion-float32", _overwrites),
        ("random-stream-rand", _own_generator),
    ],
)
def test_a_rule_notices_its_fault(case: str, fault: Fault) -> None:
    run_case(CASES[case], Bench(torch.device("cpu"), around=lambda: _Faulty(_right)))
    with pytest.raises(AssertionError):
        run_case(CASES[case], Bench(torch.device("cpu"), around=lambda: _Faulty(fault)))


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
        every = texts(stored()["samples"][name][0])
        for _, *changes in asked:
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

    reason, _ = special(Overload(func, "hardtanh_backward.default", call), ChangedCall(func, call, [["put", 1, "nan"]]), [])

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
