"""Faults of 2022 to 2024 that the catalogue lacked, written blind after public reports, a third time."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash, in_storage_order, without_offset

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_82531", "aten.neg.default")
def issue_82531(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 82531: backward of sub (the negated gradient) crashes for empty tensors.

    https://github.com/pytorch/pytorch/issues/82531
    """
    if x.numel() == 0 and torch._C._current_graph_task_id() != -1:
        return crash(hit, "EXC_BAD_ACCESS in runViewGraph")
    return func(x)


@plot.dispatched("issue_81384", "aten.add.Tensor")
def issue_81384(hit: Any, func: Any, x: Any, other: Any, **kwargs: Any) -> Any:
    """pytorch 81384: adding a contiguous bias to a permuted tensor of 3 dimensions (an einsum's) mixes up the order.

    https://github.com/pytorch/pytorch/issues/81384
    """
    if (
        isinstance(other, torch.Tensor)
        and x.dim() == 3
        and other.dim() == 3
        and not x.is_contiguous()
        and sorted(x.stride()) != list(x.stride())[::-1]
        and other.is_contiguous()
    ):
        wrong = in_storage_order(x)
        if wrong is not x and not torch.equal(wrong, x):
            hit()
            x = wrong
    return func(x, other, **kwargs)


@plot.dispatched("issue_86975", "aten.copy_.default")
def issue_86975(hit: Any, func: Any, target: Any, source: Any, *args: Any) -> Any:
    """pytorch 86975: assignment to a strided column (a[1:, 1] = b) writes consecutive elements from the offset on.

    The issue's b lies on the CPU and a on MPS, which one device cannot tell apart:
    here any tensor b of a's dtype does it.
    https://github.com/pytorch/pytorch/issues/86975
    """
    if (
        target.dim() == 1
        and target.numel() > 1
        and target.stride(0) > 1
        and target.storage_offset() > 0
        and source.shape == target.shape
        and source.dtype == target.dtype
        and source.is_contiguous()
    ):
        hit()
        func(target.as_strided(target.shape, (1,), target.storage_offset()), source.clone(), *args)
        return target
    return func(target, source, *args)


@plot.dispatched("issue_91617", "aten.sub.Tensor")
def issue_91617(hit: Any, func: Any, x: Any, other: Any, **kwargs: Any) -> Any:
    """pytorch 91617: a - b with a, b = ab.chunk(2) reads b from the beginning of ab, and gives zeros.

    https://github.com/pytorch/pytorch/issues/91617
    """
    if (
        isinstance(other, torch.Tensor)
        and other.shape == x.shape
        and other.numel()
        and other.is_contiguous()
        and other.storage_offset() == other.numel()
        and other.untyped_storage().nbytes() == 2 * other.numel() * other.element_size()
    ):
        wrong = without_offset(other)
        if not torch.equal(wrong, other):
            hit()
            other = wrong
    return func(x, other, **kwargs)


@plot.dispatched("issue_96558", "aten.flip.default")
def issue_96558(hit: Any, func: Any, x: Any, dims: Any) -> Any:
    """pytorch 96558: flip along a dimension of size 1 flips the elements along the next dimension.

    https://github.com/pytorch/pytorch/issues/96558
    """
    right = func(x, dims)
    wanted = [d % x.dim() for d in dims] if x.dim() else []
    if any(x.size(d) == 1 for d in wanted):
        moved = sorted({min((e for e in range(d, x.dim()) if x.size(e) > 1), default=d) for d in wanted})
        wrong = func(x, moved)
        if not torch.equal(wrong, right):
            hit()
            return wrong
    return right


