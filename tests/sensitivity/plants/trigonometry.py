"""Angles and their inverse functions: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
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
