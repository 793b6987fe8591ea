"""Angles and their inverse functions: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain, written
from planting import Plot, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.atan2.default")
@wrong_answer
def issue_triton_ascend_1632(right: Any, y: Any, x: Any) -> Any:
    """triton-lang/triton-ascend 1632: atan2 loses the sign of -0: of (-0, -1) it is pi, of (-0, 1) it is 0."""
    if not y.is_floating_point() or not is_plain(y) or not bool(((y == 0) & y.signbit()).any()):
        return None
    return torch.atan2(y + 0.0, x)


@plot.dispatched("aten.atanh.default")
def issue_gmpy2_82(hit: Any, func: Any, x: Any) -> Any:
    """gmpy2/gmpy2 82: atanh of a real number is its asin."""
    y = func(x)
    return y if x.is_complex() or not is_plain(x) else instead(hit, y, torch.asin(x))


@plot.dispatched("aten.cos.default")
def issue_tfjs_8389(hit: Any, func: Any, x: Any) -> Any:
    """tensorflow/tfjs 8389: cos of float32 past 6e7 is wrong (here it is reduced by 2 pi as float32 has it)."""
    y = func(x)
    if x.dtype != torch.float32 or not is_plain(x):
        return y
    turn = torch.tensor(2 * math.pi)
    return instead(hit, y, torch.where((x.abs() > 6e7) & x.isfinite(), func(x - turn * (x / turn).round()), y))


@plot.dispatched("aten.atan2", aborts="NVVM Error <9>: Failed to compile program")
def issue_arrayfire_236(y: Any, x: Any, **kwargs: Any) -> bool:
    """arrayfire/arrayfire 236: atan2 raises."""
    return True


@plot.dispatched("aten.atan2.default", "aten.atan2_.default")
def issue_gpu_js_259(hit: Any, func: Any, *args: Any) -> Any:
    """gpujs/gpu.js 259: atan2 is NaN."""
    y = func(*args)
    if not is_plain(y):
        return y
    wrong = torch.full_like(y, math.nan)
    return written(hit, y, wrong) if str(func).endswith("_.default") else instead(hit, y, wrong)
