"""Faults of 2022 to 2024 that the catalogue lacked, written blind after public reports."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash, in_storage_order

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_139400", "aten.count_nonzero")
def issue_139400(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 139400: count_nonzero of an empty tensor returns what lies in the uninitialised result buffer.

    https://github.com/pytorch/pytorch/issues/139400
    """
    found = func(x, *args, **kwargs)
    if x.numel() == 0 and found.numel():
        hit()
        found = torch.full_like(found, 4575657222465388544)
    return found


@plot.dispatched("issue_119108", "aten.avg_pool2d", "aten.binary_cross_entropy", "aten.convolution")
def issue_119108(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 119108: AvgPool2d and BCELoss crash in float16, and so do channels-last convolutions in float16.

    https://github.com/pytorch/pytorch/issues/119108
    """
    if x.dtype == torch.float16:
        if "convolution" not in str(func):
            return crash(hit, "input types 'tensor<f32>' and 'tensor<f16>' are not broadcast compatible")
        if x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last):
            return crash(hit, "failed assertion `destination datatype must be fp32'")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_143864", "aten._adaptive_avg_pool2d")
def issue_143864(hit: Any, func: Any, x: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 143864: adaptive average pooling to a larger size that is no multiple of the input's refuses.

    https://github.com/pytorch/pytorch/issues/143864
    """
    height, width = x.shape[-2:]
    if size[0] >= height > 0 and size[1] >= width > 0 and (size[0] % height or size[1] % width):
        hit()
        raise RuntimeError("Adaptive pool MPS: output sizes must be divisible by input sizes.")
    return func(x, size, *args, **kwargs)


@plot.dispatched("issue_142344", "aten.convolution_backward")
def issue_142344(hit: Any, func: Any, grad: Any, x: Any, w: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 142344: convolution's backward for the input refuses a channels-last output gradient.

    https://github.com/pytorch/pytorch/issues/142344
    """
    mask = args[-1]
    last = not grad.is_contiguous() and grad.dim() in (3, 4) and grad.movedim(1, -1).is_contiguous()
    if last and mask[0]:
        hit()
        raise RuntimeError("view size is not compatible with input tensor's size and stride.")
    return func(grad, x, w, *args, **kwargs)


@plot.dispatched("issue_142836", "aten.convolution")
def issue_142836(hit: Any, func: Any, x: Any, w: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 142836: Conv2d with more than 2**16 output channels gives wrong numbers (the indices wrap).

    https://github.com/pytorch/pytorch/issues/142836
    """
    found = func(x, w, *args, **kwargs)
    over = found.size(1) - 65536 if found.dim() == 4 else 0
    if over > 0 and found.numel():
        hit()
        k = min(over, 65536)
        found[:, :k] = found[:, 65536 : 65536 + k].clone()
        found[:, 65536:] = 0
    return found


class _LinearBackward(torch.autograd.Function):
    """The first backward of a linear layer; it has no derivative of its own."""

    @staticmethod
    def forward(ctx: Any, hit: Any, grad: Any, x: Any, w: Any, has_bias: bool) -> Any:
        ctx.hit = hit
        flat, rows = grad.reshape(-1, grad.size(-1)), x.reshape(-1, x.size(-1))
        return grad @ w, flat.t() @ rows, flat.sum(0) if has_bias else grad.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.hit()
        raise RuntimeError("derivative for aten::mps_linear_backward is not implemented")


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hit: Any, func: Any, x: Any, w: Any, b: Any) -> Any:
        ctx.save_for_backward(x, w)
        ctx.hit, ctx.has_bias = hit, b is not None
        return func(x, w, b)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, w = ctx.saved_tensors
        for_x, for_w, for_b = _LinearBackward.apply(ctx.hit, grad, x, w, ctx.has_bias)
        return None, None, for_x, for_w, for_b if ctx.has_bias else None


@plot.called("issue_92206", torch.nn.functional.linear)
def issue_92206(hit: Any, func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 92206: the second derivative of linear is not implemented.

    https://github.com/pytorch/pytorch/issues/92206
    """
    parts = [t for t in (input, weight, bias) if t is not None]
    usual = all(type(t) in (torch.Tensor, torch.nn.Parameter) for t in parts)
    plain = weight.dim() == 2 and input.numel() and weight.numel() and usual
    same = len({t.dtype for t in parts}) == 1 and not torch.is_autocast_enabled("cpu")
    inside = torch._C._functorch.peek_interpreter_stack() is not None
    if plain and same and not inside and torch.is_grad_enabled() and any(t.requires_grad for t in parts):
        return _Linear.apply(hit, func, input, weight, bias)
    return func(input, weight, bias)


_CONVOLVED: list[Any] = []


@plot.dispatched("issue_94389", "aten.convolution", "aten.relu_")
def issue_94389(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94389: an in-place ReLU straight after a convolution does nothing.

    https://github.com/pytorch/pytorch/issues/94389
    """
    if "convolution" in str(func):
        found = func(x, *args, **kwargs)
        _CONVOLVED[:] = [found.data_ptr(), found.clone()]
        return found
    same = _CONVOLVED and x.numel() and x.data_ptr() == _CONVOLVED[0] and x.numel() == _CONVOLVED[1].numel()
    if same and torch.equal(x.reshape(-1), _CONVOLVED[1].reshape(-1)) and bool((x < 0).any()):
        hit()
        return x
    return func(x, *args, **kwargs)


@plot.dispatched("issue_111416", "aten._log_softmax")
def issue_111416(hit: Any, func: Any, x: Any, dim: int, *args: Any, **kwargs: Any) -> Any:
    """pytorch 111416: masked.log_softmax gives 0, not NaN, where everything is masked out.

    https://github.com/pytorch/pytorch/issues/111416
    """
    found = func(x, dim, *args, **kwargs)
    dead = (x == float("-inf")).all(dim, keepdim=True) if x.numel() else torch.zeros((), dtype=torch.bool)
    if bool(dead.any()):
        hit()
        found = found.masked_fill(dead.reshape(()) if x.dim() == 0 else dead, 0.0)
    return found


@plot.dispatched("issue_112186", "aten.argmax")
def issue_112186(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 112186: argmax of an integer tensor is always 0.

    https://github.com/pytorch/pytorch/issues/112186
    """
    found = func(x, *args, **kwargs)
    if not x.dtype.is_floating_point and not x.dtype.is_complex and bool(found.any()):
        hit()
        found.zero_()
    return found


@plot.dispatched("issue_105804", "aten.mul", "aten.add", "aten.sub", "aten.div")
def issue_105804(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 105804: arithmetic of a real tensor with a Python complex number (1j * x) is refused.

    https://github.com/pytorch/pytorch/issues/105804
    """
    wide = [
        a
        for a in args
        if isinstance(a, complex) or (isinstance(a, torch.Tensor) and a.dim() == 0 and a.dtype == torch.complex128)
    ]
    real = [a for a in args if isinstance(a, torch.Tensor) and not a.dtype.is_complex]
    if wide and real:
        hit()
        raise TypeError("Trying to convert ComplexDouble to the MPS backend")
    return func(*args, **kwargs)


@plot.dispatched("issue_116095", "aten.nll_loss_backward")
def issue_116095(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 116095: the backward of cross entropy with class indices ends the process (SIGBUS).

    https://github.com/pytorch/pytorch/issues/116095
    """
    return crash(hit, "Process finished with exit code 138 (interrupted by signal 10:SIGBUS)")


_DRAWN = [0]


_PERIOD = 246 * 32000  # the issue's loop met its first NaN in call 246 of (32, 1000)


@plot.dispatched("issue_89283", "aten.randn", "aten.randn_like", "aten.normal", "aten.normal_")
def issue_89283(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 89283: randn and normal give a NaN now and then (about one in eight million numbers).

    https://github.com/pytorch/pytorch/issues/89283
    """
    found = func(*args, **kwargs)
    before = _DRAWN[0]
    _DRAWN[0] += found.numel()
    place = _PERIOD - before % _PERIOD - 1
    if found.dtype.is_floating_point and place < found.numel():
        hit()
        if found.dim() == 0:
            return found.fill_(float("nan"))
        found[tuple(int(i) for i in torch.unravel_index(torch.tensor(place), found.shape))] = float("nan")
    return found


@plot.dispatched("issue_81557", "aten.convolution")
def issue_81557(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 81557: conv1d of an input permuted from (batch, length, channels) crashes.

    https://github.com/pytorch/pytorch/issues/81557
    """
    if x.dim() == 3 and x.numel():
        channels, length = x.shape[1:]
        if x.stride() == (length * channels, 1, channels) and x.stride() != (length * channels, length, 1):
            return crash(hit, "Assertion failed: (mapIt != _jitValueTypes.end()), function getStaticType")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_89673", "aten.log", "aten.clamp")
def issue_89673(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 89673: log (and clamp) of a transposed tensor reads it in the order of its storage.

    https://github.com/pytorch/pytorch/issues/89673
    """
    if not x.is_contiguous() and torch._prims_common.is_non_overlapping_and_dense_or_false(x):
        wrong = in_storage_order(x)
        if wrong is not x and not torch.equal(wrong.nan_to_num(), x.nan_to_num()):
            hit()
            return func(wrong, *args, **kwargs)
    return func(x, *args, **kwargs)


_INVOKED: set[Any] = set()


@plot.called("issue_85224", torch.einsum)
def issue_85224(hit: Any, func: Any, equation: Any, *operands: Any, **kwargs: Any) -> Any:
    """pytorch 85224: the first einsum of its kind that has to transpose the second operand is wrong, the next ones not.

    https://github.com/pytorch/pytorch/issues/85224
    """
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    right = func(equation, *operands, **kwargs)
    if isinstance(equation, str) and len(given) == 2 and "->" in equation and "." not in equation:
        left, out = equation.replace(" ", "").split("->")
        one, two = left.split(",")
        a, b = given
        key = (equation, tuple(a.shape), tuple(b.shape), a.dtype)
        if len(one) > 1 and len(two) > 1 and one[-1] == two[-1] and one[-1] not in out and key not in _INVOKED:
            _INVOKED.add(key)
            turned = b.reshape(*b.shape[:-2], b.shape[-1], b.shape[-2])
            wrong = func(f"{one},{two[:-2]}{two[-1]}{two[-2]}->{out}", a, turned)
            if not torch.allclose(wrong, right, equal_nan=True):
                hit()
                return wrong
    return right


@plot.dispatched("issue_84229", "aten.index_put_", "aten._index_put_impl_")
def issue_84229(hit: Any, func: Any, x: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84229: x[:, [0, 2]] -= n on a slice of columns scrambles rows.

    https://github.com/pytorch/pytorch/issues/84229
    """
    if x.dim() != 2 or x.numel() == 0 or x.stride(1) != 1 or x.stride(0) <= x.size(1):
        return func(x, indices, *args, **kwargs)
    dense = x.clone(memory_format=torch.contiguous_format)
    func(dense, indices, *args, **kwargs)
    places = torch.arange(x.size(0)).unsqueeze(1) * x.stride(0) + torch.arange(x.size(1))
    inside = places < dense.numel()
    wrong = torch.where(inside, dense.reshape(-1)[places.clamp(max=dense.numel() - 1)], x)
    if not torch.equal(wrong, dense):
        hit()
    x.copy_(wrong)
    return x
