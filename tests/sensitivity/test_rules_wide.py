"""The rules on gradients, windows, written operands and sizes: what they change, and that they leave nothing out."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from device_suite.overloads.described import VIEWS, overload, shape_of, texts
from device_suite.overloads.forwards import choices_of
from device_suite.rules.asked import stored
from device_suite.rules.asking import STEPS, roundings
from device_suite.rules.beside import is_beside
from device_suite.rules.changes import ChangedCall
from device_suite.rules.ways import DERIVE, asked_as
from device_suite.runs import Bench
from device_suite.states import run_case
from device_suite.touch import TouchRecorder
from rule_candidates import candidates, is_written
from rule_candidates_wide import completed
from rule_depth import rounds_once
from rule_verdicts import Overload
from rule_verdicts_wide import derived, written
from test_rules import CASES

aten = torch.ops.aten
CPU = torch.device("cpu")
_PAIR = [["@float32 5x7 dense 1 2", "@float32 5x7 dense 1 2"], {}]
# Views of which no gradient is asked: an alias of a size that reshape() makes, and the bits of a number.
_WITHOUT = {"_reshape_alias.default", "view.dtype"}


def _asked(rule: str) -> Any:
    """Yield (name, overload, changed call, changes) of what a rule asks."""
    for name, calls in stored()[rule].items():
        for sample, *changes in calls:
            func, call = overload(name), stored()["samples"][name][sample]
            yield name, func, ChangedCall(func, call, changes, choices_of(name)), changes


def test_windows_are_read_alone() -> None:
    asked = 0
    for name, func, call, changes in _asked("windows"):
        laid = [one[1] for one in changes if one[0] == "layout"]
        assert not any(is_written(func, call.call)[number] for number in laid), name
        assert all(len(shape_of(texts(call.call)[number])) > 1 for number in laid), name
        asked += 1
    assert asked > 300


def test_windows_share_elements_and_stay_in_their_memory() -> None:
    for shape in ((4, 6), (2, 5, 7), (3, 1, 2, 4, 3)):
        base = torch.arange(math.prod(VIEWS["windows"].base(shape)))
        view = VIEWS["windows"].cut(base, shape)
        assert view.shape == shape
        assert view.unique().numel() < view.numel()
        assert 0 < int(view.min()) < int(view.max()) < len(base) - 1


def test_what_is_laid_beside_the_result_is_written() -> None:
    for name, func, call, changes in _asked("written"):
        laid = [one[1] for one in changes if one[0] == "layout"]
        assert laid and all(is_written(func, call.call)[number] for number in laid), name


def test_a_result_that_is_laid_anew_is_not_asked() -> None:
    name = "histogram.bin_ct_out"
    call = [
        ["@float32 32 dense -4 4", 10],
        {"range": [-2.0, 3.0], "hist": "@float32 1 dense 0 0", "bin_edges": "@float32 1 dense 0 0"},
    ]
    changes = [["layout", 1, "step"]]

    reason, _ = written(Overload(overload(name), name, call), ChangedCall(overload(name), call, changes), changes)

    assert "anew" in reason


def test_every_view_is_asked_for_its_gradient() -> None:
    recorder = TouchRecorder()
    for case in (one for one in CASES.values() if one.id.startswith("derived-views-")):
        run_case(case, Bench(CPU, around=recorder.maker))
    views = {
        name
        for name in stored()["samples"]
        if any(one.alias_info is not None and not one.alias_info.is_write for one in overload(name)._schema.returns)
    }

    assert len(views) > 20
    assert views - {one.removeprefix("aten.") for one in recorder.seen} == _WITHOUT


def test_gradients_are_asked_of_the_public_function() -> None:
    called: list[Any] = []

    class Noting(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            called.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.tensor([0.0, 0.5])
    with Noting():
        (gradient,) = asked_as(aten.asin.default, None, [DERIVE])(x)

    assert torch.asin in called
    assert torch.allclose(gradient, torch.tensor([1.0, 2.0]) / (1 - x * x).sqrt())
    assert not x.requires_grad
    with pytest.raises(RuntimeError, match="gradient"):
        asked_as(aten.eq.Tensor, None, [DERIVE])(x, x)


def test_special_values_stand_in_each_operand_of_a_gradient_in_every_dtype() -> None:
    asked = {
        str([one for one in changes if one[0] in ("kind", "fill")]) for changes in _candidates("derived", "mul.Tensor")
    }
    missing = [
        (number, dtype)
        for number in (0, 1)
        for dtype in ("float16", "bfloat16")
        if str([["kind", "float32", dtype], ["fill", number, "every"]]) not in asked
    ]

    assert missing == []


def _candidates(rule: str, name: str) -> Any:
    return candidates(rule, overload(name), _PAIR)


def test_all_values_of_an_operand_are_asked_at_once_or_some() -> None:
    told = Overload(aten.mul.Tensor, "mul.Tensor", _PAIR)
    reasons = []
    for word in ("every", "unit"):
        changes = [["fill", 0, word], DERIVE]
        reasons.append(derived(told, ChangedCall(told.func, _PAIR, changes), changes)[0])

    assert reasons == ["", "more values are asked of this operand"]


def test_a_number_and_missing_statistics_become_tensors() -> None:
    changes, call = completed(aten.mul.Tensor, [["@float32 5x7 dense 1 2", 3.0], {}])
    assert changes == [["arg", "other", "@float32 5x7 dense 1 2"]]
    assert len(texts(call)) == 2

    legit = [["@float32 4x3 dense 0 1", "@float32 3 dense 1 2", None, None, None, True, 0.1, 1e-5], {}]
    changes, _ = completed(aten._native_batch_norm_legit.default, legit)
    assert changes == []  # its schema demands them
    update = overload("_batch_norm_with_update.default")
    assert completed(update, stored()["samples"]["_batch_norm_with_update.default"][0])[0] == []


def test_a_gradient_may_be_off_as_the_cpu_is_and_by_one_rounding() -> None:
    truth = [(torch.tensor([1.0, 1.0], dtype=torch.float64), "cpu")]
    own = [(torch.tensor([1.0 + 4 * 2**-10, 1.0], dtype=torch.float16), "cpu")]
    once = [(torch.tensor([1.0 + 2**-10, 1.0], dtype=torch.float16), "cpu")]
    other = [(torch.tensor([1.0, 1.0 + 2**-10], dtype=torch.float16), "cpu")]

    assert roundings(own, truth) == 4
    assert roundings(once, truth, own) < 0.6 < roundings(other, truth, own)
    assert any(STEPS in changes for _, _, _, changes in _asked("rounding"))


def test_answers_beside_the_cpus_are_near_and_whole_numbers_equal() -> None:
    want = torch.linspace(-3, 3, 100)
    assert is_beside([(want * (1 + 2**-12), "cpu")], [(want, "cpu")])
    assert not is_beside([(want.flip(0), "cpu")], [(want, "cpu")])
    assert not is_beside([(torch.arange(3) + 1, "cpu")], [(torch.arange(3), "cpu")])
    assert not is_beside([(want.half(), "cpu")], [(want, "cpu")])


def test_a_gradient_of_several_steps_is_no_single_rounding() -> None:
    half = torch.tensor([1.5, 2.5], dtype=torch.float16)

    def once(func: Any, *args: Any) -> bool:
        return rounds_once(asked_as(func, None, [DERIVE]), args, {})

    assert once(aten.mul.Tensor, half, half) and once(aten.silu.default, half) and once(aten.neg.default, half)
    assert not once(aten.acosh.default, half) and not once(aten.sqrt.default, half)


def test_what_is_open_in_float32_is_open_in_a_half() -> None:
    """hardtanh's gradient of NaN: vectors answer otherwise than one number after the other; halves have no vectors."""
    call = [["@float32 5x7 dense -2 2", -1, 1], {}]
    reasons = []
    for kind in ([], [["kind", "float32", "bfloat16"]]):
        changes = [*kind, ["put", 0, "nan"], DERIVE]
        func = overload("hardtanh.default")
        reasons.append(derived(Overload(func, "hardtanh.default", call), ChangedCall(func, call, changes), changes)[0])

    assert all("vectorised" in reason for reason in reasons)
