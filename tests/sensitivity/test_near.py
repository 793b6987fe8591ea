"""What lies beside the CPU's own answers, and what does not: an answer that is absent is none that is near."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from device_suite.compare import Mismatch
from device_suite.near import demand_near
from device_suite.runs import Bench

_CPU = torch.device("cpu")


class _Turns:
    """An act that answers first, as the device, one thing, and then, as the CPU, another."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    def __call__(self, x: torch.Tensor) -> Any:
        return self._answers.pop(0)


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
