"""Rules 3 and 6: gradients through every view of what is spread, overlaps itself, is turned round or lies in steps.

as_strided of an expanded tensor, and reshape of it, had a wrong gradient: one number stands at several places,
https://github.com/pytorch/pytorch/issues/8626; squeeze of sides of 1, https://github.com/pytorch/pytorch/issues/4778
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf, uneven
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")
Form = Callable[[torch.Tensor], torch.Tensor]

# How x of (4, 6) comes to a view of 24 places or so, of two dimensions.
_GIVEN: dict[str, Form] = {
    "dense": lambda x: x,
    "spread-rows": lambda x: x[:1].expand(4, 6),
    "spread-columns": lambda x: x[:, :1].expand(4, 6),
    "spread-both": lambda x: x[1:2, 2:3].expand(4, 6),
    "spread-cell": lambda x: x[2, 3].expand(4, 6),
    "spread-new": lambda x: x[0].expand(4, 6),
    "windows": lambda x: x[0].unfold(0, 3, 1),
    "windows-steps": lambda x: x.flatten().unfold(0, 6, 4),
    "windows-turned": lambda x: x[1].unfold(0, 3, 1).t(),
    "overlapping": lambda x: x.as_strided((4, 6), (2, 1), 3),
    "overlapping-turned": lambda x: x.as_strided((4, 6), (1, 3), 2),
    "turned": lambda x: x.view(6, 4).t(),
    "steps": lambda x: torch.cat([x, x]).view(4, 12)[:, ::2],
    "steps-rows": lambda x: torch.cat([x, x * 2])[1::2],
    "part": lambda x: F.pad(x, (1, 2, 1, 1))[1:5, 1:7],
    "flipped": lambda x: x.flip(0, 1),
    "narrow-spread": lambda x: x[:, 1:2].expand(4, 9)[:, 2:8],
    "spread-turned": lambda x: x[0].expand(4, 6).t().contiguous().t(),
    "three": lambda x: x.view(4, 2, 3).transpose(0, 1).reshape(4, 6),
    "picked": lambda x: x[[0, 2, 0, 3]],
    "one": lambda x: x[1:2, :1],
    "none": lambda x: x[:0],
}
_VIEWS: dict[str, Form] = {
    "same": lambda y: y[:],
    "strided": lambda y: y.as_strided(y.shape, y.stride(), y.storage_offset()),
    "strided-turned": lambda y: y.as_strided(y.shape[::-1], y.stride()[::-1], y.storage_offset()),
    "strided-part": lambda y: y.as_strided((max(y.shape[0] - 1, 0), y.shape[1]), y.stride(), y.storage_offset()),
    "strided-spread": lambda y: y.as_strided((3, *y.shape), (0, *y.stride()), y.storage_offset()),
    "reshape": lambda y: y.reshape(-1),
    "reshape-other": lambda y: y.reshape(y.shape[1], -1) if y.numel() else y.reshape(2, 0),
    "reshape-new": lambda y: y.reshape(*y.shape, 1),
    "flatten": lambda y: y.flatten(),
    "contiguous": lambda y: y.contiguous(),
    "clone": lambda y: y.clone(memory_format=torch.preserve_format),
    "transpose": lambda y: y.t(),
    "movedim": lambda y: y.movedim(0, 1),
    "permute": lambda y: y[None].permute(2, 0, 1),
    "narrow": lambda y: y.narrow(1, 0, 1),
    "select": lambda y: y.select(1, -1),
    "slice": lambda y: y[1:, ::2],
    "slice-step": lambda y: y[::3],
    "expand": lambda y: y.expand(2, *y.shape),
    "expand-more": lambda y: y[:, :1].expand(-1, 5),
    "unsqueeze": lambda y: y.unsqueeze(1),
    "squeeze": lambda y: y.squeeze(),
    "squeeze-each": lambda y: y.unsqueeze(0).squeeze((0, 1)),
    "diagonal": lambda y: y.diagonal(),
    "diagonal-off": lambda y: y.diagonal(1),
    "unfold": lambda y: y.unfold(1, 1, 1) if y.shape[1] < 3 else y.unfold(1, 3, 2),
    "split": lambda y: y.split(1, 1)[0],
    "chunk": lambda y: y.chunk(2, 1)[-1],
    "unbind": lambda y: y.unbind(1)[0],
    "tensor_split": lambda y: y.tensor_split(2)[1],
    "hsplit": lambda y: torch.hsplit(y, 1)[0],
    "unflatten": lambda y: y.unflatten(1, (1, -1)),
    "view-as": lambda y: y.view_as(y),
    "swapaxes": lambda y: y.swapaxes(0, 1)[:1],
    "mT": lambda y: y.mT[:1],
    "flip": lambda y: y.flip(1),
    "roll": lambda y: y.roll(1, 0),
    "repeat": lambda y: y.repeat(2, 1),
    "tile": lambda y: y.tile(2),
    "interleave": lambda y: y.repeat_interleave(2, 1),
    "rot90": lambda y: y.rot90(),
    "triangle": lambda y: y.tril(),
    "pad": lambda y: F.pad(y, (1, -1)),
    "cat": lambda y: torch.cat([y, y], 1),
    "stack": lambda y: torch.stack([y, y.flip(0)], 2),
    "atleast": lambda y: torch.atleast_3d(y),
    "broadcast": lambda y: torch.broadcast_to(y, (2, *y.shape)),
    "gathered": lambda y: y.gather(0, torch.zeros_like(y[:1], dtype=torch.int64)) if y.numel() else y,
    "picked": lambda y: y[:, [0, 0]],
    "masked": lambda y: y[torch.arange(y.shape[0], device=y.device) % 2 == 0],
    "sum": lambda y: y.sum(0),
    "scan": lambda y: y.cumsum(1),
    "product": lambda y: y @ y.t(),
    "sorted": lambda y: y[:1].sort(1)[0],
}


def _through(given: Form, view: Form, x: torch.Tensor) -> Any:
    start = leaf(x)
    y = view(given(start))
    if not y.requires_grad:
        return y
    y.backward(uneven(y))
    return y.detach(), start.grad


def _twice(given: Form, view: Form, x: torch.Tensor) -> Any:
    """Return the gradient of a gradient: of the squares of the view's, weighed unevenly."""
    start = leaf(x)
    y = view(given(start)) ** 2
    (first,) = torch.autograd.grad((y * uneven(y)).sum(), start, create_graph=True)
    first.backward(uneven(first))
    return start.grad


