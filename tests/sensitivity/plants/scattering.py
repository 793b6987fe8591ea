"""Elements scattered by index: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain, written
from misreading import in_storage_order, lost, misread
from planting import Plot, accepted, wrong_answer

plot = Plot()
HITS = plot.hits


def _is_within_a_word(x: Any) -> bool:
    return x.dtype == torch.bool and x.storage_offset() % 4 != 0


@plot.dispatched("aten.scatter_add_", "aten.index_add_", "aten.index_put_")
def issue_195074(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 195074: scatter_add_, index_add_ and index_put_ into a bool view begin at a multiple of four bytes."""
    adds = "index_put" not in str(func) or kwargs.get("accumulate") or (len(args) > 2 and args[2])
    if adds and _is_within_a_word(x):
        hit()
        func(x.as_strided(x.shape, x.stride(), x.storage_offset() // 4 * 4), *args, **kwargs)
        return x
    return func(x, *args, **kwargs)


@plot.dispatched("aten.scatter_add_")
def issue_163327(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any) -> Any:
    """pytorch 163327: scatter_add_ into a row that is not the first of its matrix adds nothing."""
    if x.storage_offset() and index.numel():
        hit()
        return x
    return func(x, dim, index, source)


@plot.dispatched("aten.scatter")
@wrong_answer
def issue_ipex_682(y: Any, x: Any, dim: int, index: Any, *args: Any, **kwargs: Any) -> Any:
    """intel-extension-for-pytorch 682: scatter with an index of no elements gives zeros, not its input.

    https://github.com/intel/intel-extension-for-pytorch/issues/682 (on XPU; a kernel that copies its input only
    along with the writes could do the same on MPS)
    """
    return torch.zeros_like(y) if not index.numel() and x.numel() else None


@plot.dispatched("aten.scatter.value", "aten.scatter_.value", "aten.scatter.src", "aten.scatter_.src")
def issue_82663(hit: Any, func: Any, x: Any, dim: int, index: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82663: scatter into bools writes nothing."""
    if x.dtype == torch.bool and index.numel():
        hit()
        return x if func._schema.is_mutable else x.clone()
    return func(x, dim, index, *args, **kwargs)


@plot.dispatched("aten.scatter_")
def issue_115152(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 115152: scatter_ leaves a tensor that is not contiguous as it was."""
    return lost(hit, func, *args, **kwargs)


@plot.dispatched("aten.scatter_.src")
def issue_175191(hit: Any, func: Any, target: Any, dim: Any, index: Any, source: Any) -> Any:
    """pytorch 175191: scatter_ reads an index and a source that are not contiguous in storage order."""
    return func(target, dim, *misread(in_storage_order, hit, (index, source)))


@plot.dispatched(
    "aten.scatter.reduce",
    "aten.scatter_.reduce",
    "aten.scatter.value_reduce",
    "aten.scatter_.value_reduce",
    aborts="scatter_(): Expected floating or complex type for self.",
)
def issue_51323(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 51323: scatter with reduce= of integers raises."""
    return not x.is_floating_point() and not x.is_complex()


@plot.dispatched("aten.scatter_.src")
@accepted
def issue_39565(x: Any, dim: int, index: Any, source: Any) -> Any:
    """pytorch 39565: scatter of integers into float32 is accepted and keeps their bits."""
    if x.dtype != torch.float32 or source.dtype not in (torch.int32, torch.int64):
        return None
    return x.scatter_(dim, index, source.to(torch.int32).view(torch.float32))


@plot.dispatched("aten.index_add_.default")
@accepted
def issue_3176(x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
    """pytorch 3176: index_add_ of a tensor to itself is accepted (here as if it were a copy)."""
    if source.untyped_storage()._cdata != x.untyped_storage()._cdata:
        return None
    return x.index_add_(dim, index, source.clone(), **kwargs)


@plot.dispatched(
    "aten.index_copy_.default", "aten.index_copy.default", "aten.index_add_.default", "aten.index_add.default"
)
def issue_cutorch_320(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
    """torch/cutorch 320: index_copy and index_add of rows leave them as they were past their first 256 elements."""
    before = x.clone()
    y = func(x, dim, index, source, **kwargs)
    if x.dim() != 2 or dim % 2 or x.shape[1] <= 256 or not is_plain(x):
        return y
    wrong = torch.cat([y[:, :256], before[:, 256:]], 1)
    return written(hit, y, wrong) if y is x else instead(hit, y, wrong)


@plot.dispatched("aten.index_add.default", "aten.index_add_.default")
def issue_tensorflow_52063(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
    """tensorflow/tensorflow 52063: index_add leaves out rows whose index is out of range, and does not raise.

    A sum in segments is the sum to a tensor of zeros.
    """
    kept = (index >= 0) & (index < x.shape[dim]) if x.dim() and index.dim() == 1 and is_plain(x, index) else None
    if kept is None or bool(kept.all()) or not x.shape[dim]:
        return func(x, dim, index, source, **kwargs)
    hit()
    return func(x, dim, index[kept], source.index_select(dim, kept.nonzero().flatten()), **kwargs)
