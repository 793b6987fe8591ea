"""Rule 3: past 2**20, 2**22 and 2**24 elements in one call, of which places in between and both ends are compared.

A group of 160**3 numbers: https://github.com/tinygrad/tinygrad/issues/11782; powers and constants that write nothing:
https://github.com/PaddlePaddle/Paddle/issues/73258; float32 cannot count beyond 2**24.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.limits import add_table, each_shown

cases = Cases("conditions")
Form = Callable[..., Any]


def _spread(x: torch.Tensor, count: int) -> torch.Tensor:
    """Return as many numbers, those of `x` in turn."""
    return x.repeat(-(-count // len(x)))[:count]


_BY_NAME = "abs neg exp log1p sqrt tanh sigmoid erf round floor reciprocal relu isnan atan".split()
# x of 2**20 and some: y is x the other way round.
_POINTWISE: dict[str, Form] = {
    **{name: lambda x, y, name=name: getattr(torch, name)(x) for name in _BY_NAME},
    **{name: lambda x, y, name=name: getattr(F, name)(x) for name in ("gelu", "silu", "softplus")},
    **{
        name: lambda x, y, name=name: getattr(torch, name)(x, y)
        for name in ("add", "sub", "mul", "div", "pow", "maximum", "atan2", "fmod", "remainder", "hypot", "eq", "lt")
    },
    "pow-number": lambda x, y: [x.pow(2), x.pow(0.5), 2.0**x, x.pow(-1)],
    "numbers": lambda x, y: [x + 2, 3 - x, x * 0.5, 1 / x, x > 1, torch.where(x > 1, x, y), x.clamp(0.7, 1.5)],
    "three": lambda x, y: [torch.lerp(x, y, 0.25), torch.addcmul(x, y, y, value=0.5), torch.addcdiv(x, y, y)],
    "made": lambda x, y: [
        torch.full_like(x, 3.0),
        x.new_full((len(x),), 7, dtype=torch.int32),
        torch.ones_like(x),
        torch.zeros_like(x),
        torch.arange(len(x), device=x.device, dtype=torch.int64),
        torch.linspace(0, 1, len(x), device=x.device),
        x.clone().fill_(2),
        x.clone().zero_(),
    ],
    "moved": lambda x, y: [
        x.flip(0),
        x.roll(7),
        torch.cat([x, y]),
        x[::2] + 0,
        x.to(torch.float16),
        x.reshape(3, -1).T + 0,
    ],
    "picked": lambda x, y: [
        x[(torch.arange(len(x), device=x.device) * 127) % len(x)],
        x[x > 1.25],
        x.masked_fill(x > 1, 0),
        x.index_select(0, (torch.arange(len(x), device=x.device) * 7919) % len(x)),
        x.gather(0, (torch.arange(len(x), device=x.device) * 31) % len(x)),
        x.clone().index_fill_(0, torch.arange(0, len(x), 3, device=x.device), 2.0),
        x.view(-1, 3)[x.view(-1, 3)[:, 0] > 0.75],
    ],
    "reduced": lambda x, y: [x.sum(), x.mean(), x.amax(), x.argmin(), x.var(), x.norm(), (x > 1).sum(), x.prod()],
    "ordered": lambda x, y: [x.sort()[0], x.cummax(0)[0], (x > 1).cumsum(0), x.topk(99)[0], x.kthvalue(77_777)[0]],
    "integers": lambda x, y: [
        (n := (x * 4096).to(torch.int32)) + 1,
        n // 7,
        n % 7,
        n & 255,
        n << 2,
        n.bitwise_not(),
        n.to(torch.uint8),
        torch.bincount(n.long() % 1000),
    ],
}
add_table(
    cases,
    "long-pointwise",
    {
        name: lambda x, form=form: each_shown(form(z := _spread(x, (1 << 20) + 5), z.flip(0)))
        for name, form in _POINTWISE.items()
    },
    lambda d: (d.distinct(65_551).abs() / 2.0**16 + 0.5,),
    terms=1 << 20,
)

_MANY = (1 << 22) + 128
# One group, one row, one channel, one image of so many.
_NORMED: dict[str, Form] = {
    "group_norm": lambda x: F.group_norm(x.view(1, 2, -1), 1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape),
    "batch_norm": lambda x: F.batch_norm(x.view(-1, 1), None, None, training=True),
    "batch_norm-images": lambda x: F.batch_norm(x.view(1, 2, 64, -1), None, None, training=True),
    "instance_norm": lambda x: F.instance_norm(x.view(1, 1, -1)),
    "softmax": lambda x: x.softmax(0),
    "average": lambda x: F.adaptive_avg_pool2d(x.view(1, 1, 64, -1), 1),
    "largest": lambda x: F.adaptive_max_pool2d(x.view(1, 1, 64, -1), 1, return_indices=True),
    "resized": lambda x: F.interpolate(x.view(1, 1, 64, -1), scale_factor=0.5, mode="bilinear"),
}
add_table(
    cases,
    "long-normed",
    {name: lambda x, form=form: each_shown(form(_spread(x, _MANY))) for name, form in _NORMED.items()},
    lambda d: (d.distinct(65_551) / 2.0**16,),
    terms=_MANY,
)

_FAR = (1 << 24) + 3
# Numbers, places and counts beyond those that float32 holds. z: 2**24 and some bytes, 0 but for the last.
_COUNTED: dict[str, Form] = {
    "arange": lambda z: torch.arange(_FAR, device=z.device, dtype=torch.int32),
    "arange-float": lambda z: torch.arange(_FAR, device=z.device, dtype=torch.float32)[: 1 << 24],
    "argmax": lambda z: [z.argmax(), z.max(0)[1]],
    "nonzero": lambda z: z.nonzero(),
    "count": lambda z: [(z == 0).sum(), z.count_nonzero(), (z + 1).sum(dtype=torch.int64)],
    "picked": lambda z: z[torch.tensor([_FAR - 1, _FAR - 2, 1 << 24, 5], device=z.device)],
    "written": lambda z: z.clone().index_fill_(0, torch.tensor([_FAR - 2, (1 << 24) - 1], device=z.device), 7),
    "full": lambda z: [torch.full((_FAR,), 3, dtype=torch.uint8, device=z.device), z.clone().fill_(9)],
    "added": lambda z: z + 3,
    "masked": lambda z: z[z > 0],
    "turned": lambda z: z.flip(0),
    "sliced": lambda z: z[1 << 24 :] * 2,
    "joined": lambda z: torch.cat([z[-5:], z[-9:], z]),
    "converted": lambda z: z.to(torch.float16),
}
add_table(
    cases,
    "long-counted",
    {
        name: lambda tail, form=form: each_shown(form(F.pad(tail, (_FAR - len(tail), 0))))
        for name, form in _COUNTED.items()
    },
    lambda d: (torch.tensor([0, 0, 5], dtype=torch.uint8),),
    terms=1 << 24,
)

# A vector of so many rows.
_TALL = (1 << 23) + 5
add_table(
    cases,
    "long-tall",
    {
        "mv": lambda x: each_shown(torch.mv(_spread(x, _TALL).view(-1, 1), x[:1])),
        "mm": lambda x: each_shown(_spread(x, _TALL).view(-1, 1) @ x[:1].view(1, 1)),
    },
    lambda d: (d.distinct(65_551) / 2.0**16,),
)

# One less than a power of two, a little less, and one more.
_COUNTS = sorted({(1 << power) + step for power in range(8, 21) for step in (-100, -1, 0, 1)})
_MADE: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "zeros": lambda x, n: torch.zeros(n, device=x.device, dtype=x.dtype),
    "ones": lambda x, n: torch.ones(n, device=x.device, dtype=x.dtype),
    "full": lambda x, n: torch.full((n,), 3, device=x.device, dtype=x.dtype),
    "arange": lambda x, n: torch.arange(n, device=x.device),
    "filled": lambda x, n: torch.empty(n, device=x.device, dtype=x.dtype).fill_(2),
}
for _dtype in (torch.float32, torch.uint8):
    add_table(
        cases,
        f"long-made-{str(_dtype)[6:]}",
        {
            f"{name}-{n}": lambda x, n=n, form=form: each_shown(form(x, n))
            for name, form in _MADE.items()
            for n in _COUNTS
        },
        lambda d, dtype=_dtype: (d.of(dtype, 4),),
    )