# Written in place: into what is made of the leaf, as a view that holds each number once.
_ONCE = ("dense", "turned", "steps", "steps-rows", "part", "flipped", "three", "one", "picked", "spread-turned")
_WRITTEN: dict[str, Callable[[torch.Tensor], Any]] = {
    "mul": lambda v: v.mul_(3),
    "fill": lambda v: v.fill_(2),
    "copy": lambda v: v.copy_(v.flip(0) * 2),
    "add": lambda v: v.add_(v.detach(), alpha=2),
    "masked": lambda v: v.masked_fill_(v.detach() > 0, 1),
    "assigned": lambda v: v.__setitem__(0, v[-1] * 2) if v.dim() and v.shape[0] else v.zero_(),
}
_ONE_EACH = ("same", "strided", "strided-turned", "strided-part", "transpose", "movedim", "permute", "narrow", "select")
_ONE_EACH = (*_ONE_EACH, "slice", "slice-step", "unsqueeze", "squeeze", "diagonal", "diagonal-off", "swapaxes")


def _inside(given: Form, view: Form, write: Callable[[torch.Tensor], Any], x: torch.Tensor) -> Any:
    start = leaf(x)
    base = given(start).clone(memory_format=torch.contiguous_format) * 1
    write(view(base))
    base.backward(uneven(base))
    return base.detach(), start.grad


def _makes(dtype: torch.dtype) -> Any:
    return lambda d: ((d.distinct(4, 6) / 8 + 0.0625).to(dtype),)


for _dtype in (torch.float32, *HALVES):
    add_table(
        cases,
        f"spread-views-{str(_dtype)[6:]}",
        {
            f"{given}-{view}": lambda x, make=make, act=act: _through(make, act, x)
            for at, (given, make) in enumerate(_GIVEN.items())
            for place, (view, act) in enumerate(_VIEWS.items())
            if (_dtype == torch.float32 and (at + place) % 5 == 0) or (at + place) % 29 == 1 or view == "strided"
            if view != "select" or given != "none"
            if view not in ("gathered", "sorted") or (given not in ("none", "one") and not given.startswith("spread"))
            if given != "none" or not view.startswith(("unflatten", "squeeze"))
        },
        _makes(_dtype),
        deterministic=False,
        terms=32,
        factor=16.0,
    )
add_table(
    cases,
    "spread-views-twice",
    {
        f"{given}-{view}": lambda x, make=make, act=act: _twice(make, act, x)
        for at, (given, make) in enumerate(_GIVEN.items())
        for place, (view, act) in enumerate(_VIEWS.items())
        if (at + 3 * place) % 17 == 0 and view not in ("sorted", "product") and given not in ("none", "one")
    },
    _makes(torch.float32),
    deterministic=False,
    terms=32,
    factor=16.0,
)
add_table(
    cases,
    "spread-views-written",
    {
        f"{given}-{view}-{name}": lambda x, make=make, act=act, write=write: _inside(make, act, write, x)
        for at, (given, make) in enumerate(_GIVEN.items())
        for place, view in enumerate(_ONE_EACH)
        for spot, (name, write) in enumerate(_WRITTEN.items())
        for act in [_VIEWS[view]]
        if given in _ONCE and (at + place + spot) % 9 == 0 and (given != "one" or view not in ("slice", "diagonal-off"))
    },
    _makes(torch.float32),
    deterministic=False,
    terms=32,
)
