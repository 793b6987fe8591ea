"""Autocast as a layer of its own: functions under it, in both halves, with gradients; what it casts, what it keeps."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf

cases = Cases("autocast")
LOW = (torch.float16, torch.bfloat16)

# x of (3, 4, 6, 6), w of (4, 4, 3, 3), m of (6, 5), b of (5,); first what all lists compute in the low dtype.
_FORMS: dict[str, Callable[..., Any]] = {
    "linear": lambda x, w, m, b: F.linear(x, m.t(), b),
    "linear_bare": lambda x, w, m, b: F.linear(x[0, 0], m.t()),
    "matmul": lambda x, w, m, b: x @ m,
    "matmul_strided": lambda x, w, m, b: x.transpose(0, 1)[..., 1:5] @ m[1:5],
    "mm": lambda x, w, m, b: torch.mm(x[0, 0], m),
    "bmm": lambda x, w, m, b: torch.bmm(x[0], x[1].mT),
    "addmm": lambda x, w, m, b: torch.addmm(b, x[1, 2], m),
    "baddbmm": lambda x, w, m, b: torch.baddbmm(x[2], x[0], x[1]),
    "conv2d": lambda x, w, m, b: F.conv2d(x, w, padding=1),
    "conv2d_last": lambda x, w, m, b: F.conv2d(x.contiguous(memory_format=torch.channels_last), w, b[:4]),
    "conv1d": lambda x, w, m, b: F.conv1d(x[:, :, 1], w[..., 0]),
    "conv_transpose2d": lambda x, w, m, b: F.conv_transpose2d(x, w, stride=2),
    "mixed": lambda x, w, m, b: torch.matmul(x.to(_low(x)), m),
    "conv3d": lambda x, w, m, b: F.conv3d(x[:, :, None], w[:, :, None], b[:4]),
    "conv_transpose1d": lambda x, w, m, b: F.conv_transpose1d(x[:, :, 1], w[..., 0]),
    "conv_transpose3d": lambda x, w, m, b: F.conv_transpose3d(x[:, :, None], w[:, :, None], b[:4], stride=(1, 2, 1)),
    "addbmm": lambda x, w, m, b: torch.addbmm(x[2, 0], x[0], x[1]),
    "chained": lambda x, w, m, b: torch.linalg.multi_dot([x[0, 0], m, m.t()]),
    "equation": lambda x, w, m, b: torch.einsum("bcij,jk->bcik", x, m),
    "baddbmm_none": lambda x, w, m, b: torch.baddbmm(x[2], x[0], x[1], beta=0),
    # What lists keep in float32, or raise to it, or say nothing of.
    "softmax": lambda x, w, m, b: F.softmax(x @ m, dim=-1),
    "layer_norm": lambda x, w, m, b: F.layer_norm(x @ m, (5,), b, b),
    "batch_norm": lambda x, w, m, b: F.batch_norm(F.conv2d(x, w), None, None, b[:4], b[:4], training=True),
    "group_norm": lambda x, w, m, b: F.group_norm(F.conv2d(x, w, padding=1), 2, b[:4]),
    "gelu": lambda x, w, m, b: F.gelu(F.linear(x, m.t(), b)),
    "attention": lambda x, w, m, b: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "attention_mixed": lambda x, w, m, b: F.scaled_dot_product_attention(x @ m, x.flip(0) @ m, x @ m),
    "attention_masked": lambda x, w, m, b: F.scaled_dot_product_attention(x, x, x, attn_mask=x[:1, :1] * 2),
    "joined": lambda x, w, m, b: torch.cat([x @ m, x[..., :5]], dim=0),
    "stacked": lambda x, w, m, b: torch.stack([x @ m, x[..., :5]]),
    "added": lambda x, w, m, b: (x @ m) + x[..., :5] * b,
    "where": lambda x, w, m, b: torch.where(x[..., :5] > 0, x @ m, x[..., :5]),
    "sum": lambda x, w, m, b: (x @ m).sum((0, 2)),
    "powers": lambda x, w, m, b: (x @ m).abs().add(1).pow(1.5),
    "norm": lambda x, w, m, b: torch.linalg.vector_norm(x @ m, dim=-1),
    "cross_entropy": lambda x, w, m, b: F.cross_entropy(x[0, 0] @ m, torch.arange(6, device=x.device) % 5),
    "mse": lambda x, w, m, b: F.mse_loss(x @ m, x[..., :5]),
    "logits": lambda x, w, m, b: F.binary_cross_entropy_with_logits(x @ m, (x[..., :5] > 0).float()),
    "pooled": lambda x, w, m, b: F.avg_pool2d(F.conv2d(x, w, padding=1), 2),
    "resized": lambda x, w, m, b: F.interpolate(F.conv2d(x, w, padding=1), scale_factor=2, mode="nearest"),
    "index": lambda x, w, m, b: (x @ m)[:, [2, 0]].index_select(0, torch.tensor([2, 0], device=x.device)),
    "in_place": lambda x, w, m, b: (x @ m).mul_(2).add_(b.to(_low(x))),
    "twice": lambda x, w, m, b: F.linear(F.linear(x, m.t(), b), m) * 0.25,
    "outside": lambda x, w, m, b: _kept_out(x, m),
    "addmv": lambda x, w, m, b: torch.addmv(b, m.t(), x[0, 0, 0]),
    "mv": lambda x, w, m, b: torch.mv(m, b),
    "bilinear": lambda x, w, m, b: F.bilinear(x[0, 0], x[1, 1], w.flatten()[:72].reshape(2, 6, 6)),
    "prelu": lambda x, w, m, b: F.prelu(F.conv2d(x, w), b[:4]),
    "distances": lambda x, w, m, b: torch.cdist(x[0, 0] @ m, m),
    "cosine": lambda x, w, m, b: F.cosine_similarity(x @ m, b, dim=-1),
    "instance_norm": lambda x, w, m, b: F.instance_norm(F.conv2d(x, w)),
    "local_norm": lambda x, w, m, b: F.local_response_norm(F.conv2d(x, w), 3),
    "rms_norm": lambda x, w, m, b: F.rms_norm(x @ m, (5,), b),
    "max_pooled": lambda x, w, m, b: F.max_pool2d(F.conv2d(x, w, padding=1), 2),
    "averaged": lambda x, w, m, b: F.adaptive_avg_pool2d(F.conv2d(x, w), 2),
    "bilinear_resized": lambda x, w, m, b: F.interpolate(F.conv2d(x, w), (7, 3), mode="bilinear"),
    "bicubic_resized": lambda x, w, m, b: F.interpolate(F.conv2d(x, w), (7, 3), mode="bicubic"),
    "volumes": lambda x, w, m, b: F.interpolate((x @ m)[:, None], scale_factor=2.0, mode="trilinear"),
    "padded": lambda x, w, m, b: F.pad(x @ m, (1, 2, 1, 0), mode="reflect"),
    "unfolded": lambda x, w, m, b: F.unfold(F.conv2d(x, w, padding=1), 2),
    "grid": lambda x, w, m, b: F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1) / 3, align_corners=False),
    "scanned": lambda x, w, m, b: (x @ m).cumsum(-1),
    "product": lambda x, w, m, b: (x @ m)[..., :2].prod(-1),
    "logs": lambda x, w, m, b: (x @ m).abs().add(0.5).log(),
    "activated": lambda x, w, m, b: F.silu(x @ m) + F.mish(x @ m) + F.hardswish(x @ m) + F.softplus(x @ m),
    "scattered": lambda x, w, m, b: (
        torch.zeros(9, 5, device=x.device).to(_low(x)).index_add(0, torch.arange(6, device=x.device), x[0, 0] @ m)
    ),
    "nll": lambda x, w, m, b: F.nll_loss((x[0, 0] @ m).log_softmax(-1), torch.arange(6, device=x.device) % 5),
    "smooth": lambda x, w, m, b: F.smooth_l1_loss(x @ m, x[..., :5]),
    "divergence": lambda x, w, m, b: F.kl_div((x @ m).log_softmax(-1), x[..., :5].softmax(-1), reduction="batchmean"),
    "embedded": lambda x, w, m, b: F.linear(F.embedding(torch.arange(5, device=x.device), m), m),
    "dropped": lambda x, w, m, b: F.dropout(x @ m, 0.0),
    "expanded": lambda x, w, m, b: (x @ m).sum(-1, keepdim=True).expand(3, 4, 6, 5) * b,
}
_now: dict[str, torch.dtype] = {"low": torch.float16}


def _low(x: torch.Tensor) -> torch.dtype:
    """Return the low dtype of the case; in the float64 reference there is none."""
    return torch.float64 if x.dtype == torch.float64 else _now["low"]


def _kept_out(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    with torch.autocast(x.device.type, enabled=False):
        return x.float() @ m.float() if x.dtype != torch.float64 else x @ m


def _under(form: Any, low: torch.dtype, gradients: bool) -> Any:
    def act(run: Any, *bases: torch.Tensor) -> Any:
        starts = [leaf(base) if gradients else base for base in bases]
        _now["low"] = low
        with torch.autocast(run.device.type, dtype=low, enabled=not run.precise):
            result = form(*starts)
        answers: list[Any] = [result]
        if gradients:
            ramp = (torch.arange(result.numel(), device=result.device) % 7 - 2).reshape(result.shape)
            result.backward((ramp / 4).to(result.dtype))
            answers += [one.grad for one in starts if one.grad is not None]
        return answers

    return act


for _low_dtype in LOW:
    for _name, _form in _FORMS.items():
        for _gradients in (False, True):
            cases.add(
                f"autocast-{_name}-{str(_low_dtype)[6:]}" + ("-grad" if _gradients else ""),
                _under(_form, _low_dtype, _gradients),
                make=lambda d: (
                    d.normal(3, 4, 6, 6),
                    d.normal(4, 4, 3, 3, scale=0.5),
                    d.normal(6, 5, scale=0.5),
                    d.normal(5),
                ),
                terms=36,
                since="2.6",
                states=("fresh",),
                deterministic=False,
                may_be_missing=True,
                autocast=_low_dtype,
            )
