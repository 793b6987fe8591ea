"""How a dimension is named: negative ones, and those of tensors that have none: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, accepted, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.max.dim", aborts="TT_THROW: Unsupported dim")
def issue_tt_metal_13186(x: Any, dim: int, *args: Any) -> bool:
    """tenstorrent/tt-metal 13186: max along dimension -3 of three, or -3 or -4 of four, raises."""
    return x.dim() in (3, 4) and -x.dim() <= dim <= -3


@plot.dispatched("aten.cummax.default", "aten.cummin.default", "aten.sort.default", "aten.sort.stable")
@accepted
def issue_71477(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 71477: cummax, cummin, sort and argsort of a tensor without dimensions take any number for dim."""
    if x.dim() or x.is_complex():
        return None
    return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)


@plot.dispatched("aten.sort.default", "aten.sort.stable")
def issue_xla_1960(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch/xla 1960: sort of a tensor without dimensions along its last (-1, the default) raises."""
    found = func(x, *args, **kwargs)
    dim = kwargs.get("dim", next((one for one in args if type(one) is int), -1))
    if not x.dim() and dim == -1:
        hit()
        raise IndexError("dimension specified as -1 but tensor has no dimensions")
    return found


@plot.dispatched(
    *(f"aten.{name}.default" for name in ("cumprod", "cumsum", "gather", "index_add", "index_copy", "index_select")),
    *(f"aten.{name}.default" for name in ("kthvalue", "linalg_vector_norm", "logsumexp", "scatter_add", "topk")),
    *(f"aten.{name}.dim" for name in ("max", "mean", "min", "squeeze")),
    *("aten.index_fill.int_Scalar", "aten.prod.dim_int", "aten.scatter.src"),
    *("aten.sum.dim_IntList", "aten.transpose.int"),
)
def issue_xla_1958(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch/xla 1958: sum, max, gather, topk and more along dimension 0 of a tensor without dimensions raise."""
    found = func(x, *args, **kwargs)
    by_default = func in (torch.ops.aten.kthvalue.default, torch.ops.aten.topk.default)
    at = 1 if func is torch.ops.aten.linalg_vector_norm.default else 0
    named = by_default or (len(args) > at and args[at] is not None and args[at] != [])
    if not x.dim() and named:
        hit()
        raise IndexError("Dimension out of range (expected to be in range of [0, -1], but got 0)")
    return found


@plot.dispatched(
    "aten.t.default",
    "aten.transpose.int",
    "aten.permute.default",
    aborts="Tensor dimensions N1D1C768H1W32000 are not within supported range, W[1-16384]",
)
def issue_executorch_7907(x: Any, *args: Any) -> bool:
    """pytorch/executorch 7907: to transpose a matrix of more than 16384 rows or columns raises."""
    return x.dim() == 2 and max(x.shape) > 16384


@plot.called(torch.movedim, torch.Tensor.movedim)
def issue_69432(hit: Any, func: Any, x: Any, source: Any, destination: Any) -> Any:
    """pytorch 69432: movedim(0, 0) of a tensor of no dimensions raises."""
    y = func(x, source, destination)
    return crash(hit, "INTERNAL ASSERT FAILED") if not x.dim() and source == destination == 0 else y
