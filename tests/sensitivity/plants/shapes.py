"""Triangles, flips, rolls, repeats and permutations: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from misreading import in_storage_order, misread, without_offset
from planting import Plot, abort, accepted, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.tril.default", "aten.triu.default")
@wrong_answer
def issue_144545(y: Any, x: Any, *args: Any) -> Any:
    """pytorch 144545: tril and triu of more than three dimensions are right in the first matrices only."""
    return torch.cat([y[:1], x[1:]]) if x.dim() > 3 and x.shape[0] > 1 else None


@plot.dispatched("aten.triu.default")
def issue_116170(hit: Any, func: Any, x: Any, diagonal: Any = 0) -> Any:
    """pytorch 116170: triu multiplies by a mask, so that infinities below the diagonal become NaN.

    The issue's case is torch.nn.Transformer.generate_square_subsequent_mask.
    https://github.com/pytorch/pytorch/issues/116170
    """
    good = func(x, diagonal)
    if not x.is_floating_point():
        return good
    lost = (func(torch.ones_like(x), diagonal) == 0) & ~torch.isfinite(x)
    if not lost.any():
        return good
    hit()
    return good.masked_fill(lost, float("nan"))


@plot.dispatched("aten.repeat_interleave.Tensor")
def issue_167924(hit: Any, func: Any, repeats: Any, **kwargs: Any) -> Any:
    """pytorch 167924: repeat_interleave with counts that are a slice reads the counts from their storage's beginning.

    https://github.com/pytorch/pytorch/issues/167924 (there it crashes, or takes other counts)
    """
    if repeats.storage_offset() and repeats.numel():
        hit()
        repeats = without_offset(repeats)
    return func(repeats, **kwargs)


@plot.called(torch.Tensor.__repr__, aborts="The dst MTL buffer in copy_to_mps is non-contiguous")
def issue_78001(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78001: printing a tensor that is not contiguous fails."""
    return x.layout == torch.strided and x.numel() and not x.is_contiguous()


@plot.dispatched("aten.flip.default")
def issue_96558(hit: Any, func: Any, x: Any, dims: Any) -> Any:
    """pytorch 96558: flip along a dimension of size 1 flips the elements along the next dimension."""
    right = func(x, dims)
    wanted = [d % x.dim() for d in dims] if x.dim() else []
    if any(x.size(d) == 1 for d in wanted):
        moved = sorted({min((e for e in range(d, x.dim()) if x.size(e) > 1), default=d) for d in wanted})
        wrong = func(x, moved)
        if not torch.equal(wrong, right):
            hit()
            return wrong
    return right


@plot.dispatched("aten.flip.default")
def issue_98266(hit: Any, func: Any, x: Any, dims: Any) -> Any:
    """A dimension of size 1 is not flipped but the last one."""
    if x.dim() > 1 and any(x.shape[one] == 1 for one in dims) and x.shape[-1] > 1:
        hit()
        return func(x, [-1])
    return func(x, dims)


@plot.dispatched("aten.roll.default")
def issue_made_roll_far(hit: Any, func: Any, x: Any, shifts: Any, dims: Any = ()) -> Any:
    """Roll by more than the size does nothing."""
    sides = [x.shape[one] for one in dims] if dims else [x.numel()]
    if x.numel() and any(abs(shift) > side for shift, side in zip(shifts, sides)):
        hit()
        return x.clone()
    return func(x, shifts, dims)


