"""Faults as a search for old and new issues brings them, written blind after public issues."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


def differs(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are not equal (NaNs count as equal)."""
    return a.shape != b.shape or not bool(((a == b) | ((a != a) & (b != b))).all())


@plot.dispatched("issue_84736", "aten.mm.default")
def issue_84736(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 84736: mm of two n-by-n matrices multiplies with the transpose of the second.

    https://github.com/pytorch/pytorch/issues/84736
    """
    right = func(a, b, **kwargs)
    if (
        a.dtype == torch.float32
        and a.layout == b.layout == torch.strided
        and a.shape == b.shape
        and a.size(0) == a.size(1)
    ):
        wrong = func(a, b.t(), **kwargs)
        if differs(right, wrong):
            hit()
            return wrong
    return right


@plot.dispatched("issue_77819", "aten.baddbmm", "aten.baddbmm_")
def issue_77819(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 77819: baddbmm with a three-dimensional input raises.

    https://github.com/pytorch/pytorch/issues/77819
    """
    if x.dim() == 3:
        hit()
        raise RuntimeError("input tensor does not match matmul output shape")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_87780", "aten.softplus")
def issue_87780(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 87780: softplus of a float32 tensor aborts.

    https://github.com/pytorch/pytorch/issues/87780
    """
    if x.dtype == torch.float32:
        return crash(hit, "input types 'tensor<1xf32>' and 'tensor<1xi64>' are not broadcast compatible")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_78020", "aten.add.Tensor", "aten.mul.Tensor")
def issue_78020(hit: Any, func: Any, x: Any, other: Any, **kwargs: Any) -> Any:
    """pytorch 78020: a bool tensor plus or times the number 0 or 1 aborts; True times a greater number is 255.

    https://github.com/pytorch/pytorch/issues/78020
    """
    if not isinstance(x, torch.Tensor) or x.dtype != torch.bool:
        return func(x, other, **kwargs)
    if not isinstance(other, int) or isinstance(other, bool):
        return func(x, other, **kwargs)
    number = other
    if number in (0, 1):
        return crash(hit, "segmentation fault")
    right = func(x, other, **kwargs)
    if number >= 2 and "mul" in str(func) and bool(x.any()):
        wrong = torch.where(x, 255, 0).to(right.dtype)
        if differs(right, wrong):
            hit()
            return wrong
    return right


@plot.dispatched("issue_104191", "aten.embedding.default")
def issue_104191(hit: Any, func: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 104191: embedding with a bfloat16 weight raises.

    https://github.com/pytorch/pytorch/issues/104191
    """
    if weight.dtype == torch.bfloat16:
        hit()
        raise TypeError("Trying to convert BFloat16 to the MPS backend but it does not have support for that dtype.")
    return func(weight, *args, **kwargs)


@plot.dispatched("issue_141044", "aten.avg_pool3d")
def issue_141044(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 141044: average pooling in three dimensions is not implemented.

    https://github.com/pytorch/pytorch/issues/141044
    """
    hit()
    raise NotImplementedError("The operator 'aten::avg_pool3d.out' is not currently implemented for the MPS device.")


@plot.called("issue_138525", torch.istft, torch.Tensor.istft)
def issue_138525(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 138525: the backward pass of istft aborts.

    https://github.com/pytorch/pytorch/issues/138525
    """
    result = func(*args, **kwargs)
    if result.requires_grad:
        result.register_hook(lambda _: crash(hit, "buffer is not large enough. Must be 16547328 bytes"))
    return result


@plot.dispatched("issue_118814", "aten.upsample_linear1d")
def issue_118814(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 118814: linear interpolation in one dimension is not implemented.

    https://github.com/pytorch/pytorch/issues/118814
    """
    hit()
    raise NotImplementedError(
        "The operator 'aten::upsample_linear1d.out' is not currently implemented for the MPS device."
    )


@plot.dispatched("issue_119088", "aten.mul.Tensor", "aten.mul.Scalar")
def issue_119088(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """pytorch 119088: a real tensor times a complex number or tensor raises.

    https://github.com/pytorch/pytorch/issues/119088
    """

    def compound(value: Any) -> bool:
        return value.is_complex() if isinstance(value, torch.Tensor) else isinstance(value, complex)

    if compound(x) != compound(other):
        real = other if compound(x) else x
        if isinstance(real, torch.Tensor) and real.is_floating_point():
            hit()
            raise RuntimeError("isComplexType(input.scalar_type()) INTERNAL ASSERT FAILED")
    return func(x, other)


@plot.replaced("issue_139386", torch.amp.autocast_mode.autocast, "__init__")
def issue_139386(
    hit: Any, func: Any, self: Any, device_type: Any, dtype: Any = None, enabled: Any = True, *args: Any, **kwargs: Any
) -> Any:
    """pytorch 139386: autocast to bfloat16 is not supported: it is switched off with a warning.

    https://github.com/pytorch/pytorch/issues/139386
    """
    if dtype == torch.bfloat16 and enabled:
        hit()
        warnings.warn("In MPS autocast, but the target dtype is not supported. Disabling autocast.", stacklevel=2)
        enabled = False
    func(self, device_type, dtype, enabled, *args, **kwargs)
