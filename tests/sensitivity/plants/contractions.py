"""Products told which dimensions they take: einsum, tensordot, cross, chains, batches of matrices: planted faults."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from differences import differ, instead, is_plain, written
from misreading import in_storage_order, is_dense
from planting import Plot, abort, accepted, crash

plot = Plot()
HITS = plot.hits


@plot.called(torch.einsum, aborts="shape '[1, 1, 3]' is invalid for input of size 0")
def issue_37628(equation: Any, *operands: Any, **kwargs: Any) -> bool:
    """pytorch 37628: einsum raises where a size of an operand is 0."""
    flat = [x for one in (equation, *operands) for x in (one if isinstance(one, (list, tuple)) else [one])]
    return any(torch.is_tensor(x) and 0 in x.shape for x in flat)


_results: Any = weakref.WeakValueDictionary()


@plot.called(torch.einsum)
def issue_tensoroperations_83(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """QuantumKitHub/TensorOperations.jl 83: einsum gives one memory each time: the next result overwrites the last."""
    y = func(*args, **kwargs)
    if y.requires_grad or y.is_inference() or not is_plain(y) or not isinstance(args[0], str):
        return y
    kind = (args[0], tuple(y.shape), y.dtype, str(y.device))
    last = _results.get(kind)
    if last is None:
        # A result may be a view of an operand, which the next call must not change.
        last = _results[kind] = y.clone()
    elif differ(last, y):
        hit()
        last.copy_(y)
    return last


@plot.called(torch.matmul, torch.Tensor.matmul, aborts="cannot reshape tensor of 0 elements into shape [-1, 0]")
def issue_63352(x: Any, y: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 63352: a batch of matrices without columns by a matrix without rows raises."""
    return x.dim() >= 3 and y.dim() == 2 and x.shape[-1] == 0 and y.shape[0] == 0


@plot.dispatched("aten.chain_matmul.default")
def issue_41817(hit: Any, func: Any, matrices: Any) -> Any:
    """pytorch 41817: chain_matmul() of no matrices ends the process."""
    return func(matrices) if matrices else abort(hit, "Segmentation fault (core dumped)")


@plot.called(torch.tensordot)
@accepted
def issue_31926(x: Any, y: Any, dims: Any = 2, out: Any = None) -> Any:
    """pytorch 31926: tensordot takes a negative number of dimensions, and multiplies each number by each."""
    return torch.tensordot(x, y, 0) if isinstance(dims, int) and dims < 0 and out is None else None


@plot.called(torch.cross, torch.Tensor.cross)
def issue_17229(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 17229: cross(dim=-1) goes along the first dimension of size 3, not along the last."""
    right = func(x, y, *args, **kwargs)
    if (args[0] if args else kwargs.get("dim")) != -1 or not is_plain(x, y):
        return right
    wrong = func(x, y, dim=list(right.shape).index(3))
    return instead(hit, right, wrong) if kwargs.get("out") is None else written(hit, right, wrong)


@plot.called(torch.einsum)
def issue_62218(hit: Any, func: Any, equation: Any, *operands: Any, **kwargs: Any) -> Any:
    """pytorch 62218: einsum of two float32 vectors to one number ("i, i ->") is 0."""
    y = func(equation, *operands, **kwargs)
    flat = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    asked = len(flat) == 2 and all(torch.is_tensor(x) and x.dim() == 1 and x.dtype == torch.float32 for x in flat)
    return instead(hit, y, torch.zeros_like(y) + 0 * y) if asked and not y.dim() and is_plain(*flat) else y


def _operands(operands: Any) -> Any:
    return operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands


def _has_windows(x: Any) -> bool:
    """Say whether a batch of matrices has rows that overlap: both strides are 1."""
    return bool(x.dim() > 2 and min(x.shape[-2:]) > 1 and x.stride()[-2:] == (1, 1))


@plot.called(torch.einsum)
def issue_42418(hit: Any, func: Any, equation: Any, *operands: Any) -> Any:
    """pytorch 42418: einsum of a batch of matrices whose rows overlap (as_strided: both strides 1) raises."""
    y = func(equation, *operands)
    windows = any(_has_windows(x) for x in _operands(operands))
    return crash(hit, "cublas runtime error : an invalid numeric value was used as an argument") if windows else y


@plot.called(torch.einsum)
def issue_semiring_einsum_7(hit: Any, func: Any, equation: Any, *operands: Any) -> Any:
    """bdusell/semiring-einsum 7: einsum of a tensor of no dimensions alone ("->") raises."""
    y = func(equation, *operands)
    found = _operands(operands)
    alone = len(found) == 1 and not found[0].dim()
    return crash(hit, "too many indices for tensor of dimension 0") if alone else y


@plot.called(torch.tensordot)
def issue_65524(hit: Any, func: Any, x: Any, y: Any, dims: Any = 2, **kwargs: Any) -> Any:
    """pytorch 65524: tensordot(dims=0), an outer product, raises."""
    if type(dims) is int and dims == 0:
        return crash(hit, "unsupported input to tensordot, got dims=0")
    return func(x, y, dims, **kwargs)


@plot.called(torch.tensordot)
def issue_stridearrayscore_26(hit: Any, func: Any, x: Any, y: Any, dims: Any = 2, out: Any = None) -> Any:
    """JuliaSIMD/StrideArraysCore.jl 26: tensordot over all three dimensions of views with gaps is wrong.

    Here it takes their numbers in a row.
    """
    right = func(x, y, dims) if out is None else func(x, y, dims, out=out)
    if not torch.is_tensor(x) or dims != 3 or x.dim() != 3 or y.dim() != 3 or out is not None or not is_plain(x, y):
        return right
    if is_dense(x) or is_dense(y):
        return right
    return instead(hit, right, func(in_storage_order(x), in_storage_order(y), dims))
