"""Faults for the device's run of a training, each of a kind that MPS has had."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

HITS = {"GeluBackward": 0, "wrong_metric": 0, "NotANumber": 0, "ShortSum": 0, "never": 0}


class GeluBackward(TorchDispatchMode):
    """GELU's gradient is a fiftieth too large: training learns all the same."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if str(func) == "aten.gelu_backward.default":
            HITS["GeluBackward"] += 1
            return out * 1.02
        return out


class NotANumber(TorchDispatchMode):
    """The tenth loss is none."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if str(func) == "aten.nll_loss_forward.default":
            HITS["NotANumber"] += 1
            if HITS["NotANumber"] == 10:
                return (out[0] * float("nan"), *out[1:])
        return out


class ShortSum(TorchDispatchMode):
    """A product of matrices misses its last term: what is written and what is learnt is other."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(func) in ("aten.addmm.default", "aten.mm.default"):
            HITS["ShortSum"] += 1
            *rest, left, right = args
            return func(*rest, left[:, :-1], right[:-1], **(kwargs or {}))
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def wrong_metric() -> Iterator[None]:
    """argmax gives the next class for every eighth row: nothing but the accuracy shows it."""
    right = torch.Tensor.argmax

    def argmax(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        HITS["wrong_metric"] += 1
        answer = right(tensor, *args, **kwargs).clone()
        answer[::8] += 1
        return answer

    torch.Tensor.argmax = argmax  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        torch.Tensor.argmax = right  # type: ignore[method-assign]


@contextlib.contextmanager
def never() -> Iterator[None]:
    """Fires nowhere."""
    yield
