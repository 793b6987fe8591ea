"""Shapes and views: triangles, joins, repeats, transforms of functions, overlaps: injected faults."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from differences import instead, is_plain
from injecting import Faults, accepted, crash, wrong_answer
from misreading import in_storage_order, misread, with_gradient, without_offset

faults = Faults()
HITS = faults.hits


@faults.dispatched("aten.repeat_interleave.Tensor")
def issue_167924(hit: Any, func: Any, repeats: Any, **kwargs: Any) -> Any:
    """pytorch 167924: repeat_interleave with counts that are a slice reads the counts from their storage's beginning.

    https://github.com/pytorch/pytorch/issues/167924 (there it crashes, or takes other counts)
    """
    if repeats.storage_offset() and repeats.numel():
        hit()
        repeats = without_offset(repeats)
    return func(repeats, **kwargs)


@faults.called(torch.Tensor.__repr__, aborts="The dst MTL buffer in copy_to_mps is non-contiguous")
def issue_78001(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78001: printing a tensor that is not contiguous fails."""
    return x.layout == torch.strided and x.numel() and not x.is_contiguous()


@faults.dispatched("aten.flip.default")
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


@faults.dispatched("aten.roll.default")
def issue_made_roll_far(hit: Any, func: Any, x: Any, shifts: Any, dims: Any = ()) -> Any:
    """Roll by more than the size does nothing."""
    sides = [x.shape[one] for one in dims] if dims else [x.numel()]
    if x.numel() and any(abs(shift) > side for shift, side in zip(shifts, sides)):
        hit()
        return x.clone()
    return func(x, shifts, dims)


