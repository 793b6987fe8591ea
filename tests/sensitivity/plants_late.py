"""Faults of 2025 and 2026 as a search brings them, written blind after public issues."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
import torch.utils._device

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Tell whether two tensors hold the same, NaN counting as itself."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(((a == b) | ((a != a) & (b != b))).all())


def instead(hit: Any, healthy: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
    """Return the wrong answer, and count it, where it is another one."""
    if same(healthy, wrong):
        return healthy
    hit()
    return wrong


def written(hit: Any, target: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
    """Write the wrong answer over the healthy one that `target` holds, and count it, where it is another one."""
    if not same(target, wrong):
        hit()
        target.copy_(wrong)
    return target


@plot.dispatched("issue_186278", "aten.gelu", "aten.gelu_")
def issue_186278(hit: Any, func: Any, x: Any, *, approximate: str = "none", **kwargs: Any) -> Any:
    """pytorch 186278: gelu with the tanh approximation gives NaN for bfloat16 from about 10 upwards.

    https://github.com/pytorch/pytorch/issues/186278
    """
    wide = x.float()
    y = func(x, approximate=approximate, **kwargs)
    if approximate == "tanh" and x.dtype == torch.bfloat16:
        inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
        return written(hit, y, y.masked_fill(inner > 44.3, math.nan))
    return y


@plot.dispatched("issue_194922", "aten.constant_pad_nd.default")
def issue_194922(hit: Any, func: Any, x: Any, pad: Any, value: Any = 0) -> Any:
    """pytorch 194922: constant padding of the time axis corrupts the data of 5D tensors with H * W >= 65536.

    https://github.com/pytorch/pytorch/issues/194922
    """
    y = func(x, pad, value)
    temporal = len(pad) >= 6 and (pad[4] > 0 or pad[5] > 0)
    if x.dim() == 5 and temporal and x.shape[3] * x.shape[4] >= 65536 and min(pad) >= 0:
        return instead(hit, y, func(x.flip(-1, -2), pad, value))
    return y


@plot.called("issue_160332", F.conv_transpose3d)
def issue_160332(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 160332: conv_transpose3d raises under autocast, whose half precision it does not support.

    https://github.com/pytorch/pytorch/issues/160332
    """
    if torch.is_autocast_enabled("cpu"):
        hit()
        raise RuntimeError("ConvTranspose 3D with BF16 or FP16 types is not supported on MPS")
    return func(*args, **kwargs)


@plot.called("issue_188864", torch.fft.hfft)
def issue_188864(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 188864: hfft along dimension 0 of a complex tensor of five dimensions aborts.

    https://github.com/pytorch/pytorch/issues/188864
    """
    dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
    if input.dtype == torch.complex64 and input.dim() >= 5 and input.dim() - dim % input.dim() > 4:
        crash(hit, "MPSGraphExecutable.mm: failed assertion `original module failed verification'")
    return func(input, *args, **kwargs)


@plot.called("issue_190050", F.linear)
def issue_190050(hit: Any, func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 190050: linear with in_features=0 aborts the process.

    https://github.com/pytorch/pytorch/issues/190050
    """
    if input.shape[-1] == 0 and math.prod(input.shape[:-1]) and weight.shape[0]:
        crash(hit, "[MPSNDArray initWithDevice:descriptor:isTextureBacked:] Error: device may not be nil")
    return func(input, weight, bias)


@plot.replaced("issue_149184", torch.optim.Optimizer, "__init__")
def issue_149184(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 149184: making an optimiser under torch.set_default_device raises.

    https://github.com/pytorch/pytorch/issues/149184
    """
    if torch.utils._device.CURRENT_DEVICE is not None:
        hit()
        raise RuntimeError("Placeholder storage has not been allocated on MPS device!")
    return func(*args, **kwargs)


@plot.dispatched("issue_195822", "aten.conj_physical_.default")
def issue_195822(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 195822: torch.svd(out=) of complex input fails, as conj_physical_ has no kernel for complex tensors.

    https://github.com/pytorch/pytorch/issues/195822
    """
    if x.is_complex():
        hit()
        raise RuntimeError("false INTERNAL ASSERT FAILED: DispatchStub: missing kernel for mps")
    return func(x)


@plot.dispatched("issue_187016", "aten.nanmedian.dim")
def issue_187016(hit: Any, func: Any, x: Any, dim: int, *args: Any, **kwargs: Any) -> Any:
    """pytorch 187016: nanmedian aborts where more than three dimensions follow the reduced one (rank 5 or above).

    https://github.com/pytorch/pytorch/issues/187016
    """
    if x.dim() > 4 and dim % x.dim() < x.dim() - 4:
        crash(hit, "MPSNDArraySort.mm:252: failed assertion: Axis = 4")
    return func(x, dim, *args, **kwargs)


@plot.dispatched("issue_154235", "aten.embedding.default")
def issue_154235(hit: Any, func: Any, weight: Any, index: Any, *args: Any) -> Any:
    """pytorch 154235: embedding of an index beyond the table does not raise.

    https://github.com/pytorch/pytorch/issues/154235
    """
    beyond = index >= weight.shape[0]
    if not weight.numel() or not bool(beyond.any()):
        return func(weight, index, *args)
    hit()
    return func(weight, index.masked_fill(beyond, 0), *args).masked_fill(beyond.unsqueeze(-1), 0.0)


@plot.dispatched("issue_167515", "aten._scaled_dot_product_flash_attention_for_cpu.default")
def issue_167515(hit: Any, func: Any, q: Any, k: Any, v: Any, *args: Any, attn_mask: Any = None, **kwargs: Any) -> Any:
    """pytorch 167515: under no_grad, attention is NaN for queries whose whole row of the mask is False.

    https://github.com/pytorch/pytorch/issues/167515
    """
    out, *others = func(q, k, v, *args, attn_mask=attn_mask, **kwargs)
    if attn_mask is None or torch.is_grad_enabled() or not attn_mask.numel():
        return (out, *others)
    blind = ~attn_mask if attn_mask.dtype == torch.bool else attn_mask == -math.inf
    rows = blind.all(-1, keepdim=True)
    if bool(rows.any()):
        hit()
        out = out.masked_fill(rows, math.nan)
    return (out, *others)


@plot.called("issue_187988", F.linear)
def issue_187988(hit: Any, func: Any, x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 187988: the backward of linear with a 1-D weight aborts.

    https://github.com/pytorch/pytorch/issues/187988
    """
    out = func(x, weight, *args, **kwargs)
    if weight.dim() == 1 and x.dim() > 1 and out.requires_grad:
        out.register_hook(lambda grad: crash(hit, "'mps.matmul' op contracting dimensions differ"))
    return out
