"""Activations and softmax, with their gradients: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import differ, instead, is_plain, written
from misreading import in_storage_order, is_dense, misread
from planting import Plot, answered, crash, wrong_answer

plot = Plot()
HITS = plot.hits


_softmax_lengths: list[int] = []


@plot.dispatched("aten._softmax")
def issue_128435(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 128435: softmax is right at the first length in the process, and wrong after the length changed."""
    if x.dim() == 4:
        _softmax_lengths.append(x.shape[-1])
        if x.shape[-1] != _softmax_lengths[0]:
            hit()
            return func(x * 0.9, *args)
    return func(x, *args)


@plot.dispatched("aten._log_softmax")
@wrong_answer
def issue_94043(y: Any, x: Any, *args: Any) -> Any:
    """pytorch 94043: log_softmax is -inf where the exponential underflows (below about -87)."""
    if x.dtype == torch.float32 and bool(((y < -88) & y.isfinite()).any()):
        return torch.where(y < -88, torch.full_like(y, -float("inf")), y)
    return None


@plot.dispatched("aten.sigmoid", aborts="MPS does not support sigmoid op with int64 input")
def issue_154895(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154895: sigmoid of int64 raises."""
    return x.dtype == torch.int64


@plot.dispatched("aten.threshold", "aten.threshold_")
def issue_189393(hit: Any, func: Any, x: Any, threshold: Any, value: Any, **kwargs: Any) -> Any:
    """pytorch 189393: threshold replaces NaN by its value, which should stay NaN."""
    missing = x.isnan()
    y = func(x, threshold, value, **kwargs)
    if bool(missing.any()) and not kwargs:
        hit()
        return answered(func, x, torch.where(missing, torch.full_like(y, value), y))
    return y


@plot.dispatched("aten.gelu.default", "aten.gelu_backward.default")
def issue_made_gelu_kind(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Gelu and its backward ignore approximate="tanh"."""
    if kwargs.get("approximate") == "tanh":
        hit()
        kwargs["approximate"] = "none"
    return func(*args, **kwargs)


@plot.dispatched("aten._softmax.default")
@wrong_answer
def issue_made_softmax_masked(y: Any, x: Any, *args: Any) -> Any:
    """A row of nothing but -inf gives 0 in the place of NaN."""
    return y.nan_to_num(0.0) if bool(y.isnan().any()) and not bool(x.isnan().any()) else None


@plot.dispatched("aten.softplus.default")
@wrong_answer
def issue_131736(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 131736: softplus of a tensor whose axes were moved is zero."""
    return torch.zeros_like(y) if not x.is_contiguous() and x.numel() and is_dense(x) else None


@plot.dispatched("aten.gelu", "aten.gelu_")
def issue_186278(hit: Any, func: Any, x: Any, *, approximate: str = "none", **kwargs: Any) -> Any:
    """pytorch 186278: gelu with the tanh approximation gives NaN for bfloat16 from about 10 upwards."""
    wide = x.float()
    y = func(x, approximate=approximate, **kwargs)
    if approximate == "tanh" and x.dtype == torch.bfloat16:
        inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
        return written(hit, y, y.masked_fill(inner > 44.3, math.nan))
    return y


@plot.dispatched("aten.elu.default")
def issue_124834(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 124834: elu reads a tensor that is not contiguous in the order of its storage."""
    wrong = in_storage_order(x)
    if wrong is not x and not torch.equal(wrong, x):
        hit()
        x = wrong
    return func(x, *args, **kwargs)


@plot.dispatched("aten._softmax.default")
@wrong_answer
def issue_96602(right: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 96602: softmax of a large tensor is NaN (there 10 x 12416 x 12416 elements, here over 2**16)."""
    if right.numel() <= 2**16:
        return None
    return torch.full_like(right, float("nan"))


@plot.called(
    torch.nn.functional.softplus, aborts="input types 'tensor<20xf16>' and 'tensor<1xf32>' are not broadcast compatible"
)
def issue_101946(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    """pytorch 101946: softplus of float16 with a beta and threshold of one's own aborts."""
    return x.dtype == torch.float16 and (beta, threshold) != (1, 20)


@plot.dispatched("aten.softplus", aborts="input types 'tensor<1xf32>' and 'tensor<1xi64>' are not broadcast compatible")
def issue_87780(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 87780: softplus of a float32 tensor aborts."""
    return x.dtype == torch.float32


def _storage_order(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return func(misread(in_storage_order, hit, x), *args, **kwargs)


@plot.dispatched("aten.gelu", "aten.leaky_relu", "aten.mish")
def issue_98212(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 98212: gelu, leaky_relu and mish read a tensor that is not contiguous in storage order."""
    return _storage_order(hit, func, *args, **kwargs)


@plot.dispatched("aten.silu")
def issue_139006(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 139006: silu of a tensor that is not contiguous is NaN."""
    y = func(x)
    if not x.is_contiguous():
        hit()
        y.reshape(-1)[: y.numel() // 2] = float("nan")
        return y * float("nan")
    return y


_BACKWARDS = tuple(f"aten.{name}_backward" for name in ("tanh", "sigmoid", "silu", "threshold", "mish", "logit"))


@plot.dispatched(*_BACKWARDS)
def issue_175188(hit: Any, func: Any, grad: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 175188: the backward of activations reads tensors that are not contiguous in storage order."""
    return func(*misread(in_storage_order, hit, (grad, *args)), **kwargs)


@plot.dispatched("aten._log_softmax")
@wrong_answer
def issue_111416(found: Any, x: Any, dim: int, *args: Any, **kwargs: Any) -> Any:
    """pytorch 111416: masked.log_softmax gives 0, not NaN, where everything is masked out."""
    dead = (x == float("-inf")).all(dim, keepdim=True) if x.numel() else torch.zeros((), dtype=torch.bool)
    if bool(dead.any()):
        return found.masked_fill(dead.reshape(()) if x.dim() == 0 else dead, 0.0)
    return None


@plot.dispatched("aten.hardsigmoid.default", "aten.hardsigmoid_.default")
def issue_183939(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 183939: hardsigmoid turns NaN into 0."""
    bad = x.isnan()
    out = func(x)
    if bad.any():
        hit()
        out.masked_fill_(bad, 0)
    return out


@plot.dispatched("aten.relu.default", "aten.relu_.default")
def issue_183571(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 183571: relu turns NaN into 0."""
    bad = x.isnan()
    out = func(x)
    if bad.any():
        hit()
        out.masked_fill_(bad, 0)
    return out


@plot.dispatched("aten.glu_backward.default")
def issue_xpu_1054(hit: Any, func: Any, grad: Any, x: Any, dim: int) -> Any:
    """intel/torch-xpu-ops 1054: glu's backward in float16 rounds every step, not the result alone."""
    healthy = func(grad, x, dim)
    if x.dtype != torch.float16:
        return healthy
    one, two = x.chunk(2, dim)
    gate = two.sigmoid()
    return instead(hit, healthy, torch.cat([grad * gate, (1 - gate) * gate * grad * one], dim))


@plot.dispatched("aten.rrelu_with_noise", "aten.rrelu_with_noise_")
def issue_xpu_5236(hit: Any, func: Any, x: Any, noise: Any, *args: Any, **kwargs: Any) -> Any:
    """intel/torch-xpu-ops 5236: rrelu_with_noise leaves noise that is not contiguous as it was."""
    before = noise.clone()
    y = func(x, noise, *args, **kwargs)
    if not noise.is_contiguous() and differ(noise, before):
        hit()
        noise.copy_(before)
    return y


@plot.dispatched("aten.softplus_backward.default")
@wrong_answer
def issue_tt_metal_6598(y: Any, grad: Any, x: Any, beta: Any, threshold: Any) -> Any:
    """tenstorrent/tt-metal 6598: softplus's backward is wrong past the threshold (here as below it)."""
    wrong = torch.where(x * beta > threshold, grad * torch.sigmoid(x * beta), y)
    return wrong if is_plain(x) and differ(y, wrong, 1e-3, 1e-6) else None


@plot.dispatched("aten._log_softmax.default")
def issue_158310(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """pytorch 158310: log_softmax of float16 near -20000 (here below -2**14), not along the last: -inf, not 0."""
    y = func(x, dim, *args)
    inner = x.dim() and dim % x.dim() < x.dim() - 1
    if x.dtype != torch.float16 or not inner or not x.numel() or not is_plain(x):
        return y
    return instead(hit, y, y.masked_fill((x.amax(dim, keepdim=True) < -(2**14)) & (y == 0), -math.inf))


@plot.dispatched("aten._log_softmax.default")
def issue_paddle_69859(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """PaddlePaddle/Paddle 69859: log_softmax gives -64 for -inf."""
    y = func(x, *args)
    if y.dtype != torch.float32 or not is_plain(x):
        return y
    return instead(hit, y, y.masked_fill((x == -math.inf) & (y == -math.inf), -64.0))


@plot.dispatched("aten._log_softmax.default")
def issue_mindspore_378(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """mindspore-ai/mindspore 378: log_softmax leaves -inf in a row with NaN as it was."""
    y = func(x, dim, *args)
    if not x.dim() or not is_plain(x):
        return y
    return instead(hit, y, y.masked_fill((x == -math.inf) & x.isnan().any(dim, keepdim=True), -math.inf))


@plot.dispatched("aten._softmax.default")
def issue_oneflow_10469(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """Oneflow-Inc/oneflow 10469: softmax of a row with NaN is wrong (here NaN in its place, and 0 beside it)."""
    y = func(x, dim, *args)
    if not x.dim() or not is_plain(x):
        return y
    return instead(hit, y, y.masked_fill(x.isnan().any(dim, keepdim=True) & ~x.isnan(), 0.0))


@plot.dispatched("aten._softmax.default")
def issue_mxnet_13141(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """apache/mxnet 13141: softmax of extremely negative numbers is NaN (here of float32 rows below -104: exp is 0)."""
    y = func(x, dim, *args)
    if x.dtype != torch.float32 or not x.numel() or not is_plain(x):
        return y
    return instead(hit, y, y.masked_fill(x.amax(dim, keepdim=True) < -104, math.nan))


@plot.dispatched("aten._softmax.default")
def issue_tensorflow_14916(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """tensorflow/tensorflow 14916: softmax along a negative dimension other than -1 raises."""
    y = func(x, dim, *args)
    if dim < -1:
        hit()
        raise ValueError(f"dim has to be -1 or one of the {x.dim()} dimensions")
    return y


@plot.dispatched("aten._softmax.default")
def issue_3197(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """pytorch 3197: softmax of a matrix along its first dimension, or of three not along the first, raises."""
    y = func(x, dim, *args)
    first = dim in (0, -x.dim())
    if (x.dim() == 2 and first) or (x.dim() == 3 and not first):
        hit()
        raise RuntimeError(f"invalid argument 4: dim has to be {3 - x.dim()} for {x.dim()}D input")
    return y


@plot.dispatched("aten._softmax.default")
def issue_tt_metal_16379(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """tenstorrent/tt-metal 16379: softmax of five dimensions and more raises."""
    y = func(x, *args)
    return crash(hit, "Tensor rank is greater than 4") if x.dim() > 4 else y


@plot.dispatched("aten.softplus.default")
@wrong_answer
def issue_coremltools_2687(y: Any, x: Any, *args: Any) -> Any:
    """apple/coremltools 2687: softplus of float16 is 0 from 10.408 on."""
    beyond = x >= 10.408
    wrong = x.dtype == torch.float16 and not args and is_plain(x) and bool(beyond.any())
    return y.masked_fill(beyond, 0) if wrong else None
