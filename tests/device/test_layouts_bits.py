"""Bits: conversions whose every bit is defined, and integers that float32 cannot hold."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases

cases = Cases("layouts")


# Halves are compared as integers.
def _bits(x: Any) -> Any:
    return x.contiguous().view(torch.int16)


@cases.case(
    "layout-conversions",
    make=lambda d: (
        d.normal(5, 70 + d.k, scale=30.0),
        d.normal(5, 70 + d.k, dtype=torch.float16),
        d.normal(5, 70 + d.k, dtype=torch.bfloat16),
    ),
)
def _rounding_of_conversions(run: Any, x: Any, h: Any, b: Any) -> Any:
    wide, half, brain = run.cast(torch.float32), torch.float16, torch.bfloat16
    return (
        [_bits(view.to(dtype)) for view in (x, x.t(), x[1:, ::2]) for dtype in (half, brain)],
        _bits(h.to(half)),
        _bits(b.to(brain)),
        [
            view.to(dtype)
            for view in (x, x.t(), x[1:])
            for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.bool)
        ],
        x.abs().to(torch.uint8),
        h.to(torch.int32),
        b.to(torch.int64),
        x.long().to(wide),
        (x * 0).to(torch.bool),
        x.round().int(),
        x.trunc().long(),
    )


def _wide_integers(x: Any, y: Any, i: Any) -> Any:
    rows = i[:, None].expand(-1, x.shape[1])
    return (
        x + y,
        x - y,
        x * 3 - 1,
        -x,
        x.abs(),
        torch.maximum(x, y),
        x == y + 0,
        x > y,
        x // 7,
        x % 1001,
        x & y,
        x | y,
        x ^ y,
        ~x,
        x >> 3,
        x << 2,
        x.clone(),
        x[i],
        x.t().contiguous(),
        torch.where(x > y, x, y),
        torch.gather(x, 0, rows),
        torch.index_select(x, 0, i),
        torch.cat((x, y)),
        x.sum(),
        x.sum(0),
        x.max(),
        x.min(1),
        x.sort(1),
        x.cumsum(0),
        x.flip(0),
        x.clamp(min=5),
        torch.zeros_like(x).scatter_(0, rows, y[: i.shape[0]]),
        x.roll(1),
        x.tril(),
        x.to(torch.int32),
        x.masked_fill(x > y, 16777217),
        x.index_fill(0, i[:1], 33554433),
        x.unique(),
        x.topk(2)[0],
        x.tolist()[0],
        x[1, 1].item(),
        x.clone().add_(y).sub_(1).mul_(2),
        torch.div(x, y, rounding_mode="floor"),
        x.clone().copy_(y.t().contiguous().t()),
        torch.eq(x, x),
        x.ne(y).sum(),
        x.repeat(2, 1),
        x.argmax(),
        torch.stack((x, y)),
        torch.bitwise_and(x, 255),
        x.prod(1) * 0 + 1,
        x.diff(),
        torch.remainder(x, 4099),
        torch.fmod(x, 4099),
    )


# Past 2**24 float32 loses integers; products stay within the type.
for _dtype, _low, _high in ((torch.int64, 1 << 40, 1 << 41), (torch.int32, 1 << 24, 1 << 26)):
    cases.add(
        f"layout-wide-{str(_dtype)[6:]}",
        _wide_integers,
        make=lambda d, dtype=_dtype, low=_low, high=_high: (
            d.integers(low, high, 5, 6 + d.k, dtype=dtype) | 1,
            d.integers(low, high, 5, 6 + d.k, dtype=dtype) | 1,
            torch.tensor([3, 0, 4]),
        ),
    )
