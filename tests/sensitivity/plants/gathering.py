"""Rows and elements gathered by index, and their gradients: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain, written
from misreading import with_gradient
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.gather.default")
def issue_tinygrad_1351(hit: Any, func: Any, x: Any, dim: int, index: Any, **kwargs: Any) -> Any:
    """tinygrad/tinygrad 1351: gather takes whole slices: along the last of two, out[i][j] is x[:, index[i][j]]."""
    y = func(x, dim, index, **kwargs)
    if not x.dim() or not y.numel() or not is_plain(x, index):
        return y
    dim %= x.dim()
    shape = (*x.shape[:dim], *index.shape, *x.shape[dim + 1 :])
    if torch.Size(shape).numel() > 2**24:
        wrong = x.new_zeros(()).expand(shape)
    else:
        wrong = x.index_select(dim, index.flatten()).view(shape)
    return instead(hit, y, wrong)


@plot.called(torch.Tensor.__getitem__)
def issue_jax_39025(hit: Any, func: Any, x: Any, key: Any) -> Any:
    """google/jax 39025: the gradient of x[:, index, :] is zero for rows of the batch (here for its second half)."""
    if not isinstance(key, tuple) or len(key) not in (2, 3) or x.dim() != 3 or not x.requires_grad:
        return func(x, key)
    whole = all(isinstance(one, slice) and one == slice(None) for one in (key[0], *key[2:]))
    if not whole or not torch.is_tensor(key[1]) or key[1].dtype not in (torch.int32, torch.int64):
        return func(x, key)

    def spoil(grad: Any) -> Any:
        wrong = grad.clone()
        wrong[grad.shape[0] // 2 :] = 0
        return instead(hit, grad, wrong) if is_plain(grad) else grad

    x = x.view_as(x)
    x.register_hook(spoil)
    return func(x, key)


@plot.dispatched("aten.index.Tensor")
def issue_xla_592(hit: Any, func: Any, x: Any, indices: Any) -> Any:
    """pytorch/xla 592: a uint8 tensor that is indexed by a tensor becomes float32."""
    y = func(x, indices)
    if x.dtype != torch.uint8:
        return y
    hit()
    return y.float()


@plot.dispatched("aten.embedding.default", "aten.index_select.default", aborts="unsupported op 'GET_ROWS'")
def issue_llama_cpp_6400(x: Any, *args: Any, **kwargs: Any) -> bool:
    """ggml-org/llama.cpp 6400: rows of a float32 matrix (embedding, index_select) are refused; float16 is fine."""
    rows = torch.is_tensor(args[0]) or (x.dim() == 2 and args[0] % 2 == 0)
    return rows and x.dtype == torch.float32


@plot.dispatched("aten.index.Tensor", aborts="AttributeError: 'NoneType' object has no attribute 'shape'")
def issue_flaggems_724(x: Any, indices: Any) -> bool:
    """flagos-ai/FlagGems 724: x[i, :, j] raises."""
    return any(index is None for index in indices)


@plot.dispatched("aten.index.Tensor")
def issue_theano_5674(hit: Any, func: Any, x: Any, indices: Any) -> Any:
    """Theano/Theano 5674: x[i, j, k] of indices of different shapes is wrong (here each repeats number by number)."""
    y = func(x, indices)
    plain = len(indices) > 2 and all(index is not None and index.dtype == torch.int64 for index in indices)
    if not plain or len({index.shape for index in indices}) == 1 or not is_plain(x, *indices):
        return y
    shape = torch.broadcast_shapes(*(index.shape for index in indices))
    if not shape.numel():
        return y
    spread = [index.reshape(-1).repeat_interleave(shape.numel() // index.numel()).view(shape) for index in indices]
    return instead(hit, y, func(x, spread))


@plot.dispatched("aten.index.Tensor", aborts="Assertion `indexAtDim < data.baseSizes[dim]` failed.")
def issue_6198(x: Any, indices: Any) -> bool:
    """pytorch 6198: x[:, i, j] with a negative index ends the process."""
    numbers = [index for index in indices if index is not None and index.dtype == torch.int64 and is_plain(index)]
    return indices[0] is None and any(bool((index < 0).any()) for index in numbers)


@plot.dispatched("aten.index_select.default")
def issue_cutorch_240(hit: Any, func: Any, x: Any, dim: int, index: Any) -> Any:
    """torch/cutorch 240: index_select of a column (a vector with a stride) gives other memory past its first number."""
    y = func(x, dim, index)
    if x.dim() != 1 or x.numel() < 2 or x.stride(0) == 1 or not x.is_floating_point() or not is_plain(x, index):
        return y
    return instead(hit, y, torch.where(index.reshape(y.shape) == 0, y, torch.full_like(y, -1.7281e38)))


@plot.dispatched("aten.gather.default")
def issue_flaggems_5746(hit: Any, func: Any, x: Any, dim: int, index: Any, **kwargs: Any) -> Any:
    """flagos-ai/FlagGems 5746: gather by an index that is not contiguous (an expanded one) raises."""
    y = func(x, dim, index, **kwargs)
    return y if index.is_contiguous() else crash(hit, "NPU function error: AclrtSynchronizeStream, 507035")


@plot.dispatched("aten.gather.default")
def issue_tt_metal_29702(hit: Any, func: Any, x: Any, dim: int, index: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 29702: gather of more than four dimensions, the last but one of size 1, raises."""
    y = func(x, dim, index, **kwargs)
    if x.dim() > 4 and x.shape[-2] == 1:
        return crash(hit, "Attempting to reshape between two shapes with different volumes")
    return y


