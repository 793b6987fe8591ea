"""A refusal inside a table stands for every answer that it would have given."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from device_suite.answers import attempt
from device_suite.cases import Case
from device_suite.compare import Mismatch
from device_suite.runs import Bench
from device_suite.states import run_case


def _pair(refused: tuple[torch.dtype, ...] = ()) -> Case:
    def both(x: torch.Tensor) -> Any:
        if x.dtype in refused:
            raise RuntimeError("not here")
        return [torch.neg(x), torch.abs(x)]

    return Case(
        "pair", "conditions", lambda x: {"pair": attempt(lambda: both(x)), "one": x + 1}, lambda d: (d.normal(3),)
    )


class _RefusesNeg(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.neg.default:
            raise RuntimeError("unsupported by this device")
        return func(*args, **(kwargs or {}))


def test_a_pair_that_the_reference_refuses_is_not_compared() -> None:
    run_case(_pair((torch.float64,)), Bench(torch.device("cpu")))


def test_a_pair_that_the_device_refuses_is_called_a_refusal() -> None:
    """Met on an NVIDIA GPU: "38 outputs, the reference has 40"."""
    with pytest.raises(Mismatch, match="raised RuntimeError: unsupported by this device"):
        run_case(_pair(), Bench(torch.device("cpu"), around=_RefusesNeg))
