"""The fresh sample: drawn by a seed alone, each fault with a witness, each mechanism wrong where it says so."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import fresh_faults
from fresh_faults import Fault, drawn, is_shown
from mechanisms import MECHANISMS

ADD, SUM, ADD_OUT, MUL_ = torch.ops.aten.add.Tensor, torch.ops.aten.sum.dim_IntList, torch.ops.aten.add.out, None
BY_NAME = {one.name: one for one in MECHANISMS}
X = torch.arange(1.0, 13.0).view(3, 4)
# A mechanism, its place, an overload, a call that meets its condition and one that does not.
ROWS: dict[str, Any] = {
    "permuted operand read as it lies": ("self", ADD, (X.t(), torch.ones(4, 3)), (X, X)),
    "operand with gaps read as it lies": ("other", ADD, (torch.ones(3, 2), X[:, ::2]), (X.t(), X.t())),
    "offset of an operand dropped": ("self", ADD, (X[1:], X[:2]), (X[:2], X[1:])),
    "expanded operand refused": ("other", ADD, (X, X[:1].expand(3, 4)), (X, X[:1])),
    "a dtype's last element": (torch.float16, ADD, (X.half(), X.half()), (X, X)),
    "two dtypes refused": ("other", ADD, (X, X.half()), (X, X)),
    "past 2**16 elements": ("", ADD, (torch.ones(70_000), torch.ones(1)), (torch.ones(60_000), torch.ones(1))),
    "past a tile": (16, ADD, (torch.ones(17), torch.ones(1)), (torch.ones(32), torch.ones(1))),
    "empty operand refused": ("self", ADD, (X[:0], X[:0]), (X, X)),
    "operand without dimensions read as 0": ("other", ADD, (X, torch.tensor(2.0)), (X, torch.ones(1))),
    "of so many dimensions refused": (5, ADD, (X[None, None, None], X), (X[None, None], X)),
    "a special value lost": (("other", "nan"), ADD, (X, X * float("nan")), (X * float("nan"), X)),
    "integers read through float32": ("self", ADD, (torch.tensor([2**24 + 1]), torch.tensor([0])), (X, X)),
    "option ignored": ("alpha", ADD, (X, X, 2), (X, X, 1)),
    "negative dimension not wrapped": ("dim", SUM, (torch.rand(2, 3, 4), [-1, -3]), (X, [1])),
    "dimension that is not the last": ("dim", SUM, (X, [0]), (X, [1])),
}


def _answer(fault: Fault, func: Any, args: Any, kwargs: Any = None) -> Any:
    with fault():
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ROWS)
def test_a_mechanism_is_wrong_where_its_condition_is_met_and_nowhere_else(name: str) -> None:
    detail, func, meeting, other = ROWS[name]
    if len(meeting) == 3:
        meeting, other, more = meeting[:2], other[:2], ({"alpha": meeting[2]}, {"alpha": other[2]})
    else:
        more = ({}, {})
    fault = Fault(str(func), BY_NAME[name], detail)

    assert torch.equal(_answer(fault, func, other, more[1]).nan_to_num(), func(*other, **more[1]).nan_to_num())
    assert fault.hits == 0
    if "refused" in name:
        with pytest.raises(RuntimeError, match="refused by the injected fault"):
            _answer(fault, func, meeting, more[0])
    else:
        right = func(*meeting, **more[0])
        wrong = _answer(fault, func, meeting, more[0])
        assert not torch.equal(wrong, right)
    assert fault.hits == 1


def test_a_lost_write_is_lost() -> None:
    base = torch.zeros(3, 8)
    fault = Fault(str(ADD_OUT), BY_NAME["write to a destination with gaps lost"], "out")

    _answer(fault, ADD_OUT, (X, X), {"out": base[:, ::2]})
    assert fault.hits == 1
    assert not base.any()


@pytest.mark.parametrize(("name", "detail"), [("answer", ""), ("option", "alpha")])
def test_a_stale_answer_comes_with_the_second_call(name: str, detail: str) -> None:
    fault = Fault(str(ADD), BY_NAME[f"{name} of an earlier call of the same form"], detail)

    assert torch.equal(_answer(fault, ADD, (X, X), {"alpha": 1}), 2 * X)
    assert torch.equal(
        _answer(fault, ADD, (X, 2 * X), {"alpha": 2 if name == "option" else 1}), (3 if detail else 2) * X
    )
    assert fault.hits == 1


def test_a_fault_that_no_call_shows_has_no_witness() -> None:
    calls = [((X, X), {})]

    assert is_shown(Fault(str(ADD), BY_NAME["permuted operand read as it lies"], "self"), ADD, calls)
    assert not is_shown(Fault(str(ADD), BY_NAME["channels_last operand read as it lies"], "self"), ADD, calls)


def test_a_seed_draws_the_same_faults_and_another_seed_others(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = {ADD: [((X, X), {})], SUM: [((X, [0]), {})], torch.ops.aten.exp.default: [((X,), {})]}
    names = [[str(one) for one in drawn(seed, 12, calls).faults] for seed in (1, 1, 2)]

    assert names[0] == names[1] != names[2]
    assert len(set(names[0])) == 12
    assert fresh_faults.KERNELS.is_file()
