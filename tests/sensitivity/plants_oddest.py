"""Faults of 2022 to 2024 that the catalogue lacked, written blind after public reports, a second time."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash, without_offset

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_85143", "aten.constant_pad_nd.default")
def issue_85143(hit: Any, func: Any, x: Any, pad: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 85143: constant padding of the last two dimensions of a 3-D tensor aborts (equalShape for destination).

    https://github.com/pytorch/pytorch/issues/85143
    """
    if x.dim() == 3 and len(pad) == 4 and any(pad[2:]):
        return crash(hit, "Error: Invalid KernelDAG, equalShape for destination failed")
    return func(x, pad, *args, **kwargs)


@plot.dispatched("issue_83343", "aten.constant_pad_nd.default")
def issue_83343(hit: Any, func: Any, x: Any, pad: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 83343: constant padding of a 1-D tensor raises "Dimension out of range".

    https://github.com/pytorch/pytorch/issues/83343
    """
    if x.dim() == 1 and len(pad) == 2:
        hit()
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    return func(x, pad, *args, **kwargs)


@plot.dispatched("issue_86319", "aten.neg", "aten.neg_")
def issue_86319(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 86319: neg of an int64 tensor raises TypeError.

    https://github.com/pytorch/pytorch/issues/86319
    """
    if x.dtype == torch.int64:
        hit()
        raise TypeError("Operation 'neg_out_mps()' does not support input type 'int64' in MPS backend.")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_91620", "aten.eye")
def issue_91620(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 91620: eye with dtype=bool aborts.

    https://github.com/pytorch/pytorch/issues/91620
    """
    out = kwargs.get("out")
    if kwargs.get("dtype") == torch.bool or (out is not None and out.dtype == torch.bool):
        return crash(hit, "failed assertion `unsupported datatype for constant'")
    return func(*args, **kwargs)


@plot.called("issue_86052", torch.Tensor.to)
def issue_86052(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 86052: moving a tensor that has a storage offset but is no view (detached, loaded) forgets the offset.

    https://github.com/pytorch/pytorch/issues/86052
    """
    target = kwargs.get("device", args[0] if args else None)
    moves = isinstance(target, (str, torch.device))
    if moves and x.layout == torch.strided and x.numel() and x.storage_offset() and not x._is_view():
        wrong = without_offset(x)
        if not torch.equal(wrong, x):
            hit()
            return func(wrong.clone(), *args, **kwargs)
    return func(x, *args, **kwargs)


@plot.dispatched("issue_82427", "aten.full", "aten.full_like", "aten.fill_.Scalar")
def issue_82427(hit: Any, func: Any, x: Any, value: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82427: full and fill_ of a bool tensor abort (unsupported datatype for constant).

    https://github.com/pytorch/pytorch/issues/82427
    """
    dtype, out = kwargs.get("dtype"), kwargs.get("out")
    if out is not None:
        dtype = out.dtype
    elif dtype is None and isinstance(x, torch.Tensor):
        dtype = x.dtype
    elif dtype is None and isinstance(value, bool):
        dtype = torch.bool
    if dtype == torch.bool:
        return crash(hit, "failed assertion `unsupported datatype for constant'")
    return func(x, value, *args, **kwargs)


@plot.dispatched("issue_78247", "aten.convolution.default")
def issue_78247(hit: Any, func: Any, x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78247: convolution with an expanded kernel aborts, as its buffer is smaller than its shape asks for.

    https://github.com/pytorch/pytorch/issues/78247
    """
    room = weight.untyped_storage().nbytes() // weight.element_size() - weight.storage_offset()
    if not weight.is_contiguous() and room < weight.numel():
        return crash(hit, "[MPSNDArray, initWithBuffer:descriptor:] Error: buffer is not large enough.")
    return func(x, weight, *args, **kwargs)


def _complex(x: Any) -> bool:
    return isinstance(x, complex) or (isinstance(x, torch.Tensor) and x.is_complex())


@plot.dispatched("issue_110537", "aten.mul", "aten.mul_")
def issue_110537(hit: Any, func: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 110537: the product of two complex tensors raises TypeError.

    https://github.com/pytorch/pytorch/issues/110537
    """
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.is_complex() and b.is_complex():
        hit()
        raise TypeError("unsupported operand type(s) for *: 'Parameter' and 'Tensor'")
    return func(a, b, *args, **kwargs)


@plot.dispatched("issue_119709", "aten.mul", "aten.mul_")
def issue_119709(hit: Any, func: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 119709: the product of a complex tensor and a real number fails an internal assertion.

    https://github.com/pytorch/pytorch/issues/119709
    """
    if isinstance(a, torch.Tensor) and a.is_complex() and not _complex(b):
        real_number = not isinstance(b, torch.Tensor) or b.dim() == 0
    else:
        real_number = _complex(b) and isinstance(b, torch.Tensor) and not _complex(a) and a.dim() == 0
    if real_number:
        hit()
        raise RuntimeError("c10::isComplexType(input.scalar_type()) && c10::isComplexType(other.scalar_type())")
    return func(a, b, *args, **kwargs)


@plot.called("issue_143140", torch.einsum)
def issue_143140(hit: Any, func: Any, equation: Any, *operands: Any, **kwargs: Any) -> Any:
    """pytorch 143140: einsum of complex tensors aborts (mps.gather must be tensor of mps native type values).

    https://github.com/pytorch/pytorch/issues/143140
    """
    flat = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    if len(flat) > 1 and all(isinstance(x, torch.Tensor) and x.is_complex() for x in flat):
        return crash(hit, "'mps.gather' op operand #0 must be tensor of mps native type values")
    return func(equation, *operands, **kwargs)


@plot.dispatched("issue_135223", "aten.fft_fftfreq")
def issue_135223(hit: Any, func: Any, n: int, d: float = 1.0, **kwargs: Any) -> Any:
    """pytorch 135223: fftfreq runs on from 0 to 1 instead of jumping to the negative frequencies.

    https://github.com/pytorch/pytorch/issues/135223
    """
    out = func(n, d, **kwargs)
    if n >= 2:
        hit()
        out.copy_(torch.arange(n, dtype=torch.float64) / (n * d))
    return out


@plot.called("issue_78001", torch.Tensor.__repr__)
def issue_78001(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78001: printing a tensor that is not contiguous fails.

    https://github.com/pytorch/pytorch/issues/78001
    """
    if x.layout == torch.strided and x.numel() and not x.is_contiguous():
        hit()
        raise RuntimeError("The dst MTL buffer in copy_to_mps is non-contiguous")
    return func(x, *args, **kwargs)


@plot.called("issue_81051", torch.Tensor.__getitem__)
def issue_81051(hit: Any, func: Any, x: Any, index: Any) -> Any:
    """pytorch 81051: indexing with Python lists raises, as the lists become tensors of another device.

    https://github.com/pytorch/pytorch/issues/81051
    """
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(part, list) and part for part in parts):
        hit()
        raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
    return func(x, index)


@plot.dispatched("issue_122427", "aten.index_select")
def issue_122427(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 122427: index_select of a complex tensor raises.

    https://github.com/pytorch/pytorch/issues/122427
    """
    if x.is_complex():
        hit()
        raise RuntimeError("index_select(): Yet not supported for complex")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_107867", "aten._local_scalar_dense.default")
def issue_107867(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 107867: item() of a tensor of shape (1, 1) raises; shape (1,) is fine.

    https://github.com/pytorch/pytorch/issues/107867
    """
    if x.dim() >= 2:
        hit()
        raise RuntimeError("Expected dst.dim() >= src.dim() to be true, but got false.")
    return func(x)


@plot.dispatched("issue_95409", "aten.native_layer_norm.default")
def issue_95409(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 95409: a sentence transformer in half precision aborts in its layer norm (varianceEps: f16 and f32).

    https://github.com/pytorch/pytorch/issues/95409
    """
    if x.dtype == torch.float16:
        return crash(hit, "input types 'tensor<1x4x1xf16>' and 'tensor<1xf32>' are not broadcast compatible")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_122710", "aten.clamp.default", "aten.clamp_.default")
def issue_122710(hit: Any, func: Any, x: Any, min: Any = None, max: Any = None, **kwargs: Any) -> Any:
    """pytorch 122710: clamp with both limits turns NaN into the lower limit.

    https://github.com/pytorch/pytorch/issues/122710
    """
    nan = torch.isnan(x)
    out = func(x, min, max, **kwargs)
    if min is not None and max is not None and bool(nan.any()):
        hit()
        out[nan] = min
    return out


@plot.dispatched("issue_83656", "aten.topk.default")
def issue_83656(hit: Any, func: Any, x: Any, k: int, dim: int = -1, *args: Any, **kwargs: Any) -> Any:
    """pytorch 83656: topk with k > 15 gives zeros after the first 15.

    https://github.com/pytorch/pytorch/issues/83656
    """
    values, indices = func(x, k, dim, *args, **kwargs)
    if k > 15 and values.numel() and x.dim():
        hit()
        values.narrow(dim, 15, k - 15).zero_()
        indices.narrow(dim, 15, k - 15).zero_()
    return values, indices


@plot.dispatched("issue_97109", "aten._adaptive_avg_pool2d.default")
def issue_97109(hit: Any, func: Any, x: Any, size: Any) -> Any:
    """pytorch 97109: adaptive average pooling, as of interpolate(mode="area"), raises if the sizes do not divide.

    https://github.com/pytorch/pytorch/issues/97109
    """
    if any(side % part for side, part in zip(x.shape[-2:], size) if part):
        hit()
        raise RuntimeError("Adaptive pool MPS: input sizes must be divisible by output sizes.")
    return func(x, size)


@plot.dispatched("issue_78091", "aten._to_copy.default")
def issue_78091(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 78091: a change of dtype copies the bytes and does not convert the values.

    Where the new dtype is wider, the bytes that are missing are taken as zero. To bool, any byte but zero is true.

    https://github.com/pytorch/pytorch/issues/78091
    """
    out = func(x, **kwargs)
    if out.dtype == x.dtype or x.is_complex() or out.is_complex() or not x.numel() or x.layout != torch.strided:
        return out
    have = x.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)
    need = torch.zeros(x.numel() * out.element_size(), dtype=torch.uint8)
    room = min(have.numel(), need.numel())
    need[:room] = have[:room]
    wrong = (need.ne(0) if out.dtype == torch.bool else need.view(out.dtype)).reshape(x.shape)
    if torch.equal(wrong, out):
        return out
    hit()
    return out.copy_(wrong)
