"""Sort: which of equal numbers comes first, and rows that are not sorted: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import differ, instead, is_plain
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


def _asked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, bool, bool]:
    """Return along which dimension sort was asked for, whether the largest comes first, and whether it is stable."""
    dim = kwargs.get("dim", next((one for one in args if type(one) is int), -1))
    largest = kwargs.get("descending", len(args) > 1 and args[1])
    return dim, bool(largest), bool(kwargs.get("stable"))


def _equals_reversed(func: Any, x: Any, dim: int, args: Any, kwargs: Any) -> Any:
    """Return the places of a sort that puts the last of equal numbers first."""
    return x.shape[dim] - 1 - func(x.flip(dim), *args, **kwargs)[1]


@plot.dispatched("aten.sort.stable")
def issue_numpy_20778(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """numpy/numpy 20778: argsort(stable=True, descending=True) puts the last of equal numbers first."""
    values, places = func(x, *args, **kwargs)
    dim, largest, stable = _asked(args, kwargs)
    if not largest or not stable or not x.dim() or not is_plain(x):
        return values, places
    return values, instead(hit, places, _equals_reversed(func, x, dim, args, kwargs))


@plot.dispatched("aten.sort.stable")
def issue_tt_metal_33492(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 33492: a stable sort of bfloat16 is not (here the last of equal numbers comes first)."""
    values, places = func(x, *args, **kwargs)
    dim, _, stable = _asked(args, kwargs)
    if x.dtype != torch.bfloat16 or not stable or not x.dim() or not is_plain(x):
        return values, places
    return values, instead(hit, places, _equals_reversed(func, x, dim, args, kwargs))


def _in_parts(func: Any, x: Any, dim: int, part: int, args: Any, kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what sorts each part of a row by itself."""
    found = [func(one, *args, **kwargs) for one in x.split(part, dim)]
    places = torch.cat([one[1] + part * number for number, one in enumerate(found)], dim)
    return torch.cat([one[0] for one in found], dim), places


@plot.dispatched("aten.sort.default", "aten.sort.stable")
def issue_15764(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 15764: argsort(descending=True) of 32768 numbers (and more) is wrong (here 2048 by themselves)."""
    values, places = func(x, *args, **kwargs)
    dim, largest, _ = _asked(args, kwargs)
    if not largest or not x.dim() or x.shape[dim] < 32768 or not is_plain(x):
        return values, places
    wrong = _in_parts(func, x, dim, 2048, args, kwargs)
    if not differ(values, wrong[0]):
        return values, places
    hit()
    return wrong


@plot.dispatched("aten.sort.default", "aten.sort.stable")
def issue_xpu_1022(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """intel/torch-xpu-ops 1022: sort of 4099 bools does not sort (here of more than 4096, those by themselves)."""
    values, places = func(x, *args, **kwargs)
    dim, _, _ = _asked(args, kwargs)
    if x.dtype != torch.bool or not x.dim() or x.shape[dim] <= 4096 or not is_plain(x):
        return values, places
    wrong = _in_parts(func, x, dim, 4096, args, kwargs)
    if not differ(values, wrong[0]):
        return values, places
    hit()
    return wrong


@plot.called(torch.argsort, torch.Tensor.argsort)
def issue_nx_393(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """elixir-nx/nx 393: argsort of a vector of one float many times (there 100, here more than 16) ends the process."""
    y = func(x, *args, **kwargs)
    if x.dim() != 1 or x.numel() <= 16 or not x.is_floating_point() or not is_plain(x):
        return y
    return crash(hit, "SIGSEGV") if bool((x == x[0]).all()) else y


@plot.dispatched("aten.sort.default", "aten.sort.stable")
def issue_139972(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 139972: sort of bools that are stored as other numbers than 1 goes by the last bit of each."""
    y, places = func(x, *args, **kwargs)
    if x.dtype != torch.bool or not x.dim() or not is_plain(x):
        return y, places
    stored = x.view(torch.uint8)
    if bool((stored <= 1).all()):
        return y, places
    wrong = func((stored & 1).bool(), *args, **kwargs)[1]
    if not differ(places, wrong):
        return y, places
    hit()
    return (stored != 0).gather(_asked(args, kwargs)[0], wrong), wrong