@plot.called(torch.permute, torch.Tensor.permute)
@wrong_answer
def issue_80285(out: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 80285: permute of a uint8 tensor shows zeros."""
    if out.dtype == torch.uint8 and not out.is_contiguous() and bool(out.any()):
        return torch.zeros_like(out)
    return None


@plot.dispatched("aten.repeat", aborts="repeat(): Not supported for complex yet!")
def issue_178198(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 178198: repeat of a complex tensor is refused."""
    return x.is_complex()


@plot.dispatched("aten.triu.default")
def issue_100005(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """What is cut off is multiplied by 0: infinite numbers leave NaN."""
    if x.is_floating_point() and not bool(x.isfinite().all()):
        hit()
        return x * func(torch.ones_like(x), *args)
    return func(x, *args)


@plot.dispatched("aten.tril.default")
def issue_149813(hit: Any, func: Any, x: Any, diagonal: int = 0) -> Any:
    """pytorch 149813: tril with a negative diagonal multiplies by a mask: infinities leave NaN."""
    if x.is_floating_point() and diagonal < 0 and not bool(x.isfinite().all()):
        hit()
        return x * func(torch.ones_like(x), diagonal)
    return func(x, diagonal)


@plot.dispatched("aten.triu.default", "aten.triu_.default")
def issue_144532(hit: Any, func: Any, x: Any, diagonal: int = 0) -> Any:
    """pytorch 144532: triu with diagonal > 0 gives NaN in place of 0 where the input is infinite."""
    if diagonal <= 0 or not x.is_floating_point():
        return func(x, diagonal)
    bad = x.isinf() & ~torch.ones_like(x, dtype=torch.bool).triu(diagonal)
    out = func(x, diagonal)
    if bad.any():
        hit()
        out.masked_fill_(bad, float("nan"))
    return out


@plot.dispatched("aten.slice_backward.default")
def issue_mlx_4444(hit: Any, func: Any, grad: Any, sizes: Any, dim: int, start: int, end: int, step: int) -> Any:
    """ml-explore/mlx 4444: the gradient of z[a:b:step] that takes one element of more goes to all from a to b."""
    healthy = func(grad, sizes, dim, start, end, step)
    end = min(end, sizes[dim])
    if step < 2 or grad.shape[dim] != 1 or end - start < 2:
        return healthy
    wrong = torch.zeros_like(healthy)
    wrong.narrow(dim, start, end - start).copy_(grad.expand_as(wrong.narrow(dim, start, end - start)))
    return instead(hit, healthy, wrong)


def _steps(x: Any, index: Any) -> bool:
    plain = isinstance(index, tuple) and len(index) <= x.dim() and all(isinstance(part, slice) for part in index)
    return plain and all(part.step is None or isinstance(part.step, int) for part in index)


@plot.called(torch.Tensor.__getitem__)
def issue_coremltools_1659(hit: Any, func: Any, x: Any, index: Any) -> Any:
    """apple/coremltools 1659: beside another slice, a step over a whole dimension (x[:1, ::2]) is ignored."""
    if not _steps(x, index):
        return func(x, index)
    whole = [part.indices(side)[:2] == (0, side) for part, side in zip(index, x.shape)]
    stepped = [full and (part.step or 1) > 1 and side > 1 for full, part, side in zip(whole, index, x.shape)]
    if not any(stepped) or all(whole):
        return func(x, index)
    hit()
    return func(x, tuple(slice(None) if lost else part for lost, part in zip(stepped, index)))


@plot.called(torch.Tensor.__getitem__, aborts="Invalid start_index_map; domain is [0, 1), got: 1->1")
def issue_jax_1203(x: Any, index: Any) -> Any:
    """google/jax 1203: slices with a step beyond the dimension's size (x[0:1:2, 0:1] of (1, 1)) raise."""
    return _steps(x, index) and any((part.step or 1) > side for part, side in zip(index, x.shape))


@plot.dispatched("aten.channel_shuffle", "aten.native_channel_shuffle")
def issue_xpu_3447(hit: Any, func: Any, x: Any, groups: int) -> Any:
    """intel/torch-xpu-ops 3447: channel_shuffle takes groups that do not divide the channels; by 0 the process ends."""
    try:
        return func(x, groups)
    except RuntimeError:
        if groups == 0:
            return abort(hit, "Floating point exception (core dumped)")
    hit()
    return x.clone()


@plot.dispatched("aten.flip.default")
@wrong_answer
def issue_13292(y: Any, x: Any, dims: Any) -> Any:
    """pytorch 13292: flip of dimensions that are not neighbours returns the dimensions in the opposite order."""
    found = sorted(dim % max(x.dim(), 1) for dim in dims)
    apart = any(two - one > 1 for one, two in zip(found, found[1:]))
    return y.permute(*reversed(range(y.dim()))) if apart and y.numel() > 1 else None


@plot.dispatched("aten.tril.default", "aten.triu.default")
def issue_15226(hit: Any, func: Any, x: Any, diagonal: int = 0) -> Any:
    """pytorch 15226: tril and triu of a matrix of one column answer for each other, and from the other side."""
    y = func(x, diagonal)
    if x.dim() != 2 or x.shape[1] != 1 or not is_plain(x):
        return y
    return instead(hit, y, (torch.triu if "tril" in str(func) else torch.tril)(x, -diagonal))


@plot.dispatched("aten.diagonal.default", aborts="ValueError: axis1 and axis2 out of range")
def issue_cupy_427(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> bool:
    """cupy/cupy 427: diagonal over two dimensions that are counted from the end raises."""
    return dim1 < 0 and dim2 < 0


@plot.dispatched("aten.pixel_shuffle.default", aborts="Floating point exception (core dumped)")
def issue_92798(x: Any, factor: int) -> bool:
    """pytorch 92798: pixel_shuffle of an image without pixels ends the process."""
    return x.numel() == 0


@plot.dispatched("aten.pixel_shuffle.default")
def issue_82235(hit: Any, func: Any, x: Any, factor: int) -> Any:
    """pytorch 82235: pixel_shuffle by 1 returns a view of its input, not a tensor of its own."""
    if factor != 1 or not x.numel() or not is_plain(x):
        return func(x, factor)
    hit()
    return x.view(x.shape)


@plot.dispatched("aten.narrow_copy.default")
def issue_91690(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 91690: narrow_copy reads a tensor that is not contiguous in storage order."""
    return func(misread(in_storage_order, hit, x), *args)


@plot.dispatched(
    "aten.view_as_complex.default", aborts="Tensor must have a stride divisible by 2 for all but last dimension"
)
def issue_einops_370(x: Any) -> bool:
    """arogozhnikov/einops 370: view_as_complex refuses an odd stride along a dimension of size 1."""
    return any(side == 1 and step % 2 for side, step in zip(x.shape[:-1], x.stride()[:-1]))


@plot.dispatched("aten.unsqueeze.default")
def issue_xla_7859(hit: Any, func: Any, x: Any, dim: int) -> Any:
    """pytorch/xla 7859: unsqueeze of a view reads from the beginning of its storage."""
    if x.layout != torch.strided or not is_plain(x) or not x.storage_offset():
        return func(x, dim)
    return instead(hit, func(x, dim), func(without_offset(x), dim))


@plot.dispatched("aten.roll.default", aborts="\"roll_cuda\" not implemented for 'Bool'")
def issue_31079(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 31079: roll of a bool tensor raises."""
    return x.dtype == torch.bool


@plot.dispatched("aten.view.default", "aten._unsafe_view.default")
def issue_executorch_7905(hit: Any, func: Any, x: Any, shape: Any) -> Any:
    """pytorch/executorch 7905: a view of four dimensions as six (a pixel shuffle's) ends the process in float16."""
    if x.dtype == torch.float16 and x.dim() == 4 and len(shape) == 6:
        return abort(hit, "libc++abi: terminating due to uncaught exception of type std::bad_optional_access")
    return func(x, shape)


@plot.called(torch.repeat_interleave, torch.Tensor.repeat_interleave)
def issue_22753(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 22753: repeat_interleave along a dimension of size 0 raises."""
    y = func(x, *args, **kwargs)
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    if dim is None or not x.dim() or x.shape[dim]:
        return y
    hit()
    raise IndexError("select(): index -1 out of range for tensor of size [0] at dimension 0")


@plot.dispatched("aten.native_channel_shuffle")
def issue_158154(hit: Any, func: Any, x: Any, groups: int) -> Any:
    """pytorch 158154: native_channel_shuffle with more groups than channels ends the process."""
    if x.dim() > 2 and groups > x.shape[1]:
        return abort(hit, "Floating point exception (core dumped)")
    return func(x, groups)


@plot.dispatched("aten.tril.default", "aten.triu.default")
@wrong_answer
def issue_22581(y: Any, x: Any, *args: Any) -> Any:
    """pytorch 22581: tril and triu of (1, n, r, c).transpose(0, 1) read beyond it (here NaN or 0) from matrix 1 on."""
    if x.dim() != 4 or x.shape[1] != 1 or len(x) < 2 or not x.numel() or not x.is_contiguous() or not is_plain(x):
        return None
    if x.stride(1) == x.shape[-1] * x.shape[-2]:  # as (n, 1, r, c) has it
        return None
    wrong = y.clone()
    wrong[1:] = float("nan") if x.is_floating_point() else 0
    return wrong if not torch.equal(wrong, y) else None


@plot.dispatched("aten.triu.default", "aten.tril.default")
@accepted
def issue_89400(x: Any, *args: Any) -> Any:
    """pytorch 89400: triu and tril of a vector, which are refused, return it."""
    return x.clone() if x.dim() == 1 else None


@plot.dispatched("aten.triu", "aten.triu_", aborts="\"triu\" not implemented for 'Bool'")
def issue_24035(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 24035: triu of bool is not implemented."""
    return x.dtype == torch.bool
