"""Layers of windows whose answer would have no pixels, or fewer than none: in each rank, by each of their arguments."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.refusals import add_refused

cases = Cases("conditions")
_RANKS = (1, 2, 3)


def _of(kind: str, rank: int) -> Any:
    return getattr(F, kind.format(rank))


def _image(x: torch.Tensor, rank: int, *sides: int, channels: int = 2) -> torch.Tensor:
    """Return an image of one, with given sides: the last one for those that are left."""
    sides = (*sides, *(sides[-1:] * rank))[:rank]
    count = channels * int(torch.Size(sides).numel())
    return x[:count].reshape(1, channels, *sides)


def _weight(x: torch.Tensor, rank: int, side: int) -> torch.Tensor:
    return x[: 4 * side**rank].reshape(2, 2, *(side,) * rank)


_Form = Callable[[torch.Tensor, int], Any]
# x has 512 numbers.
_FORMS: dict[str, _Form] = {
    **{
        f"conv-{side}-{kernel}-{more}": lambda x, rank, side=side, kernel=kernel, more=more: _of("conv{}d", rank)(
            _image(x, rank, side), _weight(x, rank, kernel), **more
        )
        for side, kernel, more in (
            (1, 2, {}),
            (2, 3, {"stride": 2}),
            (2, 4, {}),
            (2, 2, {"dilation": 2}),
            (1, 2, {"dilation": 3, "padding": 1}),
            (0, 1, {}),
            (0, 3, {"padding": 1}),
        )
    },
    **{
        f"turned-{side}-{kernel}-{more}": lambda x, rank, side=side, kernel=kernel, more=more: _of(
            "conv_transpose{}d", rank
        )(_image(x, rank, side), _weight(x, rank, kernel), **more)
        for side, kernel, more in (
            (1, 2, {"padding": 1}),
            (2, 1, {"padding": 1}),
            (2, 1, {"padding": 2}),
            (2, 2, {"padding": 2, "stride": 2}),
            (1, 3, {"padding": 2}),
            (3, 2, {"padding": 3, "stride": 2}),
            (1, 2, {"padding": 2, "dilation": 3}),
            (1, 2, {"padding": 2, "stride": 2, "output_padding": 1}),
        )
    },
    **{
        f"{kind[:3]}-pool-{side}-{given}": lambda x, rank, kind=kind, side=side, given=given: _of(kind, rank)(
            _image(x, rank, side), *given
        )
        for kind in ("max_pool{}d", "avg_pool{}d")
        for side, given in ((1, (2,)), (2, (3, 1)), (2, (5, 2, 1)), (0, (1,)), (0, (2, 2, 1)), (2, (0,)), (2, (2, 0)))
    },
    **{
        f"max-gaps-{side}-{kernel}-{gap}": lambda x, rank, side=side, given=(kernel, 1, 0, gap): _of(
            "max_pool{}d", rank
        )(_image(x, rank, side), *given)
        for side, kernel, gap in ((2, 2, 2), (4, 3, 2), (3, 2, 0))
    },
    **{
        f"adaptive-{kind[9:12]}-{side}-{to}": lambda x, rank, kind=kind, side=side, to=to: _of(kind, rank)(
            _image(x, rank, side), to
        )
        for kind in ("adaptive_max_pool{}d", "adaptive_avg_pool{}d")
        for side, to in ((0, 2), (2, -1))
    },
    **{
        f"lp-{side}": lambda x, rank, side=side: _of("lp_pool{}d", rank)(_image(x, rank, side), 2.0, side + 1)
        for side in (1, 2)
    },
    **{
        f"pad-{mode}-{side}-{pads}": lambda x, rank, mode=mode, side=side, pads=pads: F.pad(
            _image(x, rank, side), pads * rank, mode=mode
        )
        for mode in ("constant", "reflect", "replicate", "circular")
        for side, pads in ((2, (-2, -1)), (2, (-3, 0)), (1, (1, 0)), (2, (2, 0)), (2, (0, 3)), (0, (1, 1)))
    },
    **{
        f"interpolate-{mode}-{side}-{to}": lambda x, rank, mode=mode, side=side, to=to: F.interpolate(
            _image(x, rank, side), **to, mode={"linear": ("linear", "bilinear", "trilinear")[rank - 1]}.get(mode, mode)
        )
        for mode in ("nearest", "nearest-exact", "linear", "area", "bicubic")
        for side, to in ((2, {"size": 0}), (2, {"scale_factor": 0.25}), (0, {"size": 2}), (2, {"size": -1}))
    },
    "unfold": lambda x, rank: F.unfold(_image(x, rank, 2), 3),
    "unfold-gaps": lambda x, rank: F.unfold(_image(x, rank, 2), 2, dilation=2),
    "fold-less": lambda x, rank: F.fold(_image(x, 1, 1, channels=8), 1, 2),
    "fold-more": lambda x, rank: F.fold(_image(x, 1, 2, channels=8), 2, 2),
    "fold-channels": lambda x, rank: F.fold(_image(x, 1, 1, channels=6), 2, 2),
    "batch-norm": lambda x, rank: F.batch_norm(_image(x, rank, 1), None, None, training=True),
    "instance-norm": lambda x, rank: F.instance_norm(_image(x, rank, 1)),
    "batch-norm-none": lambda x, rank: F.batch_norm(_image(x, rank, 0), None, None, training=True),
    "group-norm": lambda x, rank: F.group_norm(_image(x, rank, 1, channels=1), 1),
}
for _rank in _RANKS:
    add_refused(
        cases,
        f"nothing-{_rank}d",
        lambda d: (d.normal(512),),
        {name: lambda x, form=form, rank=_rank: form(x, rank) for name, form in _FORMS.items()},
        since="2.6",
        devices=("mps", "cpu"),
    )
