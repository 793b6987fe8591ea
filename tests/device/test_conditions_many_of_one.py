"""Rule 3: each dimension of a layer by itself past 2**16 and near 10**6, planes of 2**16 numbers that are padded.

max_pool1d's backward of 10**6 channels raised; a volume's frames of 2**16 pixels were padded wrongly,
https://github.com/pytorch/pytorch/issues/194922; a grid of 2**16 images was refused,
https://github.com/pytorch/pytorch/issues/16365
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived, leaf
from device_suite.limits import add_table, each_shown, shown

cases = Cases("conditions")
Form = Callable[..., Any]
_MILLION = 1_000_003

# x: (1, n, 4), (n, 1, 4) or (1, 1, n).
_LINES: dict[str, Form] = {
    "max_pool": lambda x: F.max_pool1d(x, 4),
    "max_pool-places": lambda x: F.max_pool1d(x, 4, return_indices=True)[0],
    "avg_pool": lambda x: F.avg_pool1d(x, 4),
    "adaptive_max": lambda x: F.adaptive_max_pool1d(x, 1),
    "adaptive_avg": lambda x: F.adaptive_avg_pool1d(x, 1),
    "lp_pool": lambda x: F.lp_pool1d(x, 2.0, 4),
    "nearest": lambda x: F.interpolate(x, 2),
    "linear": lambda x: F.interpolate(x, 2, mode="linear"),
    "reflected": lambda x: F.pad(x, (-1, 1), mode="reflect"),
    "repeated": lambda x: F.pad(x, (1, -2), mode="replicate"),
}


def _line(name: str, x: torch.Tensor) -> Any:
    return each_shown(list(derived(_LINES[name], x)))


# Every layer in two dimensions near 10**6 takes long: one of them is asked always.
for _dimension, _shape in {"batch": (_MILLION, 1, 4), "channels": (1, _MILLION, 4)}.items():
    add_table(
        cases,
        f"many-of-one-{_dimension}",
        {name: lambda x, name=name: _line(name, x) for name in list(_LINES)},
        lambda d, shape=_shape: ((torch.arange(4 * _MILLION).mul(7) % 65_537).float().view(shape) / 2**16,),
        terms=64,
        deterministic=False,
        full=True,
    )
add_table(
    cases,
    "many-of-one",
    {
        "max_pool-channels": lambda x: each_shown(list(derived(lambda a: F.max_pool1d(a, 4), x.view(1, -1, 4)))),
    },
    lambda d: ((torch.arange(4 * _MILLION).mul(7) % 65_537).float() / 2**16,),
    terms=64,
    deterministic=False,
)

# Planes of 65,472 to 65,600 numbers: what is padded before them, between them and in them.
_PLANES = ((64, 1023), (64, 1024), (256, 256), (64, 1025))


def _padded(rank: int, sides: tuple[int, int], pad: tuple[int, ...], x: torch.Tensor) -> Any:
    y = x[: 2 * sides[0] * sides[1]].view(*(1,) * (rank - 3), 2, *sides)
    return shown(F.pad(y, pad, value=2.0), 257)


add_table(
    cases,
    "many-of-one-planes",
    {
        **{
            f"{rank}-{sides}-{pad}": lambda x, row=(rank, sides, pad): _padded(*row, x)
            for rank in (3, 4, 5, 6)
            for sides in _PLANES
            for pad in ((0, 0, 0, 0, 2, 0), (0, 0, 0, 0, 0, 1), (1, 0), (0, 0, 0, 2), (0, 1, 1, 0, 1, 0))
            if rank == 5 or (sides == (64, 1024) and pad[:2] != (1, 0))
        },
        **{
            f"{name}-{sides}": lambda x, form=form, sides=sides: shown(
                form(x[: 2 * sides[0] * sides[1]].view(2, *sides))
            )
            for name, form in {
                "joined": lambda y: torch.cat([y[None], y[None] + 1], 1),
                "stacked": lambda y: torch.stack([y, y * 2], 1),
                "rolled": lambda y: y.roll(1, 0),
                "repeated": lambda y: F.pad(y[None, None], (0, 0, 0, 0, 1, 0), mode="replicate"),
                "turned": lambda y: y[None, None].transpose(1, 2).contiguous(),
                "chosen": lambda y: y[None, :, None].flip(1),
            }.items()
            for sides in ((64, 1023), (64, 1024))
        },
    },
    lambda d: (torch.arange(131_200).mul(7).remainder(4099).float() / 64,),
)
add_table(
    cases,
    "many-of-one-grids",
    {
        str(corners): lambda x, corners=corners: shown(F.affine_grid(x.view(65_536, 2, 3), (65_536, 1, 1, 2), corners))
        for corners in (False, True)
    },
    lambda d: (torch.arange(65_536 * 6).mul(7).remainder(4099).float() / 4096,),
    terms=16,
)

# Scans of one line past 2**18: whole numbers, whose sums are exact in every order.
_SCANS: dict[str, Form] = {
    "cumsum": lambda x: [x.cumsum(0), x.view(1, -1).cumsum(1), x.view(-1, 1).cumsum(0), x.clone().cumsum_(0)],
    "cumsum-gradient": lambda x: torch.autograd.grad((y := leaf(x)).cumsum(0), y, x)[0],
    "cumprod": lambda x: x.sign().add(x == 0).cumprod(0),
    "cummax": lambda x: [x.cummax(0)[0], x.cummin(0)[0]],
    "diff": lambda x: [x.diff(), x.diff(n=2, prepend=x[:1])],
    "flip": lambda x: [x.flip(0), x.roll(1000), x[::3].cumsum(0)],
    "sums": lambda x: [x.sum(), x.view(3, -1).sum(1), x.view(-1, 3).sum(0), x.mean(), x.amax(), x.argmax(), x.prod()],
    "sorted": lambda x: [x.sort()[0], x.topk(9)[0], x.unique(), x.median(), x.kthvalue(1000)[0], x.mode()[0]],
    "trapezoid": lambda x: [torch.trapezoid(x), torch.cumulative_trapezoid(x)],
    "counted": lambda x: [torch.histc(x, 7, -3, 4), x.count_nonzero(), len((x > 0).nonzero()), x[x > 1].sum()],
}
add_table(
    cases,
    "scanned-line",
    {name: lambda x, form=form: each_shown(form(x)) for name, form in _SCANS.items()},
    lambda d: (d.integers(-2, 3, 3 * 87_383).float(),),
    terms=4,
)