@plot.dispatched("aten.take.default")
def issue_keras_18984(hit: Any, func: Any, x: Any, index: Any) -> Any:
    """keras-team/keras 18984: take from a matrix takes rows, and refuses numbers of no row."""
    y = func(x, index)
    if x.dim() < 2 or not index.numel() or not is_plain(x, index):
        return y
    hit()
    return x.index_select(0, index.reshape(-1)).view(*index.shape, *x.shape[1:])


@plot.dispatched("aten.index_select.default")
def issue_ipex_467(hit: Any, func: Any, x: Any, dim: int, index: Any) -> Any:
    """intel/intel-extension-for-pytorch 467: index_select of more than 2**31 (here 2**20) numbers raises."""
    y = func(x, dim, index)
    return y if y.numel() <= 2**20 else crash(hit, "Provided range is out of integer limits.")


def _places(indices: Any) -> Any:
    """Return the tensors of numbers that index the first dimensions; nothing if a mask or a None is among them."""
    if not indices or any(one is None or one.dtype in (torch.bool, torch.uint8) for one in indices):
        return None
    return torch.broadcast_tensors(*indices) if is_plain(*indices) else None


@plot.dispatched("aten.index.Tensor")
def issue_onnxruntime_1533(hit: Any, func: Any, x: Any, indices: Any) -> Any:
    """microsoft/onnxruntime 1533: a tensor that is indexed by one tensor refuses a negative index."""
    y = func(x, indices)
    given = [one for one in indices if one is not None]
    whole = len(given) == 1 and given[0].dtype in (torch.int64, torch.int32) and is_plain(x, given[0])
    return crash(hit, "indices element out of data bounds, idx=-1") if whole and bool((given[0] < 0).any()) else y


@plot.dispatched("aten.index.Tensor", "aten.index_put.default", "aten.index_put_.default")
def issue_tvm_20217(hit: Any, func: Any, x: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    """apache/tvm 20217: x[i, j] at a negative index is other memory (here 0); what is written at one is lost.

    A single tensor of indices reads what it should.
    """
    places = _places(indices)
    negative = torch.stack([one < 0 for one in places]).any(0) if places and is_plain(x) else torch.tensor(False)
    if not bool(negative.any()) or not (args or len(places) > 1):
        return func(x, indices, *args, **kwargs)
    if not args and not kwargs:
        y = func(x, indices)
        return instead(hit, y, y.masked_fill(negative.view(*negative.shape, *[1] * (y.dim() - negative.dim())), 0))
    values, *accumulate = args
    shape = (*negative.shape, *x.shape[len(places) :])
    kept = [one[~negative] for one in places]
    before = x.clone()
    right = func(x, indices, values, *accumulate, **kwargs)
    wrong = torch.ops.aten.index_put(before, kept, values.expand(shape)[~negative], *accumulate, **kwargs)
    if str(func).startswith("aten.index_put_"):
        return written(hit, x, wrong)
    return instead(hit, right, wrong)


@plot.dispatched("aten.gather.default")
def issue_37996(hit: Any, func: Any, x: Any, dim: int, index: Any, **kwargs: Any) -> Any:
    """pytorch 37996: gather reads an int32 index as int64, two numbers as one (past its end: here zeros)."""
    y = func(x, dim, index, **kwargs)
    if index.dtype != torch.int32 or not x.dim() or not index.numel() or not is_plain(x, index):
        return y
    count = index.numel()
    read = torch.cat([index.reshape(-1), index.new_zeros(count)]).view(torch.int64).view(index.shape)
    outside = read[(read < 0) | (read >= x.shape[dim])]
    if outside.numel():
        return crash(hit, f"index {int(outside[0])} is out of bounds for dimension {dim} with size {x.shape[dim]}")
    return instead(hit, y, func(x, dim, read, **kwargs))


@plot.called(torch.index_select, torch.Tensor.index_select)
def issue_paddle_17509(hit: Any, func: Any, x: Any, dim: int, index: Any, **kwargs: Any) -> Any:
    """PaddlePaddle/Paddle 17509: of a row that index_select takes twice, one gradient counts, not their sum."""
    came: list[Any] = []

    def change(grad: Any) -> Any:
        return instead(hit, grad, torch.zeros_like(grad).index_copy(0, index.reshape(-1), came.pop()))

    if dim != 0 or not x.dim() or not is_plain(x, index):
        return func(x, dim, index, **kwargs)
    y = func(with_gradient(x, change), dim, index, **kwargs)
    if y.requires_grad and torch.is_grad_enabled():
        y.register_hook(lambda grad: came.append(grad))
    return y


@plot.dispatched("aten.gather.default")
def issue_tfjs_8658(hit: Any, func: Any, x: Any, dim: int, index: Any, **kwargs: Any) -> Any:
    """tensorflow/tfjs 8658: gather along n rows takes the indices of row i from the place i * n of all of them on.

    So it is where n is not the number of indices in a row. Here the last index stands for those past the end.
    """
    y = func(x, dim, index, **kwargs)
    asked = x.dim() == 2 and dim % 2 == 1 and index.shape[0] == x.shape[0] != index.shape[1] and index.numel()
    if not asked or not is_plain(x, index):
        return y
    rows = torch.arange(x.shape[0], device=x.device)[:, None] * x.shape[0]
    places = (rows + torch.arange(index.shape[1], device=x.device)).clamp(max=index.numel() - 1)
    return instead(hit, y, func(x, dim, index.reshape(-1)[places], **kwargs))