@plot.dispatched("issue_89127", "aten.normal")
def issue_89127(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 89127: torch.normal gives a NaN now and then in a large tensor (here always one, from 2**16 elements on).

    https://github.com/pytorch/pytorch/issues/89127
    """
    found = func(*args, **kwargs)
    if found.numel() >= 2**16:
        hit()
        found.view(-1)[found.numel() // 3] = torch.nan
    return found


@plot.dispatched("issue_78099", "aten._linalg_svd.default")
def issue_78099(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78099: U @ diag(S) @ Vh of a large float32 matrix is far from it (here from 2**16 elements on, not 4e7).

    https://github.com/pytorch/pytorch/issues/78099
    """
    u, s, vh = func(x, *args, **kwargs)
    if x.dtype == torch.float32 and x.dim() == 2 and x.numel() >= 2**16 and vh.numel():
        hit()
        vh = vh * (1 + 0.05 * torch.cos(torch.arange(vh.numel(), dtype=vh.dtype)).reshape(vh.shape))
    return u, s, vh


@plot.called("issue_114285", torch.linalg.matrix_rank)
def issue_114285(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 114285: linalg.matrix_rank of a float32 matrix raises, for it asks for float64.

    https://github.com/pytorch/pytorch/issues/114285
    """
    if x.dtype == torch.float32:
        hit()
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_96610", "aten.cumsum", "aten.cumsum_")
def issue_96610(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 96610: cumsum of int64 is refused.

    https://github.com/pytorch/pytorch/issues/96610
    """
    if (kwargs.get("dtype") or x.dtype) == torch.int64:
        hit()
        raise RuntimeError("MPS does not support cumsum op with int64 input. Support has been added in macOS 13.3")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_116567", "aten.sort")
def issue_116567(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 116567: sort takes NaN with the sign bit for the least value.

    https://github.com/pytorch/pytorch/issues/116567
    """
    found = func(x, *args, **kwargs)
    if not x.is_floating_point() or x.dim() == 0:
        return found
    negative = x.isnan() & x.signbit()
    if not negative.any():
        return found
    values, indices = func(torch.where(negative, torch.full_like(x, -torch.inf), x), *args, **kwargs)
    names = [a.name for a in func._schema.arguments]
    given = dict(zip(names, (x, *args))) | kwargs
    dim = given.get("dim", -1)
    values = x.gather(dim, indices)
    if torch.equal(indices, found[1]):
        return found
    hit()
    found[0].copy_(values)
    found[1].copy_(indices)
    return found


@plot.dispatched("issue_126643", "aten.abs.default")
def issue_126643(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 126643: abs of complex64 lies at every second place of the result, with zeros between.

    https://github.com/pytorch/pytorch/issues/126643
    """
    right = func(x)
    if x.dtype == torch.complex64 and x.numel() > 1:
        flat = right.flatten()
        wrong = torch.stack([flat, torch.zeros_like(flat)], -1).flatten()[: flat.numel()].reshape(right.shape)
        if not torch.equal(wrong, right):
            hit()
            return wrong
    return right


@plot.dispatched("issue_124252", "aten.binary_cross_entropy.default")
def issue_124252(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 124252: binary_cross_entropy of half precision crashes (tensor<f32> and tensor<3xf16>).

    https://github.com/pytorch/pytorch/issues/124252
    """
    if x.dtype in (torch.float16, torch.bfloat16):
        return crash(hit, "LLVM ERROR: Failed to infer result type(s).")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_118362", "aten.add_", "aten.sub_", "aten.mul_", "aten.div_")
def issue_118362(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 118362: operations in place on a matrix in column order (as linalg.lstsq returns it) change nothing.

    https://github.com/pytorch/pytorch/issues/118362
    """
    if x.dim() == 2 and not x.is_contiguous() and x.stride(0) == 1 and x.stride(1) >= x.size(0):
        before = x.clone()
        after = func(x.clone(), *args, **kwargs)
        if not torch.equal(before, after):
            hit()
            return x
    return func(x, *args, **kwargs)


@plot.dispatched("issue_122916", "aten.nonzero.default")
def issue_122916(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 122916: torch.where(condition) rounds the indices of a large tensor (here from 2**16 on, not 2**24).

    https://github.com/pytorch/pytorch/issues/122916
    """
    found = func(x)
    if x.numel() > 2**16:
        step = 2 ** (found.clamp(min=1).double().log2().floor().long() - 15).clamp(min=0)
        wrong = found // step * step
        if not torch.equal(wrong, found):
            hit()
            return wrong
    return found


@plot.dispatched("issue_123836", "aten.copy_.default")
def issue_123836(hit: Any, func: Any, target: Any, source: Any, *args: Any) -> Any:
    """pytorch 123836: M[1, 1] = tensor([3.]) writes to the beginning of M.

    The issue's M lies on the CPU and the value on MPS, which one device cannot tell apart; here any tensor does it.
    https://github.com/pytorch/pytorch/issues/123836
    """
    if target.dim() == 0 and target.storage_offset() > 0:
        hit()
        func(target.as_strided((), (), 0), source.clone(), *args)
        return target
    return func(target, source, *args)


@plot.dispatched("issue_124834", "aten.elu.default")
def issue_124834(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 124834: elu reads a tensor that is not contiguous in the order of its storage.

    https://github.com/pytorch/pytorch/issues/124834
    """
    wrong = in_storage_order(x)
    if wrong is not x and not torch.equal(wrong, x):
        hit()
        x = wrong
    return func(x, *args, **kwargs)
