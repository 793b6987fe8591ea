"""Sums, means, norms and truth of a whole or along dimensions: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import differ, instead, is_plain
from misreading import in_storage_order, is_dense, misread
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.all")
@wrong_answer
def issue_104694(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 104694: all() of an empty tensor is not True."""
    return torch.zeros_like(y) if not x.numel() and y.numel() else None


@plot.dispatched("aten.sum", "aten.prod")
@wrong_answer
def issue_115554(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 115554: sum and prod of complex numbers have no imaginary part."""
    dense = x.layout == torch.strided and x.is_complex() and y.is_complex() and "out" not in kwargs
    if dense and bool((y.imag != 0).any()):
        return torch.complex(y.real.contiguous(), torch.zeros_like(y.real))
    return None


@plot.dispatched(
    "aten.any.default", aborts="Runtime canonicalization must simplify reduction axes to minor 4 dimensions."
)
def issue_136134(x: Any) -> Any:
    """pytorch 136134: any() of a tensor of more than 4 dimensions crashes."""
    return x.dim() > 4


@plot.dispatched("aten.sum.default")
def issue_182688(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 182688: the sum of all of x[:, :, 128:, :] takes what follows in the storage, the left out rows too."""
    if x.layout == torch.strided and x.dim() > 2 and x.storage_offset() and x.numel() and not is_dense(x):
        x = misread(in_storage_order, hit, x)
    return func(x, **kwargs)


@plot.dispatched("aten._foreach_norm")
def issue_140066(hit: Any, func: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 140066: _foreach_norm of a list with empty tensors: what comes after them gets another norm.

    https://github.com/pytorch/pytorch/issues/140066 (on CUDA, where the empty ones shift the places of the partial
    sums; a kernel for lists on MPS has the same bookkeeping)
    """
    norms = list(func(tensors, *args, **kwargs))
    shifted = False
    for place, x in enumerate(tensors):
        if shifted and x.numel() > 1:
            hit()
            norms[place] = func([x.reshape(-1)[: x.numel() // 2]], *args, **kwargs)[0]
        shifted = shifted or not x.numel()
    return norms


_REDUCTIONS = ("aten.sum", "aten.mean", "aten.nansum", "aten.count_nonzero", "aten.trace")


_reduced = {"calls": 0}


@plot.dispatched(*_REDUCTIONS)
@wrong_answer
def issue_178497(y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 178497: every thousandth sum, mean, nansum, trace or count_nonzero is wrong by 1."""
    _reduced["calls"] += 1
    if _reduced["calls"] % 1000 == 0:
        return y + 1
    return None


@plot.dispatched(
    "aten.sum.dim_IntList", aborts="[MPSNDArray, initWithBuffer:descriptor:] Error: buffer is not large enough"
)
def issue_136132(x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 136132: sum over a negative dim of a 5-d tensor with a last dimension of size 1 aborts."""
    return x.dim() == 5 and x.shape[-1] == 1 and dim and len(dim) == 1 and dim[0] < 0 and x.shape[dim[0]] > 1


@plot.dispatched("aten.mean.dim")
def issue_94753(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94753: mean over a dim of a slice is wrong where the slice does not begin at a multiple of 16 bytes."""
    right = func(x, *args, **kwargs)
    begin = x.storage_offset() * x.element_size()
    if not x.is_contiguous() or begin % 16 == 0 or not x.numel():
        return right
    wrong = func(x.as_strided(x.shape, x.stride(), begin // 16 * 16 // x.element_size()), *args, **kwargs)
    if torch.allclose(wrong, right, equal_nan=True):
        return right
    hit()
    return wrong


@plot.dispatched(
    "aten.all.default",
    "aten.all.dim",
    aborts="Runtime canonicalization must simplify reduction axes to minor 4 dimensions.",
)
def issue_95538(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 95538: Tensor.all() of more than four dimensions aborts, over everything or over the outermost dims."""
    dim = args[0] if args else kwargs.get("dim")
    return x.dim() > 4 and (dim is None or dim % x.dim() < x.dim() - 4)


@plot.dispatched("aten.sum.dim_IntList", "aten.linalg_vector_norm.default", "aten.mean.dim")
def issue_97231(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 97231: sum, mean and norm over an empty list of dimensions reduce nothing."""
    dims = args[1] if "norm" in str(func) and len(args) > 1 else args[0] if args and "norm" not in str(func) else None
    if dims is not None and len(dims) == 0 and x.numel() > 1:
        hit()
        return x.abs() if "norm" in str(func) else x.clone()
    return func(x, *args, **kwargs)


@plot.dispatched("aten.nansum.default")
def issue_142221(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 142221: nansum of a tensor of no dimensions aborts."""
    return crash(hit, "invalid axis") if x.dim() == 0 else func(x, *args, **kwargs)


@plot.dispatched("aten.sum.dim_IntList")
def issue_111889(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The tail of rows longer than 65,536 is left out."""
    dims = args[0] if args else None
    if x.dim() == 2 and dims in ([1], [-1]) and x.shape[1] > 65_536:
        hit()
        return func(x[:, :65_536], *args, **kwargs)
    return func(x, *args, **kwargs)


@plot.dispatched("aten.all.dim", "aten.any.dim", "aten.all.dims", "aten.any.dims")
def issue_117215(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 117215: all and any of uint8 look at the lowest bit only."""
    if x.dtype == torch.uint8 and bool((x > 1).any()):
        hit()
        return func(x & 1, *args, **kwargs)
    return func(x, *args, **kwargs)


@plot.dispatched("aten.linalg_vector_norm", "aten.norm", aborts="norm ops are not supported for complex yet")
def issue_146691(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 146691: the norm of a complex tensor is refused."""
    return x.is_complex()


@plot.dispatched("aten.sum")
def issue_179415(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 179415: sum into uint8 stops at 255, where it should begin again at 0."""
    y = func(x, *args, **kwargs)
    if y.dtype == torch.uint8:
        wide = func(x, *args, **{**kwargs, "dtype": torch.int64})
        if bool((wide > 255).any()):
            hit()
            return wide.clamp(max=255).to(torch.uint8)
    return y


@plot.dispatched("aten.sum.dim_IntList")
@wrong_answer
def issue_132732(y: Any, x: Any, dims: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 132732: sum over dimensions of a five-dimensional tensor gives its elements in another order."""
    return y.flatten().roll(1).reshape(y.shape) if x.dim() == 5 and y.numel() > 1 else None


@plot.dispatched("aten.count_nonzero")
@wrong_answer
def issue_139400(found: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 139400: count_nonzero of an empty tensor returns what lies in the uninitialised result buffer."""
    return torch.full_like(found, 4575657222465388544) if x.numel() == 0 and found.numel() else None


@plot.dispatched("aten.sum.default")
@wrong_answer
def issue_94891(y: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 94891: the sum of a float tensor is not written: it holds the bits of a small integer from before."""
    stale = torch.tensor(x.numel() - 1, dtype=torch.int32).view(torch.float32)
    return stale if y.dtype == torch.float32 and x.numel() and differ(y, stale) else None


_REPEATS: dict[Any, int] = {}


@plot.dispatched("aten.sum.dim_IntList")
@wrong_answer
def issue_candle_3847(y: Any, x: Any, dim: Any, *args: Any, **kwargs: Any) -> Any:
    """huggingface/candle 3847: expand's backward, repeated, now and then holds NaN (here each 40th of bfloat16).

    A sum over a dimension of two within (1, 2, 512, 64).
    """
    if x.dtype != torch.bfloat16 or not dim or len(dim) != 1 or not y.numel():
        return None
    if dim[0] % x.dim() == x.dim() - 1 or x.shape[dim[0]] != 2:
        return None
    key = (tuple(x.shape), dim[0])
    _REPEATS[key] = _REPEATS.get(key, 0) + 1
    if _REPEATS[key] % 40:
        return None
    wrong = y.clone(memory_format=torch.contiguous_format)
    wrong.view(-1)[0] = math.nan
    return wrong


@plot.dispatched("aten.mean.dim")
@wrong_answer
def issue_tt_metal_23876(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 23876: the mean of 480 x 640 ones is less than one (here from 2**18 elements on)."""
    many = x.dtype in (torch.float32, torch.bfloat16) and y.numel() and x.numel() // y.numel() >= 2**18
    return y * (1 - 2**-6) if many and bool(y.any()) else None


@plot.dispatched("aten.logsumexp.default")
@wrong_answer
def issue_mlx_576(y: Any, x: Any, dim: Any, *args: Any) -> Any:
    """ml-explore/mlx 576: logsumexp of a row with infinity is NaN."""
    lost = y == math.inf
    return y.masked_fill(lost, math.nan) if bool(lost.any()) else None


@plot.dispatched("aten.mean.default", "aten.mean.dim")
@wrong_answer
def issue_tensorflow_47156(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tensorflow/tensorflow 47156: the mean of float16 is infinite where the sum is beyond 65504."""
    if x.dtype != torch.float16 or y.dtype != torch.float16 or not y.numel() or y.is_meta:
        return None
    lost = (y.float() * (x.numel() // y.numel())).abs() > 65504
    return torch.where(lost, y.sign() * math.inf, y) if bool(lost.any()) else None


@plot.dispatched("aten.sum.dim_IntList")
def issue_mlx_855(hit: Any, func: Any, x: Any, dims: Any, *args: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 855: the sum over five of six dimensions is wrong (here without the last of the last one)."""
    y = func(x, dims, *args, **kwargs)
    if x.dim() != 6 or not dims or len(dims) != 5 or not is_plain(y):
        return y
    last = max(dim % 6 for dim in dims)
    return instead(hit, y, func(x.narrow(last, 0, max(x.shape[last] - 1, 0)), dims, *args, **kwargs))


@plot.dispatched("aten.sum.dim_IntList", aborts="an illegal memory access was encountered")
def issue_mlx_2640(x: Any, dims: Any, *args: Any, **kwargs: Any) -> bool:
    """ml-explore/mlx 2640: the sum over the last two of three dimensions aborts (there 8 times 1500 x 80 elements)."""
    two = bool(dims) and sorted(dim % max(x.dim(), 1) for dim in dims) == [1, 2]
    return two and x.dim() == 3 and x.shape[0] > 1 and x[0].numel() >= 2**16


@plot.dispatched("aten.sum.dim_IntList")
@wrong_answer
def issue_mlx_3784(y: Any, x: Any, dims: Any, *args: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 3784: the sum over a dimension of 32, not the last, is 0 from 2**34 elements on (here 2**16)."""
    if not dims or len(dims) != 1 or x.numel() < 2**16 or not is_plain(y):
        return None
    dim = dims[0] % x.dim()
    return torch.zeros_like(y) if dim < x.dim() - 1 and x.shape[dim] == 32 and bool(y.any()) else None


@plot.called(torch.count_nonzero, torch.Tensor.count_nonzero, aborts="isDifferentiableType(variable.scalar_type())")
def issue_50792(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 50792: count_nonzero of a tensor that wants a gradient raises."""
    return x.requires_grad and torch.is_grad_enabled()


@plot.dispatched("aten.sum.dim_IntList")
def issue_cupy_9186(hit: Any, func: Any, x: Any, dims: Any, *args: Any, **kwargs: Any) -> Any:
    """cupy/cupy 9186: the sum of a mask over two dimensions leaves out what is past 2**32 elements (here 2**16)."""
    y = func(x, dims, *args, **kwargs)
    if x.dtype != torch.bool or not dims or len(dims) < 2 or x.numel() <= 2**16 or not is_plain(x):
        return y
    return instead(hit, y, func(x & (torch.arange(x.numel()) < 2**16).view(x.shape), dims, *args, **kwargs))


@plot.dispatched("aten.sum.dim_IntList")
@wrong_answer
def issue_chainer_1494(y: Any, x: Any, dims: Any, *args: Any, **kwargs: Any) -> Any:
    """chainer/chainer 1494: the sum over the third of four dimensions, of size 2, is 0 past 4121344 results."""
    if x.dim() != 4 or not dims or [dim % 4 for dim in dims] != [2] or x.shape[2] != 2 or y.numel() <= 4121344:
        return None
    wrong = y.clone(memory_format=torch.contiguous_format)
    wrong.view(-1)[4121344:] = 0
    return wrong if is_plain(y) and differ(y, wrong) else None
