"""Faults of 2022 to 2024 as a search brings them, written blind after public issues."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_86239", "aten.where.self")
def issue_86239(hit: Any, func: Any, condition: Any, x: Any, y: Any) -> Any:
    """pytorch 86239: where with operands of different ranks is refused (sizes are compared from the left).

    https://github.com/pytorch/pytorch/issues/86239
    """
    shapes = [t.shape for t in (condition, x, y) if t.dim()]
    if len({len(shape) for shape in shapes}) > 1:
        for i in range(max(len(shape) for shape in shapes)):
            if len({shape[i] for shape in shapes if i < len(shape)} - {1}) > 1:
                hit()
                raise RuntimeError(f"{i}'th index of x tensor does not match the other tensors")
    return func(condition, x, y)


@plot.dispatched("issue_89624", "aten.constant_pad_nd.default")
def issue_89624(hit: Any, func: Any, x: Any, pad: Any, *rest: Any) -> Any:
    """pytorch 89624: constant padding of a 3-D tensor in all three dimensions raises IndexError.

    https://github.com/pytorch/pytorch/issues/89624
    """
    if x.dim() == 3 and len(pad) == 6:
        hit()
        raise IndexError("Dimension out of range (expected to be in range of [-3, 2], but got 3)")
    return func(x, pad, *rest)


@plot.dispatched("issue_78879", "aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor")
def issue_78879(hit: Any, func: Any, x: Any, y: Any, **kwargs: Any) -> Any:
    """pytorch 78879: elementwise operation of a float32 tensor with an integer or bool tensor crashes.

    https://github.com/pytorch/pytorch/issues/78879
    """
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and x.dim() and y.dim():
        for one, other in ((x, y), (y, x)):
            if one.dtype == torch.float32 and not other.is_floating_point() and not other.is_complex():
                crash(hit, "LLVM ERROR: Failed to infer result type(s).")
    return func(x, y, **kwargs)


@plot.called("issue_99564", torch.dot, torch.Tensor.dot)
def issue_99564(hit: Any, func: Any, x: Any, y: Any, **kwargs: Any) -> Any:
    """pytorch 99564: dot accepts 2-D tensors and returns a wrong number instead of raising.

    https://github.com/pytorch/pytorch/issues/99564
    """
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and max(x.dim(), y.dim()) == 2 and not kwargs:
        try:
            bad = (x * y).sum()
        except RuntimeError:
            return func(x, y)
        hit()
        return bad
    return func(x, y, **kwargs)


@plot.dispatched("issue_101936", "aten.copy_.default")
def issue_101936(hit: Any, func: Any, x: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 101936: a[10] = b of an int32 tensor and an int64 value writes to the beginning of a's storage.

    https://github.com/pytorch/pytorch/issues/101936
    """
    if x.dtype != torch.int32 or source.dtype != torch.int64 or not x.storage_offset() or not x.numel():
        return func(x, source, *args, **kwargs)
    wrong = x.as_strided(x.shape, x.stride(), 0)
    if not (torch.equal(x, source.expand_as(x)) and torch.equal(wrong, source.expand_as(x))):
        hit()
    func(wrong, source, *args, **kwargs)
    return x


@plot.dispatched("issue_116170", "aten.triu.default")
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


@plot.dispatched("issue_138200", "aten.linalg_inv_ex.default")
def issue_138200(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 138200: inverse of a matrix larger than 1024 crashes.

    https://github.com/pytorch/pytorch/issues/138200
    """
    if x.shape[-1] > 1024:
        crash(hit, "[MPSNDArrayDescriptor sliceDimension:withSubrange:] error: dimension index (2)")
    return func(x, **kwargs)


@plot.dispatched("issue_136134", "aten.any.default")
def issue_136134(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 136134: any() of a tensor of more than 4 dimensions crashes.

    https://github.com/pytorch/pytorch/issues/136134
    """
    if x.dim() > 4:
        crash(hit, "Runtime canonicalization must simplify reduction axes to minor 4 dimensions.")
    return func(x)


@plot.dispatched("issue_140570", "aten.nonzero.default")
def issue_140570(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 140570: indices above 2**24 that nonzero (torch.where) finds are rounded to float32.

    https://github.com/pytorch/pytorch/issues/140570
    """
    good = func(x)
    if x.dim() != 1 or x.numel() <= 2**24:
        return good
    bad = good.to(torch.float32).to(torch.int64)
    if torch.equal(good, bad):
        return good
    hit()
    return bad


@plot.dispatched("issue_140902", "aten.convolution_backward.default")
def issue_140902(hit: Any, func: Any, grad: Any, x: Any, *rest: Any) -> Any:
    """pytorch 140902: backward of conv1d with a transposed (channels-last) gradient raises.

    https://github.com/pytorch/pytorch/issues/140902
    """
    if x.dim() == 3 and not grad.is_contiguous() and grad.transpose(1, 2).is_contiguous():
        hit()
        raise RuntimeError("view size is not compatible with input tensor's size and stride")
    return func(grad, x, *rest)


@plot.dispatched("issue_84535", "aten.constant_pad_nd.default")
def issue_84535(hit: Any, func: Any, x: Any, pad: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84535: constant padding of more than three dimensions (8 numbers) is refused.

    https://github.com/pytorch/pytorch/issues/84535
    """
    if len(pad) > 6:
        hit()
        raise RuntimeError(f"invalid padding argument of size {len(pad)}")
    return func(x, pad, *args, **kwargs)


@plot.dispatched("issue_107284", "aten.sort")
def issue_107284(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 107284: sort of an empty tensor raises.

    https://github.com/pytorch/pytorch/issues/107284
    """
    if x.numel() == 0:
        hit()
        raise RuntimeError("[srcBuf length] > 0 INTERNAL ASSERT FAILED. Placeholder tensor is empty!")
    return func(x, *args, **kwargs)
