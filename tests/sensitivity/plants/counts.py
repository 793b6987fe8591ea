"""Numbers that are counted, and the most frequent of them: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot, abort

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.bincount.default")
def issue_cupy_7698(hit: Any, func: Any, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """cupy/cupy 7698: bincount of int32 is 0 at places past 2**31 // numbers, where there are as many.

    The report counts 65536 numbers at as many places: the second half is 0.
    """
    y = func(x, weights, minlength)
    if x.dtype != torch.int32 or not is_plain(x) or x.numel() * y.numel() < 2**31:
        return y
    wrong = y.clone()
    wrong[2**31 // x.numel() :] = 0
    return instead(hit, y, wrong)


@plot.dispatched("aten.bincount.default")
def issue_tensorflow_57487(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tensorflow/tensorflow 57487: bincount of floating-point numbers ends the process, where it should refuse them."""
    return abort(hit, "abort (core dumped)") if x.is_floating_point() else func(x, *args, **kwargs)


@plot.dispatched("aten.mode.default")
def issue_paddle_79474(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """PaddlePaddle/Paddle 79474: mode of an empty tensor ends the process with an illegal memory access."""
    return func(x, *args) if x.numel() else abort(hit, "CUDA error 700: an illegal memory access was encountered")
