"""What lies beside the CPU's own answers, and what does not: an answer that is absent is none that is near."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from device_suite.cases import Cases
from device_suite.compare import Mismatch
from device_suite.near import add_beside, demand_near
from device_suite.runs import Bench
from device_suite.states import Refused

_CPU = torch.device("cpu")


class _Turns:
    """An act that answers first, as the device, one thing, and then, as the CPU, another."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    def __call__(self, x: torch.Tensor) -> Any:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_what_is_off_by_less_than_the_share_is_near() -> None:
    x = torch.tensor([1.0, 2.0])
    error = demand_near(_Turns([x + 0.01, None], [x, None]), (x,), Bench(_CPU), 0.01)
    assert error.max_abs == pytest.approx(0.01, rel=1e-4) and error.bound == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ([torch.ones(3)], "1 answers, the CPU gives 2"),
        ([torch.ones(3), None], "None, the CPU gives tensor"),
        ([torch.ones(3), torch.ones(2)], r"float32 \(2,\), the CPU gives torch.float32 \(3,\)"),
        ([torch.ones(3), torch.ones(3).half()], "float16"),
        ([torch.ones(3), torch.tensor([1.0, math.nan, 1.0])], "off by nan"),
        ([torch.ones(3), torch.full((3,), math.inf)], "off by inf"),
        ([torch.ones(3), torch.tensor([1.0, 1.0, 1.02])], "off by 0.02"),
    ],
)
def test_what_is_absent_or_further_off_is_told(answer: Any, text: str) -> None:
    with pytest.raises(Mismatch, match=text):
        demand_near(_Turns(answer, [torch.ones(3), torch.ones(3)]), (torch.ones(1),), Bench(_CPU), 0.01)


def _ask(forms: dict[str, Any], **bound: Any) -> None:
    cases = Cases("conditions")
    add_beside(cases, "x", forms, lambda draw: (torch.ones(1),), **bound)
    (case,) = cases
    case.act(Bench(_CPU))


@pytest.mark.parametrize(
    ("answer", "mine"),
    [
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (torch.tensor([1.0]), torch.tensor([math.nan])),
        (torch.tensor([math.inf]), torch.tensor([-math.inf])),
        (torch.tensor([1.0000001]), torch.tensor([1.0])),
        (torch.tensor([1]), torch.tensor([2])),
        (torch.tensor([1]), torch.tensor([1.0])),
        ([torch.ones(1)], [torch.ones(1), torch.ones(1)]),
        (RuntimeError("a refusal"), torch.ones(1)),  # of all forms there are
    ],
)
def test_a_form_that_differs_by_a_bit_or_is_refused_is_told(answer: Any, mine: Any) -> None:
    with pytest.raises(AssertionError, match="1 of 1 forms differ from the CPU's answer: form"):
        _ask({"form": _Turns(answer, mine)})


def test_a_nan_is_a_nan_and_a_share_is_of_the_largest_or_of_each_number() -> None:
    x, y = torch.tensor([1.0, 100.0]), torch.tensor([1.01, 100.0])

    _ask({"form": _Turns(torch.tensor([math.nan]), torch.tensor([-math.nan]))})
    _ask({"form": _Turns(y, x)}, share=0.001)
    with pytest.raises(AssertionError, match="1 of 2 numbers"):
        _ask({"form": _Turns(y, x)}, share=0.001, floor=0.5)


def test_what_the_cpu_refuses_is_not_asked() -> None:
    with pytest.raises(Refused):
        _ask({"form": _Turns(torch.ones(1), RuntimeError("a refusal"))})
