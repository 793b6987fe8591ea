"""What is not defined must not be called wrong: with these in place the suite passes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.cases import Case
from engine.compare import Leaf, Mismatch, bits_differ, compare_leaf, compare_leaves, is_far
from engine.runs import Bench
from engine.selection import MEMORY_LIMIT, why_not_here
from engine.states import run_case
from injecting import Faults
from suite_in_process import Suite

faults = Faults()


@faults.dispatched("aten.empty.memory_format", "aten.empty_like.default", "aten.new_empty.default")
def memory(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Fresh memory holds anything."""
    made = func(*args, **kwargs)
    if made.is_floating_point() and made.device.type == "cpu":
        hit()
        made.fill_(1e4)
    return made


@faults.dispatched("aten.sort.default", "aten.sort.stable")
def ties(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The order of equal values is open, but for a stable sort that was requested."""
    if kwargs.get("stable"):
        return func(x, *args, **kwargs)
    values, index = func(x, *args, **kwargs)
    if x.dim() == 2 and x.shape[0] == 1 and bool((values[:, 1:] == values[:, :-1]).any()):
        hit()
        same = values == values[:, :1]
        index[same] = index[same].flip(0)
    return values, index


@faults.dispatched("aten.index_copy.default", "aten.scatter.src")
def duplicates(hit: Any, func: Any, x: Any, dim: Any, index: Any, source: Any) -> Any:
    """Of equal indices any may win."""
    if dim == 0:
        hit()
        return func(x, dim, index.flip(0), source[: index.shape[0]].flip(0))
    return func(x, dim, index, source)


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite(("regressions",))


@pytest.mark.parametrize("name", ["memory", "ties", "duplicates"])
def test_what_is_not_defined_is_not_called_wrong(name: str, suite: Suite) -> None:
    wrong = suite.first_failure(suite.cases, faults.makers[name])

    assert faults.hits[name] > 0
    assert wrong is None, f"{wrong.case.id}: {wrong.failure}" if wrong else ""


def _leaf(*values: float, dtype: torch.dtype = torch.float32) -> Leaf:
    return Leaf("x", torch.tensor(values, dtype=dtype), "cpu", (1,))


@pytest.mark.parametrize(
    ("actual", "reference", "said"),
    [
        (_leaf(1.0, 2.02), _leaf(1.0, 2.0, dtype=torch.float64), "off by"),
        (_leaf(1.0, float("nan")), _leaf(1.0, 2.0, dtype=torch.float64), "NaN at other places"),
        (_leaf(1.0, float("inf")), _leaf(1.0, 2.0, dtype=torch.float64), "infinity at other places"),
        (_leaf(16777216, dtype=torch.int64), _leaf(16777217, dtype=torch.int64), "1 of 1 elements wrong"),
        (_leaf(1, dtype=torch.int32), _leaf(1, dtype=torch.int64), "dtype"),
        (_leaf(1.0), _leaf(1.0, 2.0, dtype=torch.float64), "shape"),
    ],
)
def test_a_wrong_answer_is_named(actual: Leaf, reference: Leaf, said: str) -> None:
    with pytest.raises(Mismatch, match=said):
        compare_leaf(actual, reference, lambda: None, terms=1, factor=4)

    fine = (_leaf(3.0), _leaf(3.0, dtype=torch.float64))
    with pytest.raises(Mismatch, match=said):
        compare_leaves([*[fine] * 9, (actual, reference), fine], lambda path: None, terms=1, factor=4)


def test_rounding_is_not_wrong() -> None:
    third = Leaf("x", torch.tensor([1 / 3], dtype=torch.float64), "cpu", (1,))
    alone = compare_leaf(_leaf(1 / 3), third, lambda: None, terms=1, factor=4)

    assert 0 < alone.max_abs < 1e-7
    complex_pair = Leaf("x", torch.tensor([1j])), Leaf("x", torch.tensor([1j], dtype=torch.complex128))
    pairs = [(_leaf(3.0, 4.0), _leaf(3.0, 4.0, dtype=torch.float64))] * 9 + [(_leaf(1 / 3), third), complex_pair]
    assert compare_leaves(pairs, lambda path: None, terms=1, factor=4) == alone


def test_an_answer_with_nan_at_other_places_is_far_and_no_fault_of_the_device() -> None:
    one, other = torch.tensor([1.0, float("nan")]), torch.tensor([1.0, 2.0])

    assert is_far(one, other)  # of the CPU's own, which some kernels leave in part unwritten
    assert not is_far(other, other.clone())


@pytest.mark.parametrize("wrong", ["other bits", "other strides"])
def test_a_second_call_that_answers_otherwise_is_wrong(wrong: str) -> None:
    calls = []

    def act(run: Any, x: torch.Tensor) -> torch.Tensor:
        calls.extend([x] * run.tested)
        if not run.tested or len(calls) == 1:
            return x + 0
        return x.t().contiguous().t() if wrong == "other strides" else x * (1 + 2e-7)

    case = Case("again", "regressions", act, make=lambda d: d.normal(3, 4), states=("fresh", "again"), strides=True)
    with pytest.raises(Mismatch, match=r"again: .*(different answers|strides)"):
        run_case(case, Bench(torch.device("cpu")))


def test_a_case_that_needs_more_memory_than_the_driver_allows_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("large", "regressions", torch.neg, memory_bytes=2 << 20)

    assert why_not_here(case, device=torch.device("cpu"), full=False) is None
    monkeypatch.setenv(MEMORY_LIMIT, str(1 << 20))
    said = why_not_here(case, device=torch.device("cpu"), full=False)
    assert said is not None and said.endswith("are what the watchdog allows")


def test_a_changed_bit_is_seen() -> None:
    one = torch.tensor([1.0, float("nan")])
    assert not bits_differ(Leaf("x", one), Leaf("x", one.clone()))
    assert bits_differ(Leaf("x", one), Leaf("x", torch.tensor([1.0000001, float("nan")])))
