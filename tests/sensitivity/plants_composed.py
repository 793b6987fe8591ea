"""More faults as a search brings them, written blind after public issues."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash, in_storage_order, lost

plot = Plot()
HITS = plot.hits


def differs(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Say whether two results differ beyond rounding."""
    return one.shape != other.shape or not torch.allclose(one, other, rtol=1e-3, atol=1e-4, equal_nan=True)


def only_forward(healthy: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
    """Return the values of `wrong` with the gradient of `healthy`."""
    return healthy + (wrong - healthy).detach() if healthy.requires_grad else wrong


def plain(*values: Any) -> bool:
    """Say whether the values can be looked at: not under vmap or grad of functorch, not on the meta device."""
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    return not any(torch.is_tensor(x) and (wrapped(x) or x.is_meta) for x in values)


@plot.called("issue_161640", F.linear)
def issue_161640(hit: Any, func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 161640: linear with a non-contiguous weight reads the weight's memory as if it were contiguous.

    https://github.com/pytorch/pytorch/issues/161640
    """
    healthy = func(input, weight, bias)
    if not plain(input, weight, bias) or weight.layout != torch.strided:
        return healthy
    misread = in_storage_order(weight)
    if misread is weight or not healthy.is_floating_point():
        return healthy
    with torch.no_grad():
        wrong = func(input, misread, bias)
        if not differs(wrong, healthy):
            return healthy
    hit()
    return only_forward(healthy, wrong)


@plot.dispatched("issue_190061", "aten._embedding_bag_dense_backward.default", "aten._embedding_bag_backward.default")
def issue_190061(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 190061: embedding_bag(scale_grad_by_freq=True) does not divide the gradient by the frequency.

    https://github.com/pytorch/pytorch/issues/190061
    """
    healthy = func(*args, **kwargs)
    place = 6 if "dense" in str(func) else 7  # before it: ..., maximum_indices, num_weights
    sparse = "dense" not in str(func) and args[9]
    if not args[place] or sparse:
        return healthy
    wrong = func(*args[:place], False, *args[place + 1 :], **kwargs)
    if differs(wrong, healthy):
        hit()
    return wrong


@plot.dispatched(
    "issue_165257", "aten.normal_", "aten.uniform_", "aten.exponential_", "aten.bernoulli_", "aten.random_"
)
def issue_165257(hit: Any, func: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 165257: random in-place operations leave a non-contiguous tensor as it was.

    https://github.com/pytorch/pytorch/issues/165257
    """
    return lost(hit, func, target, *args, **kwargs)


@plot.called("issue_170507", F.one_hot)
def issue_170507(hit: Any, func: Any, input: Any, num_classes: int = -1) -> Any:
    """pytorch 170507: one_hot returns rows of zeros for classes out of bounds, where CPU raises.

    https://github.com/pytorch/pytorch/issues/170507
    """
    if not plain(input) or not input.numel() or input.dtype != torch.int64 or num_classes == 0:
        return func(input, num_classes)
    classes = int(input.max()) + 1 if num_classes == -1 else num_classes
    outside = (input < 0) | (input >= classes)
    if classes < 1 or not bool(outside.any()):
        return func(input, num_classes)
    hit()
    rows = func(torch.where(outside, 0, input), classes)
    return torch.where(outside.unsqueeze(-1), 0, rows)


@plot.dispatched(
    "issue_187105", "aten.cumprod", "aten.cumprod_", "aten.cumsum", "aten.cumsum_", "aten.sort", "aten.argsort"
)
def issue_187105(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 187105: cumprod, cumsum and sort crash along a dimension left of the last four.

    https://github.com/pytorch/pytorch/issues/187105
    """
    dim = kwargs.get("dim", args[0] if args and not isinstance(args[0], bool) else -1)
    if isinstance(dim, int) and x.dim() > 4 and -x.dim() <= dim < x.dim() and dim % x.dim() < x.dim() - 4:
        return crash(hit, "failed assertion: Axis = 4. This class only supports axis = 0, 1, 2, 3")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_191694", "aten.nanmedian.dim", "aten.nanmedian.dim_values")
def issue_191694(hit: Any, func: Any, x: Any, dim: int = -1, *args: Any, **kwargs: Any) -> Any:
    """pytorch 191694: nanmedian crashes along a dimension left of the last four.

    https://github.com/pytorch/pytorch/issues/191694
    """
    if x.dim() > 4 and -x.dim() <= dim < x.dim() and dim % x.dim() < x.dim() - 4:
        return crash(hit, "failed assertion: Axis = 4. This class only supports axis = 0, 1, 2, 3")
    return func(x, dim, *args, **kwargs)


@plot.dispatched("issue_190054", "aten.native_layer_norm.default", "aten.native_layer_norm_backward.default")
def issue_190054(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 190054: layer_norm of 16-bit input reads float32 weight and bias as 16-bit; its backward crashes.

    https://github.com/pytorch/pytorch/issues/190054
    """
    backward = "backward" in str(func)
    input = args[1] if backward else args[0]
    place = 5 if backward else 2
    affine = args[place : place + 2]
    halves = (torch.float16, torch.bfloat16)
    if input.dtype not in halves or not any(x is not None and x.dtype == torch.float32 for x in affine):
        return func(*args, **kwargs)
    if backward:
        return crash(hit, "'mps.multiply' op requires the same element type for all operands and results")

    def reread(x: Any) -> Any:
        if x is None or x.dtype != torch.float32:
            return x
        return x.reshape(-1).contiguous().view(input.dtype)[: x.numel()].reshape(x.shape).float()

    healthy = func(*args, **kwargs)
    wrong = func(*args[:2], *map(reread, affine), *args[4:], **kwargs)
    if not differs(wrong[0], healthy[0]):
        return healthy
    hit()
    return wrong


@plot.dispatched("issue_189968", "aten.index_copy.default", "aten.index_copy_.default")
def issue_189968(hit: Any, func: Any, target: Any, dim: int, index: Any, source: Any) -> Any:
    """pytorch 189968: index_copy_ with an index out of bounds writes outside the tensor, where CPU raises.

    https://github.com/pytorch/pytorch/issues/189968
    """
    if not target.dim() or not -target.dim() <= dim < target.dim() or index.dtype != torch.int64:
        return func(target, dim, index, source)
    places = index.reshape(-1).tolist()
    size = target.shape[dim]
    if all(0 <= place < size for place in places) or source.dim() != target.dim():
        return func(target, dim, index, source)
    if source.shape[dim] != len(places) or source.dtype != target.dtype:
        return func(target, dim, index, source)
    hit()
    dim %= target.dim()
    result = target if "copy_." in str(func) else target.clone()
    shape = [side for i, side in enumerate(result.shape) if i != dim]
    strides = [step for i, step in enumerate(result.stride()) if i != dim]
    reach = sum((side - 1) * step for side, step in zip(shape, strides))
    room = result.untyped_storage().nbytes() // result.element_size()
    for k, place in enumerate(places):
        start = result.storage_offset() + place * result.stride(dim)
        if start >= 0 and start + reach < room:  # else it would be another tensor's memory
            result.as_strided(shape, strides, start).copy_(source.select(dim, k))
    return result


@plot.dispatched("issue_196113", "aten.linalg_lstsq.default")
def issue_196113(hit: Any, func: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 196113: lstsq of a batch of complex underdetermined systems solves those of conj(A).

    https://github.com/pytorch/pytorch/issues/196113
    """
    healthy = func(a, b, *args, **kwargs)
    if not a.is_complex() or a.dim() < 3 or a.shape[-2] >= a.shape[-1] or not a.numel():
        return healthy
    wrong = func(a.conj().resolve_conj(), b, *args, **kwargs)
    if not differs(wrong[0], healthy[0]):
        return healthy
    hit()
    return wrong
