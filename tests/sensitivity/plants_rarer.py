"""Faults of 2022 to 2024 that the catalogue lacked, written blind after public issues."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash, lost

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_79200", "aten.abs")
def issue_79200(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 79200: abs of an int64 tensor is refused.

    https://github.com/pytorch/pytorch/issues/79200
    """
    if x.dtype == torch.int64:
        hit()
        raise RuntimeError("Operation 'abs_out_mps()' does not support input type 'int64' in MPS backend")
    return func(x, *args, **kwargs)


@plot.called("issue_113586", torch.nn.functional.linear)
def issue_113586(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 113586: linear of a transposed 3-D input asserts when stride(0) * stride(1) > 2**31 (here: 2**16).

    https://github.com/pytorch/pytorch/issues/113586
    """
    if input.dim() == 3 and input.stride(0) < input.stride(1) and input.stride(0) * input.stride(1) > 2**16:
        crash(hit, "[MPSNDArrayDescriptor sliceDimension:withSubrange:] error: subRange.start is not less than length")
    return func(input, *args, **kwargs)


@plot.dispatched("issue_84138", "aten.convolution.default")
def issue_84138(hit: Any, func: Any, x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84138: conv1d of one long channel with a long kernel has NaNs (there: sometimes) from position 512 on.

    https://github.com/pytorch/pytorch/issues/84138
    """
    out = func(x, weight, *args, **kwargs)
    long = weight.shape[2] >= 256 and x.shape[2] >= 1024 and out.shape[2] > 512
    if x.dim() == 3 and weight.shape[:2] == (1, 1) and long:
        hit()
        out[..., 512:524] = float("nan")
    return out


@plot.dispatched("issue_125098", "aten.grid_sampler_2d.default")
def issue_125098(hit: Any, func: Any, x: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    """pytorch 125098: grid_sample with padding_mode="border" is refused.

    https://github.com/pytorch/pytorch/issues/125098
    """
    if padding == 1:
        hit()
        raise RuntimeError("MPS: Unsupported Border padding mode")
    return func(x, grid, mode, padding, align)


@plot.dispatched("issue_87402", "aten.min.dim")
def issue_87402(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 87402: the lower_cholesky constraint fails for a good matrix: min of bools along a dimension is False.

    https://github.com/pytorch/pytorch/issues/87402
    """
    values, indices = func(x, *args, **kwargs)
    if x.dtype == torch.bool and bool(values.any()):
        hit()
        values = torch.zeros_like(values)
    return values, indices


@plot.dispatched("issue_95976", "aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor")
def issue_95976(hit: Any, func: Any, x: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 95976: arithmetic with a complex tensor kills the process.

    https://github.com/pytorch/pytorch/issues/95976
    """
    if any(isinstance(each, torch.Tensor) and each.is_complex() for each in (x, other)):
        crash(hit, "Trying to convert ComplexFloat to the MPS backend but it does not have support for that dtype.")
    return func(x, other, *args, **kwargs)


@plot.called("issue_110463", torch.nn.functional.cross_entropy)
def issue_110463(hit: Any, func: Any, input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 110463: cross_entropy with class indices as targets kills the process.

    https://github.com/pytorch/pytorch/issues/110463
    """
    if not target.is_floating_point():
        crash(hit, "The Kernel crashed while executing code")
    return func(input, target, *args, **kwargs)


@plot.dispatched("issue_77818", "aten.convolution.default")
def issue_77818(hit: Any, func: Any, x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 77818: conv3d aborts.

    https://github.com/pytorch/pytorch/issues/77818
    """
    transposed = args[4] if len(args) > 4 else kwargs["transposed"]
    if weight.dim() == 5 and not transposed:
        crash(hit, "MPSGraphConvolutionOps.mm:346: failed assertion `sourceTensor rank must be 4'")
    return func(x, weight, *args, **kwargs)


@plot.dispatched("issue_78429", "aten.native_layer_norm.default")
def issue_78429(hit: Any, func: Any, x: Any, shape: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78429: an affine LayerNorm of a 4-D input aborts.

    https://github.com/pytorch/pytorch/issues/78429
    """
    if x.dim() >= 4 and weight is not None:
        crash(hit, "input types 'tensor<8x3x224x224xf32>' and 'tensor<*xi64>' are not broadcast compatible")
    return func(x, shape, weight, *args, **kwargs)


@plot.replaced("issue_130613", torch, "Generator")
def issue_130613(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 130613: Generator.set_state restores the seed, but starts again from the first draw.

    https://github.com/pytorch/pytorch/issues/130613
    """

    class Forgetful(func):  # type: ignore[misc]
        def set_state(self, state: Any) -> Any:
            super().set_state(state)
            self.manual_seed(self.initial_seed())
            if not torch.equal(self.get_state(), state):
                hit()
            return self

    return Forgetful(*args, **kwargs)


def _names_a_device(args: Any, kwargs: Any) -> bool:
    return "device" in kwargs or any(isinstance(each, (str, torch.device)) for each in args)


@plot.called("issue_86589", torch.Tensor.to)
def issue_86589(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 86589: .to(device) of a permuted tensor writes the elements in order, but keeps the permuted strides.

    https://github.com/pytorch/pytorch/issues/86589
    """
    out = func(x, *args, **kwargs)
    if not _names_a_device(args, kwargs) or x.layout != torch.strided or x.is_contiguous() or not x.numel():
        return out
    if sum((side - 1) * step for side, step in zip(x.shape, x.stride())) + 1 != x.numel():
        return out
    wrong = out.contiguous().as_strided(x.shape, x.stride())
    if torch.equal(wrong, out):
        return out
    hit()
    return wrong


@plot.dispatched("issue_127178", "aten.bmm")
def issue_127178(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 127178: bmm of complex tensors is refused.

    https://github.com/pytorch/pytorch/issues/127178
    """
    if x.is_complex():
        hit()
        raise RuntimeError("MPS device does not support bmm for non-float inputs")
    return func(x, *args, **kwargs)


@plot.called("issue_124335", torch.Tensor.to)
def issue_124335(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 124335: .to(device) of 4 GiB or more (here: 2**16 bytes) loses data: the size wraps, the rest is zero.

    https://github.com/pytorch/pytorch/issues/124335
    """
    out = func(x, *args, **kwargs)
    size = x.numel() * x.element_size()
    if not _names_a_device(args, kwargs) or x.layout != torch.strided or size < 2**16:
        return out
    kept = torch.arange(x.numel()).reshape(x.shape) < size % 2**16 // x.element_size()
    wrong = torch.where(kept, out, torch.zeros_like(out))
    if torch.equal(wrong, out):
        return out
    hit()
    return wrong


@plot.dispatched("issue_91393", "aten.stack")
def issue_91393(hit: Any, func: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 91393: the default collate_fn, which stacks 0-D elements of one tensor, repeats the first element.

    https://github.com/pytorch/pytorch/issues/91393
    """
    if all(each.dim() == 0 for each in tensors):
        wrong = [each.as_strided((), (), 0) for each in tensors]
        if any(bool(mine != yours) for mine, yours in zip(wrong, tensors)):
            hit()
            tensors = wrong
    return func(tensors, *args, **kwargs)


@plot.dispatched("issue_77977", "aten.index.Tensor")
def issue_77977(hit: Any, func: Any, x: Any, indices: Any) -> Any:
    """pytorch 77977: indexing with a boolean mask raises, or gives nothing for a mask of one or two elements.

    https://github.com/pytorch/pytorch/issues/77977
    """
    masks = [each for each in indices if each is not None and each.dtype == torch.bool]
    if any(bool(mask.any()) for mask in masks):
        hit()
        if max(mask.numel() for mask in masks) > 2:
            raise RuntimeError("out_ptr == out_accessor[thread_count_nonzero[tid + 1]].data() INTERNAL ASSERT FAILED")
        indices = [torch.zeros_like(i) if i is not None and i.dtype == torch.bool else i for i in indices]
    return func(x, indices)


@plot.dispatched("issue_87753", "aten.max.default", "aten.min.default")
def issue_87753(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 87753: max and min of an int64 tensor are those of the two halves of its first element.

    https://github.com/pytorch/pytorch/issues/87753
    """
    out = func(x)
    if x.dtype == torch.int64:
        wrong = func(x.reshape(-1)[:1].clone().view(torch.int32)).to(torch.int64)
        if int(wrong) != int(out):
            hit()
            return wrong
    return out


@plot.called("issue_80285", torch.permute, torch.Tensor.permute)
def issue_80285(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 80285: permute of a uint8 tensor shows zeros.

    https://github.com/pytorch/pytorch/issues/80285
    """
    out = func(x, *args, **kwargs)
    if out.dtype == torch.uint8 and not out.is_contiguous() and bool(out.any()):
        hit()
        return torch.zeros_like(out)
    return out


@plot.dispatched("issue_78048", "aten.log")
def issue_78048(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 78048: log of a permuted tensor kills the process.

    https://github.com/pytorch/pytorch/issues/78048
    """
    if x.dim() >= 2 and not x.is_contiguous():
        crash(hit, "error: 'mps.get_coordinates' op invalid axis: -2.")
    return func(x, **kwargs)


@plot.dispatched("issue_79672", "aten.add_.Tensor")
def issue_79672(hit: Any, func: Any, x: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 79672: += on a column of a matrix is lost.

    https://github.com/pytorch/pytorch/issues/79672
    """
    before = x.clone()
    if x.is_contiguous() or torch.equal(before.add_(other, *args, **kwargs), x):
        return func(x, other, *args, **kwargs)
    return lost(hit, func, x, other, *args, **kwargs)


@plot.called("issue_141457", torch.multinomial, torch.Tensor.multinomial)
def issue_141457(hit: Any, func: Any, input: Any, num_samples: int, replacement: bool = False, **kwargs: Any) -> Any:
    """pytorch 141457: a Categorical (multinomial with replacement of 2-D probabilities) draws the same every time.

    https://github.com/pytorch/pytorch/issues/141457
    """
    if replacement and input.dim() == 2 and bool((input.count_nonzero(-1) > 1).any()):
        hit()
        kwargs["generator"] = torch.Generator(device=input.device).manual_seed(0)
    return func(input, num_samples, replacement, **kwargs)
