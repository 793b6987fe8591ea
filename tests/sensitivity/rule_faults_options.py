"""The faults that the rules on short sides, own operands, geometry and options are for, as in rule_faults.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Fault = Callable[[Any, Any, Any], Any]


def _answer(which: Any, wrong: Callable[..., Any]) -> Fault:
    """Change the answer of some overloads: `wrong` gets it and the arguments, and returns another one, or None."""
    chosen = which if isinstance(which, tuple) else (which,)

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        answer = func(*args, **kwargs)
        other = wrong(answer, *args, **kwargs) if func in chosen else None
        return answer if other is None else other

    return fault


def _refusal(which: Any, made: Callable[..., Any]) -> Fault:
    """Answer what is refused."""

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except RuntimeError:
            if func is not which:
                raise
            return made(*args, **kwargs)

    return fault


def _places_past_16_bits(y: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    if dim is None or x.shape[dim] != 1 or y.numel() < 1 << 15:
        return None
    wrong = y.clone()
    wrong.view(-1)[(1 << 15) :] = 1
    return wrong


def _without_the_last_row(y: Any, x: Any, dims: Any, *args: Any, **kwargs: Any) -> Any:
    short = x.numel() >= 1 << 16 and dims and dims[0] % x.dim() < x.dim() - 1 and x.shape[dims[0]] < 64
    return y - x.select(dims[0], -1) if short else None


def _from_the_first_column(y: Any, x: Any, dims: Any = (), *args: Any, **kwargs: Any) -> Any:
    if x.dim() != 2 or x.is_contiguous() or x.storage_offset() != 7 or x.numel() < 1 << 15:
        return None
    return x.as_strided((x.shape[0], x.shape[1]), x.stride(), 0).amax(dims)


def _stops_past(count: int) -> Callable[..., Any]:
    def wrong(y: Any, *args: Any, **kwargs: Any) -> Any:
        return torch.cat([y[:count], torch.zeros_like(y[count:])]) if y.dim() == 1 and len(y) > count else None

    return wrong


def _no_single_key(y: Any, q: Any, k: Any, v: Any, *args: Any, attn_mask: Any = None, **kwargs: Any) -> Any:
    single = q.shape[-2] == k.shape[-2] == 1 and attn_mask is not None
    return (y[0] * math.nan, *y[1:]) if single else None


def _single(y: Any, a: Any, b: Any) -> Any:
    return torch.zeros_like(y) if a.shape == b.shape == (1, 4, 4) else None


def _other_triangle(y: Any, x: Any, diagonal: int = 0) -> Any:
    return x.triu(-diagonal) if x.shape[-1] == 1 else None


def _neighbours(found: Any, grad: Any, x: Any, weight: Any, bias: Any, stride: Any, *args: Any) -> Any:
    """Take every gradient where a kernel of 1 steps over some."""
    if weight[0, 0].numel() != 1 or max(stride) == 1 or found[1] is None:
        return None
    return found[0], found[1] * 2, found[2]


def _last_column(y: Any, x: Any, w: Any, bias: Any, stride: Any, padding: Any, *args: Any) -> Any:
    if len(padding) != 2 or padding[1] <= padding[0] or x.is_contiguous():
        return None
    wrong = y.clone()
    wrong[..., -1] += 1
    return wrong


def _no_steps(y: Any, x: Any, kernel: Any, stride: Any, *args: Any) -> Any:
    return (y[0] * 0, y[1]) if max(stride) > max(kernel) else None


def _gathers_elsewhere(y: Any, grad: Any, size: Any, before: Any, corners: bool, *scales: Any) -> Any:
    kept = list(size) == list(before[2:]) and any(one not in (None, 1.0) for one in scales)
    return (y + y.roll(1, -1)) / 2 if kept else None


def _first_of_eight(y: Any, x: Any) -> Any:
    """Answer otherwise in a whole vector of 8."""
    if not x.is_complex() or x.dim() != 1 or len(x) < 8:
        return None
    whole = torch.arange(len(x)) < len(x) // 8 * 8
    return y.masked_fill(whole & ~x.real.isfinite(), 0)


def _no_number(y: Any, x: Any) -> Any:
    return y.masked_fill(x.real.isinf() & (x.imag == 0), complex(math.nan, math.nan))


def _log_of_the_real(y: Any, x: Any) -> Any:
    """Give the logarithm of a negative number no imaginary part."""
    return torch.where(x.real < 0, torch.complex(y.real, torch.zeros_like(y.real)), y) if x.is_complex() else None


def _no_eps(y: Any, x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    lost = x.dtype == torch.float16 and not torch.tensor(eps).half()
    return (y[0].masked_fill(x == x[..., :1].expand_as(x), math.nan), *y[1:]) if lost and eps else None


def _quotients(y: Any, x: Any, bins: int = 100, low: Any = 0, high: Any = 0) -> Any:
    if low >= high:
        return None
    places = ((x[(x >= low) & (x <= high)] - low) / (high - low) * bins).long().clamp(max=bins - 1)
    return torch.bincount(places, minlength=bins).to(y.dtype)


def _last_side(y: Any, x: Any, indices: Any, value: Any, *args: Any) -> Any:
    first = indices[0]
    return (
        x.masked_fill(first, value) if len(indices) == 2 and first is not None and first.dtype == torch.bool else None
    )


def _even(y: Any, x: Any, count: int, *args: Any, **kwargs: Any) -> Any:
    return y // 2 * 2 if x.shape[-1] > 1 << 20 else None


def _in_old_order(y: Any, a: Any, b: Any) -> Any:
    return y.flip(0) if a.layout == torch.sparse_coo and not a.is_coalesced() else None


def keeps_the_shape(func: Any, args: Any, kwargs: Any) -> Any:
    """Fill an `out=` of another shape with the answer."""
    if func is not aten.add.out:
        return func(*args, **kwargs)
    out = kwargs.pop("out")
    return out.copy_(aten.add.Tensor(*args, **kwargs))


_GRADIENT = aten.convolution_backward.default
# A rule's case, and what it must notice.
FAULTS: list[tuple[str, Fault]] = [
    ("threshold-short-ends-float32", _answer(aten.argmax.default, _places_past_16_bits)),
    ("threshold-short-cut-uint8", _answer(aten.tril.default, _other_triangle)),
    ("threshold-short-matrices-float16", _answer(aten.bmm.default, _single)),
    (
        "threshold-short-attention-float32",
        _answer(aten._scaled_dot_product_flash_attention_for_cpu.default, _no_single_key),
    ),
    ("threshold-past-short-float32", _answer(aten.sum.dim_IntList, _without_the_last_row)),
    ("threshold-past-slices-float32", _answer(aten.amax.default, _from_the_first_column)),
    ("threshold-past-many-int8", _answer(aten.mul.Tensor, _stops_past(1 << 20))),
    ("threshold-past-many-bool", _answer(aten._to_copy.default, _stops_past(1 << 20))),
    ("condition-refused-own-row", _refusal(aten.mul_.Tensor, lambda x, y: x)),
    ("condition-refused-own-out-grown", _refusal(aten.maximum.out, lambda x, y, out: out)),
    ("condition-refused-own-places", _refusal(aten.scatter_.src, lambda x, *_: x)),
    ("condition-refused-source-dtype-index_copy", _refusal(aten.index_copy_.default, lambda x, *_: x)),
    ("condition-refused-output-padding", _refusal(_GRADIENT, lambda grad, x, w, *_: (x, w, w))),
    ("resized-add", keeps_the_shape),
    ("geometry-transposed-1d", _answer(_GRADIENT, _neighbours)),
    ("geometry-convolved-3d", _answer(_GRADIENT, _neighbours)),
    ("geometry-padded-2d", _answer(aten.convolution.default, _last_column)),
    ("geometry-pooled-2d", _answer(aten.max_pool2d_with_indices.default, _no_steps)),
    ("geometry-scaled-2d-bilinear", _answer(aten.upsample_bilinear2d_backward.default, _gathers_elsewhere)),
    ("alike-exp", _answer(aten.exp.default, _first_of_eight)),
    ("alike-sin-gradient", _answer(aten.cos.default, _first_of_eight)),
    ("alike-tan-tanh", _answer(aten.tan.default, _no_number)),
    ("derived-powers-pow", _answer(aten.log.default, _log_of_the_real)),
    ("ends-eps-layer_norm-float16", _answer(aten.native_layer_norm.default, _no_eps)),
    ("ends-bins-float32", _answer(aten.histc.default, _quotients)),
    ("ends-index-none", _answer(aten.index_put.default, _last_side)),
    ("ends-categories", _answer(aten.multinomial.default, _even)),
    ("ends-sparse-product", _answer(aten.mm.default, _in_old_order)),
]
