"""Elements scattered by index: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from misreading import in_storage_order, lost, misread
from planting import Plot, wrong_answer

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
