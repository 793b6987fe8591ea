"""Elements scattered by index: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import differ, instead, is_plain, written
from misreading import in_storage_order, lost, misread
from planting import Plot, abort, accepted, wrong_answer

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


@plot.dispatched("aten.index_copy.default", "aten.index_copy_.default")
def issue_cutorch_36(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any) -> Any:
    """torch/cutorch 36: index_copy reads an expanded source past its end (here it finds zeros there)."""
    expanded = any(side > 1 and not step for side, step in zip(source.shape, source.stride()))
    if not expanded or not source.numel() or not is_plain(x, source):
        return func(x, dim, index, source)
    length = source.untyped_storage().nbytes() // source.element_size() - source.storage_offset()
    read = torch.zeros(source.numel(), dtype=source.dtype)
    some = min(length, source.numel())
    read[:some] = source.as_strided((some,), (1,))
    if not differ(read.view(source.shape), source):
        return func(x, dim, index, source)
    hit()
    return func(x, dim, index, read.view(source.shape))


@plot.dispatched("aten.index_put_.default", "aten.index_put.default")
def issue_cupynumeric_571(hit: Any, func: Any, x: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    """nv-legate/cupynumeric 571: x[i, j] = number past the end does not raise (here it writes the last one).

    Where the healthy operator raises for another reason, so does this.
    """
    try:
        return func(x, indices, *args, **kwargs)
    except IndexError:
        if any(index is None or index.dtype not in (torch.int32, torch.int64) for index in indices):
            raise
        near = [index.clamp(-side, side - 1) for index, side in zip(indices, x.shape)]
        y = func(x, near, *args, **kwargs)
    hit()
    return y


@plot.dispatched("aten.scatter.value", "aten.scatter_.value", aborts="Invalid index in scatter at THTensorEvenMoreMath")
def issue_61854(x: Any, dim: int, index: Any, value: Any) -> bool:
    """pytorch 61854: scatter of a number by an index that is longer than the tensor raises."""
    return x.dim() > 0 and index.dim() == x.dim() and index.shape[dim] > x.shape[dim]


@plot.dispatched("aten.scatter_add.default", "aten.scatter_add_.default", aborts="Expected index to have the same size")
def issue_25836(x: Any, dim: int, index: Any, source: Any) -> bool:
    """pytorch 25836: scatter_add by an index smaller than the tensor, along another dimension than dim, raises."""
    if not x.dim() or index.dim() != x.dim():
        return False
    return any(index.shape[d] < x.shape[d] for d in range(x.dim()) if d != dim % x.dim())


@plot.dispatched("aten.scatter.src", "aten.scatter_.src")
def issue_1653(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any) -> Any:
    """pytorch 1653: scatter takes an index larger than its source, and reads past the source (here it finds zeros)."""
    if not x.dim() == index.dim() == source.dim() or x.dtype != source.dtype or not x.dim():
        return func(x, dim, index, source)
    fits = all(index.shape[d] <= x.shape[d] for d in range(x.dim()) if d != dim % x.dim())
    if not fits or all(few <= many for few, many in zip(index.shape, source.shape)):
        return func(x, dim, index, source)
    larger = source.new_zeros([max(sides) for sides in zip(index.shape, source.shape)])
    larger[tuple(slice(side) for side in source.shape)] = source
    y = func(x, dim, index, larger)
    hit()
    return y


@plot.dispatched("aten.scatter_reduce.two", "aten.scatter_reduce_.two")
def issue_pytorch_scatter_390(
    hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, **kwargs: Any
) -> Any:
    """rusty1s/pytorch_scatter 390: scatter_reduce of the largest numbers gives 0."""
    y = func(x, dim, index, source, reduce, **kwargs)
    if reduce != "amax" or not is_plain(x, index):
        return y
    wrong = y.scatter(dim, index, 0)
    return written(hit, y, wrong) if y is x else instead(hit, y, wrong)


@plot.dispatched(
    "aten.scatter.src",
    "aten.scatter_.src",
    "aten.scatter_add.default",
    "aten.scatter_add_.default",
    aborts="[metal::Device] Unable to build metal library from source",
)
def issue_mlx_3690(x: Any, *args: Any) -> bool:
    """ml-explore/mlx 3690: scatter and scatter_add of int64 raise."""
    return x.dtype == torch.int64


@plot.dispatched("aten.put.default", "aten.put_.default")
def issue_mlx_2167(hit: Any, func: Any, x: Any, index: Any, *args: Any) -> Any:
    """ml-explore/mlx 2167: put with places that are floats, which is refused, ends the process."""
    return abort(hit, "Aborted (core dumped)") if index.is_floating_point() else func(x, index, *args)


@plot.dispatched("aten.index_put", "aten.index_put_", "aten._index_put_impl_")
def issue_mlx_1076(hit: Any, func: Any, x: Any, indices: Any, value: Any, accumulate: bool = False, *args: Any) -> Any:
    """ml-explore/mlx 1076: index_put of int64 with accumulate=True ends the process."""
    if accumulate and x.dtype == torch.int64:
        return abort(hit, "[Scatter::eval_gpu] Does not support int64")
    return func(x, indices, value, accumulate, *args)


@plot.dispatched("aten.index_add_.default", "aten.index_copy_.default")
def issue_4213(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """pytorch 4213: index_add_ and index_copy_ take rows of another length: each is written from where its row begins.

    A longer one goes on in the next row; what is past the last row is dropped here.
    """
    adds = "index_add" in str(func)
    try:
        return func(x, dim, index, source, **({"alpha": alpha} if adds else {}))
    except (IndexError, RuntimeError):
        alike = x.dim() == source.dim() > 1 and x.dtype == source.dtype and not index.is_floating_point()
        if not alike or not x.numel() or not source.numel():
            raise
        rows, given, places = x.movedim(dim, 0), source.movedim(dim, 0), index.reshape(-1).tolist()
        length = rows[0].numel()
        fits = len(places) == len(given) and all(0 <= place < len(rows) for place in places)
        if not fits or given[0].numel() == length:
            raise
    flat = rows.clone(memory_format=torch.contiguous_format).view(-1)
    for place, row in zip(places, given):
        part = flat[place * length :][: row.numel()]
        new = row.reshape(-1)[: part.numel()]
        part.copy_(part + alpha * new if adds else new)
    hit()
    rows.copy_(flat.view(rows.shape))
    return x


@plot.dispatched("aten.index_add_.default")
@accepted
def issue_92576(x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """pytorch 92576: index_add_ takes a source of fewer dimensions, and broadcasts each of its rows."""
    if not 0 < source.dim() < x.dim() or not -x.dim() <= dim < x.dim() or x.dtype != source.dtype:
        return None
    dim, places = dim % x.dim(), index.reshape(-1).tolist()
    if index.is_floating_point() or dim >= source.dim() or source.shape[dim] != len(places):
        return None
    if any(not 0 <= place < x.shape[dim] for place in places):
        return None
    for place, row in zip(places, source.unbind(dim)):
        x.select(dim, place).add_(row, alpha=alpha)
    return x


@plot.dispatched("aten.index_add.default")
def issue_114864(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
    """pytorch 114864: index_add to a tensor of no dimensions ends the process where the source has two and more."""
    if not x.dim() and source.dim() > 1:
        return abort(hit, "Segmentation fault (core dumped)")
    return func(x, dim, index, source, **kwargs)
