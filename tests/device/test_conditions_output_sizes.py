"""Rules 1 and 4: an answer's size as it may be spelled: for each dimension, with channels, with the batch, as a shape.

An output_size of five numbers was refused for volumes; that of an image without a batch was not heeded,
https://github.com/pytorch/pytorch/issues/75889; output_padding as large as the stride was taken,
https://github.com/pytorch/pytorch/issues/169236
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn

from device_suite import Cases
from device_suite.acts import derived, filled
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]
_TURNED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_BACK = (nn.MaxUnpool1d, nn.MaxUnpool2d, nn.MaxUnpool3d)
# Stride, padding, dilation, groups, bias.
_OPTIONS = ((2, 0, 1, 1, True), (3, 1, 1, 2, False), (2, 1, 2, 1, False), (1, 0, 3, 2, True))
_SPELLED: dict[str, Callable[[int, tuple[int, ...], list[int]], Any]] = {
    "sides": lambda rank, shape, size: size,
    "sides-tuple": lambda rank, shape, size: tuple(size),
    "sides-shape": lambda rank, shape, size: torch.Size(size),
    "channels": lambda rank, shape, size: [shape[-rank - 1], *size],
    "whole": lambda rank, shape, size: [*shape[:-rank], *size],
    "whole-shape": lambda rank, shape, size: torch.Size([*shape[:-rank], *size]),
    "whole-others": lambda rank, shape, size: [*([99] * (len(shape) - rank)), *size],
    "one-more": lambda rank, shape, size: [1, *shape[:-rank], *size],
    "one-less": lambda rank, shape, size: size[1:],
    "none": lambda rank, shape, size: [],
}


def _image(x: torch.Tensor, rank: int, batched: bool) -> torch.Tensor:
    sides = (3, 2, 3)[:rank]
    y = x.flatten()[: 8 * torch.Size(sides).numel()].view(2, 4, *sides)
    return y if batched else y[0]


def _turned(rank: int, options: Any, batched: bool, spelled: str, more: Any, x: torch.Tensor) -> Any:
    """Ask a module for one of the sizes that its answer can have: more pixels than the least in each dimension."""
    stride, padding, dilation, groups, bias = options
    y = _image(x, rank, batched)
    layer = filled(_TURNED[rank - 1](4, 4, 2, stride, padding, 0, groups, bias, dilation), y)
    least = [(side - 1) * stride - 2 * padding + dilation + 1 for side in y.shape[-rank:]]
    size = [one + extra for one, extra in zip(least, (more * rank)[:rank])]
    return derived(lambda a: layer(a, _SPELLED[spelled](rank, tuple(y.shape), size)), y)


def _back(rank: int, batched: bool, spelled: str, more: int, module: bool, x: torch.Tensor) -> Any:
    """Ask unpooling for the size of what was pooled, and for one beside it."""
    y = _image(x, rank, batched).repeat_interleave(2, -1)
    y = y if rank == 1 else y.repeat_interleave(2, -2)
    y = y if rank < 3 else y.repeat_interleave(2, -3)
    pooled, places = getattr(F, f"max_pool{rank}d")(y, 2, return_indices=True)
    size = _SPELLED[spelled](rank, tuple(y.shape), [side + more for side in y.shape[-rank:]])
    if module:
        return derived(lambda a: _BACK[rank - 1](2)(a, places, output_size=size), pooled)
    return derived(lambda a: getattr(F, f"max_unpool{rank}d")(a, places, 2, output_size=size), pooled)


def _resized(rank: int, mode: str, size: Any, module: bool, x: torch.Tensor) -> Any:
    y = _image(x, rank, True)
    mode = ("linear", "bilinear", "trilinear")[rank - 1] if mode == "linear" else mode
    if module:
        return derived(nn.Upsample(size, mode=mode), y)
    return derived(lambda a: F.interpolate(a, size, mode=mode), y)


def _count(rank: int, batched: bool, spelled: str) -> int:
    """Return how many numbers a spelling has beside those of the dimensions."""
    found = {"channels": 1, "one-more": 2 + batched, "one-less": -1, "none": -rank}
    return found.get(spelled, 1 + batched if spelled.startswith("whole") else 0)


# Name: (whether a size is one that the answer can have, the call).
_SIZED: dict[str, tuple[bool, Form]] = {}
for _rank, _batched in itertools.product((1, 2, 3), (True, False)):
    _SIZED |= {
        f"turned-{_rank}-{place}-{_batched}-{spelled}-{more}": (
            max((more * _rank)[:_rank]) < options[0] and _count(_rank, _batched, spelled) in (0, 1 + _batched),
            lambda x, row=(_rank, options, _batched, spelled, more): _turned(*row, x),
        )
        for place, options in enumerate(_OPTIONS)
        for spelled in _SPELLED
        for more in ((0,), (1, 0), (0, 1), (1,), (2,))
        # Every spelling with the first options; of the others, the shape as a whole.
        if (place == 0 and more in ((1, 0), (2,))) or (place > 0 and spelled == "whole" and (more != (1,)))
    }
    # Unpooling takes the numbers of two dimensions more, with a batch or without one.
    _SIZED |= {
        f"back-{_rank}-{_batched}-{spelled}-{more}-{module}": (
            more < 2 and _count(_rank, _batched, spelled) in (0, 2),
            lambda x, row=(_rank, _batched, spelled, more, module): _back(*row, x),
        )
        for module in (True, False)
        for spelled in _SPELLED
        for more in (0, 1, 2)
        if more == 1 or spelled in ("whole", "sides")
    }
for _rank, _mode, _module in itertools.product(
    (1, 2, 3), ("nearest", "nearest-exact", "linear", "area"), (False, True)
):
    _SIZED |= {
        f"resized-{_rank}-{_mode}-{size}-{_module}": (
            isinstance(size, int) or len(size) == _rank,
            lambda x, row=(_rank, _mode, size, _module): _resized(*row, x),
        )
        for size in (4, (4,) * _rank, [2, 5, 3][:_rank], torch.Size((3, 1, 4)[:_rank]), 1, (1, 2), (1, 2, 3, 4), ())
    }
for _rank, _kind in itertools.product((1, 2, 3), ("avg", "max")):
    _SIZED |= {
        f"adapted-{_kind}-{_rank}-{size}": (
            True,
            lambda x, kind=_kind, rank=_rank, size=size: derived(
                lambda a: getattr(F, f"adaptive_{kind}_pool{rank}d")(a, size), _image(x, rank, True)
            ),
        )
        for size in (2, (2,) * _rank, [1, 3, 2][:_rank], torch.Size((2, 1, 3)[:_rank]), 5)
    }
    _SIZED |= {
        f"adapted-{_kind}-{_rank}-{size}": (
            True,
            lambda x, kind=_kind, rank=_rank, size=size: derived(
                lambda a: getattr(F, f"adaptive_{kind}_pool{rank}d")(a, size), _image(x, rank, True)
            ),
        )
        for size in ((None, 2, 1)[:_rank], (1, None, 2)[:_rank], (3, 1, None)[:_rank], (None,) * _rank)
        if _rank > 1
    }
_SIZED |= {
    f"grid-{size}-{corners}": (
        True,
        lambda x, size=size, corners=corners: F.affine_grid(
            x.flatten()[: 6 if len(size) == 4 else 12].view(1, len(size) - 2, len(size) - 1), size, corners
        ),
    )
    for size in ((1, 3, 2, 4), [1, 2, 3, 1], torch.Size((1, 1, 1, 5)), (1, 2, 2, 3, 4), [1, 1, 4, 1, 2])
    for corners in (False, True)
}


for _dtype in (torch.float32, *HALVES):
    _right = {name: form for name, (right, form) in _SIZED.items() if right}
    add_table(
        cases,
        f"output-sizes-{str(_dtype)[6:]}",
        dict(list(_right.items())[:: 4 if _dtype == torch.float32 else 43]),
        lambda d, dtype=_dtype: ((d.distinct(2, 4, 3, 6) / 16 + 0.03).to(dtype),),
        terms=64 if _dtype == torch.float32 else 8,
        deterministic=False,
    )
add_refused(
    cases,
    "output-sizes",
    lambda d: (d.distinct(2, 4, 3, 6) / 16,),
    {
        **{name: form for name, (right, form) in _SIZED.items() if not right},
        **{
            f"padded-{rank}-{stride}-{dilation}-{out}-{count}": (
                lambda x, rank=rank, stride=stride, dilation=dilation, out=out, count=count: getattr(
                    F, f"conv_transpose{rank}d"
                )(
                    _image(x, rank, True)[:count],
                    x.flatten()[: 16 * 2**rank].view(4, 4, *(2,) * rank),
                    stride=stride,
                    dilation=dilation,
                    output_padding=out,
                )
            )
            for rank in (1, 2, 3)
            for stride, dilation, out in ((1, 1, 1), (2, 1, 2), (1, 2, 2), (2, 2, 5), (3, 1, 3), (1, 1, -1))
            for count in (2,)
        },
        **{
            f"beyond-{rank}-{place}-{more}": lambda x, row=(rank, options, True, "whole", (more,)): _turned(*row, x)
            for rank in (1, 2, 3)
            for place, options in enumerate(_OPTIONS[:2])
            for more in (-1, 3, 9, 2**40)
        },
    },
    since="2.13",
)