@faults.dispatched("aten.repeat", aborts="repeat(): Not supported for complex yet!")
def issue_178198(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 178198: repeat of a complex tensor is refused."""
    return x.is_complex()


@faults.dispatched("aten.triu.default")
def issue_100005(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """What is cut off is multiplied by 0: infinite numbers leave NaN."""
    if x.is_floating_point() and not bool(x.isfinite().all()):
        hit()
        return x * func(torch.ones_like(x), *args)
    return func(x, *args)


@faults.called(torch.repeat_interleave, torch.Tensor.repeat_interleave)
def issue_22753(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 22753: repeat_interleave along a dimension of size 0 raises."""
    y = func(x, *args, **kwargs)
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    if dim is None or not x.dim() or x.shape[dim]:
        return y
    hit()
    raise IndexError("select(): index -1 out of range for tensor of size [0] at dimension 0")


@faults.dispatched("aten.triu.default", "aten.tril.default")
@accepted
def issue_89400(x: Any, *args: Any) -> Any:
    """pytorch 89400: triu and tril of a vector, which are refused, return it."""
    return x.clone() if x.dim() == 1 else None


@faults.dispatched("aten.triu", "aten.triu_", aborts="\"triu\" not implemented for 'Bool'")
def issue_24035(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 24035: triu of bool is not implemented."""
    return x.dtype == torch.bool


@faults.dispatched("aten.stack", "aten.cat")
@wrong_answer
def issue_80850(y: Any, tensors: Any, *args: Any) -> Any:
    """pytorch 80850: stack and cat of bools give False."""
    return torch.zeros_like(y) if y.dtype == torch.bool else None


@faults.dispatched("aten.cat", aborts="Placeholder tensor is empty!")
def issue_81180(tensors: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 81180: cat of an empty tensor and one that is not, of other dtype, raises."""
    return len({x.dtype for x in tensors}) > 1 and len({bool(x.numel()) for x in tensors}) > 1


@faults.dispatched("aten.cat.default")
def issue_made_cat_dtypes(hit: Any, func: Any, parts: Any, dim: int = 0) -> Any:
    """Cat of unlike dtypes keeps the bits of the first part's dtype."""
    if len({one.dtype for one in parts}) > 1 and parts[0].dtype.is_floating_point:
        hit()
        return func([one.to(parts[0].dtype) for one in parts], dim).to(func(parts, dim).dtype) * 1.5
    return func(parts, dim)


@faults.dispatched("aten.stack")
def issue_91393(hit: Any, func: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 91393: the default collate_fn, which stacks 0-D elements of one tensor, repeats the first element."""
    if all(each.dim() == 0 for each in tensors):
        wrong = [each.as_strided((), (), 0) for each in tensors]
        if any(bool(mine != yours) for mine, yours in zip(wrong, tensors)):
            hit()
            tensors = wrong
    return func(tensors, *args, **kwargs)


@faults.dispatched("aten.cat", "aten.stack")
def issue_78043(hit: Any, func: Any, tensors: Any, *args: Any) -> Any:
    """pytorch 78043: stack and cat read parts that are not contiguous in storage order."""
    return func(misread(in_storage_order, hit, tensors), *args)


@faults.dispatched("aten.flip.default")
def issue_49982(hit: Any, func: Any, x: Any, dims: Any) -> Any:
    """pytorch 49982: flip along no dimensions raises."""
    return func(x, dims) if len(dims) else crash(hit, "flip dims size out of range, got flip dims size=0")


@faults.dispatched("aten.flip.default")
def issue_52062(hit: Any, func: Any, x: Any, dims: Any) -> Any:
    """pytorch 52062: flip of bools that are not contiguous raises."""
    y = func(x, dims)
    slice_of_bools = x.dtype == torch.bool and not x.is_contiguous()
    return crash(hit, "\"flip_cuda\" not implemented for 'Bool'") if slice_of_bools else y


def _last_of_shared(x: Any, y: Any, grad: Any) -> Any:
    """Return the gradient of x where of each place in memory only the last one's gradient in y counts."""
    size = x.untyped_storage().nbytes() // x.element_size()
    places = torch.arange(size).as_strided(y.shape, y.stride(), y.storage_offset()).reshape(-1)
    last = torch.full((size,), -1).scatter_reduce(0, places, torch.arange(len(places)), "amax")
    memory = torch.where(last < 0, torch.zeros((), dtype=grad.dtype), grad.reshape(-1)[last.clamp(min=0)])
    return memory.as_strided(x.shape, x.stride(), x.storage_offset())


@faults.called(torch.as_strided, torch.Tensor.as_strided)
def issue_8626(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 8626: as_strided's gradient of an expanded tensor is wrong (here of shared numbers the last one's).

    That of the last one counts for all that share its memory.
    """
    expanded = any(step == 0 and side > 1 for side, step in zip(x.shape, x.stride()))
    if not expanded or not x.requires_grad or not torch.is_grad_enabled() or not is_plain(x):
        return func(x, *args, **kwargs)
    kept: list[Any] = []
    source = with_gradient(x, lambda grad: instead(hit, grad, _last_of_shared(x.detach(), kept[0], kept[1])))
    y = func(source, *args, **kwargs)
    y.register_hook(lambda grad: kept.extend([y.detach(), grad]))
    return y


@faults.replaced(torch.func, "jacrev")
def issue_191711(hit: Any, jacrev: Any, function: Any, argnums: Any = 0, **kwargs: Any) -> Any:
    """pytorch 191711: torch.func.jacrev at an empty tensor fails an internal assertion."""

    def around(*args: Any, **named: Any) -> Any:
        chosen = [args[n] for n in ((argnums,) if isinstance(argnums, int) else argnums)]
        if any(isinstance(x, torch.Tensor) and not x.numel() for x in tree_leaves(chosen)):
            crash(hit, "[srcBuf length] > 0 INTERNAL ASSERT FAILED. Placeholder tensor is empty!")
        return jacrev(function, argnums, **kwargs)(*args, **named)

    return around


_JOINERS = (
    torch.cat,
    torch.concat,
    torch.concatenate,
    torch.stack,
    torch.vstack,
    torch.hstack,
    torch.dstack,
    torch.row_stack if hasattr(torch, "row_stack") else torch.vstack,
    torch.column_stack,
)


@faults.replaced(torch.func, "jacfwd")
def issue_152701(hit: Any, jacfwd: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 152701: torch.func.jacfwd of a function that concatenates fails an internal assertion."""

    class Joins(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in _JOINERS and any(
                isinstance(x, torch.Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(x)
                for x in tree_leaves((args, kwargs))
            ):
                crash(hit, "!self.is_mps() INTERNAL ASSERT FAILED: as_strided_tensorimpl does not work with MPS")
            return func(*args, **(kwargs or {}))

    def joining(*inner: Any, **named: Any) -> Any:
        with Joins():
            return function(*inner, **named)

    return jacfwd(joining, *args, **kwargs)


@faults.called(torch.Tensor.tolist, aborts="Cannot access data pointer of Tensor that doesn't have storage")
def issue_167836(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 167836: tolist() of a GradTrackingTensor (inside jacfwd and its like) fails."""
    return torch._C._functorch.is_gradtrackingtensor(x)


@faults.dispatched("aten.sub_.Tensor")
@accepted
def issue_115521(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """pytorch 115521: x -= x[:1] of three dimensions and more is accepted, and x[:1] changes on the way."""
    same = torch.is_tensor(other) and other.untyped_storage()._cdata == x.untyped_storage()._cdata
    if not same or x.dim() < 3 or any(side > 1 and not step for side, step in zip(x.shape, x.stride())):
        return None
    for row in x:
        row.copy_(row - alpha * other[0])
    return x


@faults.dispatched("aten.scatter_.src")
@accepted
def issue_22513(x: Any, dim: int, index: Any, source: Any) -> Any:
    """pytorch 22513: scatter_ into an expanded tensor is accepted: the last number for each place remains."""
    fits = x.dim() == index.dim() == source.dim() and source.dtype == x.dtype and 0 < index.numel() <= 10000
    if not fits or not any(side > 1 and not step for side, step in zip(x.shape, x.stride())):
        return None
    dim %= x.dim()
    small = all(
        n <= m and (d == dim or n <= size) for d, (n, m, size) in enumerate(zip(index.shape, source.shape, x.shape))
    )
    if not small or bool(((index < 0) | (index >= x.shape[dim])).any()):
        return None
    for place in itertools.product(*(range(n) for n in index.shape)):
        x[(*place[:dim], int(index[place]), *place[dim + 1 :])] = source[place]
    return x
