"""Rule 6: gradients where one operand alone wants one, of what moves and of vast scores; matrices of ones and zeros.

prelu's backward ended the process where its input wants none, https://github.com/pytorch/pytorch/issues/10723
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import uneven
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")
Form = Callable[..., Any]

# x: (2, 4, 6, 5); y: like it; w: 4 numbers; k: (4, 4, 3, 3).
_FORMS: dict[str, Form] = {
    "add": lambda x, y, w, k: x + y,
    "mul": lambda x, y, w, k: x * y[:, :1],
    "div": lambda x, y, w, k: x / (y.abs() + 1),
    "pow": lambda x, y, w, k: (x.abs() + 0.5) ** y,
    "atan2": lambda x, y, w, k: torch.atan2(x, y),
    "hypot": lambda x, y, w, k: torch.hypot(x, y),
    "maximum": lambda x, y, w, k: torch.maximum(x, y),
    "where": lambda x, y, w, k: torch.where(x.detach() > 0, x, y),
    "lerp": lambda x, y, w, k: torch.lerp(x, y, w.view(4, 1, 1)),
    "addcmul": lambda x, y, w, k: torch.addcmul(x, y, w.view(4, 1, 1)),
    "addcdiv": lambda x, y, w, k: torch.addcdiv(x, y, w.view(4, 1, 1).abs() + 1),
    "matmul": lambda x, y, w, k: x @ y.mT,
    "bmm": lambda x, y, w, k: torch.bmm(x[0], y[1].mT),
    "mv": lambda x, y, w, k: k[0, 0, :, :2].repeat(1, 2) @ w,
    "linear": lambda x, y, w, k: F.linear(x, y[0, 0, :4], w),
    "bilinear": lambda x, y, w, k: F.bilinear(x[..., :3], y[..., :3], k[0, 1:].expand(4, 3, 3, 3)[:, 0], w),
    "conv2d": lambda x, y, w, k: F.conv2d(x, k, w),
    "conv_transpose2d": lambda x, y, w, k: F.conv_transpose2d(x, k, w, 2),
    "conv1d": lambda x, y, w, k: F.conv1d(x[:, :, 0], k[..., 0], w),
    "prelu": lambda x, y, w, k: F.prelu(x, w),
    "batch_norm": lambda x, y, w, k: F.batch_norm(x, None, None, w, k[0, :, 0, 0], training=True),
    "batch_norm-asked": lambda x, y, w, k: F.batch_norm(x, w.detach(), w.detach().abs() + 1, w, k[0, :, 0, 0]),
    "layer_norm": lambda x, y, w, k: F.layer_norm(x[..., :4], (4,), w, k[0, :, 0, 0]),
    "group_norm": lambda x, y, w, k: F.group_norm(x, 2, w, k[0, :, 0, 0]),
    "instance_norm": lambda x, y, w, k: F.instance_norm(x, weight=w, bias=k[0, :, 0, 0]),
    "attention": lambda x, y, w, k: F.scaled_dot_product_attention(x, y, y * 2),
    "attention-mask": lambda x, y, w, k: F.scaled_dot_product_attention(x, x, x, y[..., :1].expand(-1, -1, -1, 6)),
    "cosine": lambda x, y, w, k: F.cosine_similarity(x, y, 1),
    "cdist": lambda x, y, w, k: torch.cdist(x, y),
    "mse": lambda x, y, w, k: F.mse_loss(x, y, reduction="none"),
    "l1": lambda x, y, w, k: F.l1_loss(x, y, reduction="sum"),
    "smooth": lambda x, y, w, k: F.smooth_l1_loss(x, y),
    "huber": lambda x, y, w, k: F.huber_loss(x, y),
    "kl": lambda x, y, w, k: F.kl_div(x, y.abs() + 1, reduction="sum"),
    "logits": lambda x, y, w, k: F.binary_cross_entropy_with_logits(x, y.sigmoid()),
    "sampled": lambda x, y, w, k: F.grid_sample(
        x, y[:, 0, :, :2, None].expand(-1, -1, -1, 2) / 3 + 0.013, align_corners=False
    ),
    "index_add": lambda x, y, w, k: x.index_add(1, torch.tensor([0, 2], device=x.device), y[:, :2]),
    "index_put": lambda x, y, w, k: x.index_put((torch.tensor([1], device=x.device),), y[:1]),
    "scatter": lambda x, y, w, k: x.scatter(1, torch.zeros_like(y[:, :1], dtype=torch.int64), y[:, 1:2]),
    "masked_scatter": lambda x, y, w, k: x.masked_scatter(x.detach() > 0, y),
    "cat": lambda x, y, w, k: torch.cat([x, y], 1),
    "stack": lambda x, y, w, k: torch.stack([x, y], -1),
    "einsum": lambda x, y, w, k: torch.einsum("bcij,bckj,c->bik", x, y, w),
    "bag": lambda x, y, w, k: F.embedding_bag(
        torch.tensor([[0, 3, 1, 1]], device=x.device), x[0, 0], mode="sum", per_sample_weights=w[None]
    ),
}


def _wanted(form: Form, which: int, operands: tuple[torch.Tensor, ...]) -> Any:
    """Return the answer, and the gradient of one operand alone, if the form reads it."""
    given = [one.clone().requires_grad_(place == which) for place, one in enumerate(operands)]
    y = form(*given)
    if not y.requires_grad:
        return y[:0] if y.dim() else y
    y.backward(uneven(y))
    return y.detach(), given[which].grad


# What moves or repeats numbers, of one to four dimensions.
_MOVES: dict[str, Form] = {
    "repeat": lambda x: x.repeat(2, *(1,) * (x.dim() - 2), 3) if x.dim() > 1 else x.repeat(3),
    "repeat-more": lambda x: x.repeat(2, 1, *(2,) * (x.dim() - 1)),
    "tile": lambda x: x.tile((3, 2)),
    "expand": lambda x: x[..., :1].expand(3, *x.shape[:-1], 4),
    "interleave": lambda x: x.repeat_interleave(2, -1),
    "roll": lambda x: x.roll(2, 0),
    "flip": lambda x: x.flip(0, -1) if x.dim() > 1 else x.flip(0),
    "unfold": lambda x: x.unfold(-1, 3, 2),
    "diagonal": lambda x: x.diagonal(1, 0, -1) if x.dim() > 1 else x.diag(1),
    "triangle": lambda x: x.tril(1) if x.dim() > 1 else x.diag(-1),
    "pad": lambda x: F.pad(x, (2, -1), value=3.0),
    "narrow": lambda x: torch.cat([x.narrow(0, 1, 1), x, x[:1]]),
    "picked": lambda x: x[..., [2, 0, 2]],
    "strided": lambda x: x.as_strided((2, 3), (1, 1), 1),
    "squeezed": lambda x: (
        x.unsqueeze(0).transpose(0, -1).squeeze(-1) * x.mT.unsqueeze(0)[0, :1].sum() if x.dim() == 2 else x * 1
    ),
    "cumulated": lambda x: x.cumsum(0).diff(dim=-1),
}


def _moved(form: Form, x: torch.Tensor) -> Any:
    start = x.clone().requires_grad_()
    y = form(start)
    y.backward(uneven(y))
    return y.detach(), start.grad


for _dtype in (torch.float32, *HALVES):
    _half = _dtype in HALVES
    _table = {
        f"{name}-{which}": lambda *operands, form=form, which=which: _wanted(form, which, operands)
        for name, form in _FORMS.items()
        for which in range(4)
    }
    _table |= {
        f"{name}-{len(shape)}": lambda x, y, w, k, form=form, shape=shape: _moved(
            form, x.flatten()[: torch.Size(shape).numel()].view(shape)
        )
        for name, form in _MOVES.items()
        for shape in ((7,), (4, 5), (2, 3, 4), (2, 3, 3, 5))
    }
    add_table(
        cases,
        f"one-wants-{str(_dtype)[6:]}",
        dict(list(_table.items())[:: 3 if _half else 1]),
        lambda d, dtype=_dtype: (
            (d.distinct(2, 4, 6, 5) / 128 + 0.003).to(dtype),
            (d.distinct(2, 4, 6, 5) / 128 - 0.001).to(dtype),
            (d.distinct(4) / 4 + 0.375).to(dtype),
            (d.distinct(4, 4, 3, 3) / 128).to(dtype),
        ),
        terms=256 if not _half else 8,
        factor=16.0,
        deterministic=False,
    )


def _attended(scale: float, kind: str, x: torch.Tensor) -> Any:
    """Attend with scores so far apart that one key takes all, or those that are alike share it: each score is exact."""
    q, k, v = (one.clone().requires_grad_() for one in (x * scale, x.flip(2), x.roll(1, 1)))
    mask = (
        (torch.arange(6, device=x.device)[None] <= torch.arange(6, device=x.device)[:, None])
        if kind == "mask"
        else None
    )
    y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=kind == "causal", scale=1.0)
    y.backward(uneven(y))
    # No more of the gradients: a back end keeps the logarithm of a row's sum, rounded to what a score's size leaves.
    return y.detach(), [one.isfinite() for one in (v.grad, q.grad, k.grad) if one is not None]


add_table(
    cases,
    "one-wants-vast-scores",
    {
        f"{scale:g}-{kind}": lambda x, scale=scale, kind=kind: _attended(scale, kind, x)
        for scale in (2.0**13, 2.0**20, 2.0**30)
        for kind in ("plain", "causal", "mask")
    },
    lambda d: (d.integers(-4, 5, 2, 2, 6, 8).float() + torch.eye(6, 8) * 9,),
    terms=64,
    factor=64.0,
    deterministic=False,
    since="2.1",
)

# Matrices of ones and zeros: what is asked of them is known to the last digit.
_KNOWN: dict[str, Form] = {
    "eye": lambda n, at: torch.eye(n, **at),
    "zeros": lambda n, at: torch.zeros(n, n, **at),
    "ones": lambda n, at: torch.ones(n, n, **at),
    "turned": lambda n, at: torch.eye(n, **at).roll(1, 0),
    "double": lambda n, at: 2 * torch.eye(n, **at),
    "half": lambda n, at: torch.diag(torch.arange(n, **at) % 2),
}
_ASKED: dict[str, Form] = {
    "rank": lambda x: [torch.linalg.matrix_rank(x), torch.linalg.matrix_rank(x.expand(2, *x.shape))],
    "det": lambda x: [torch.linalg.det(x), x.logdet(), *torch.linalg.slogdet(x)],
    "values": lambda x: [torch.linalg.svdvals(x), torch.linalg.eigvalsh(x + x.mT), torch.linalg.cond(x + x.mT, 1)],
    "norms": lambda x: [torch.linalg.matrix_norm(x, p) for p in ("fro", "nuc", 1, -1, 2, float("inf"))],
    "powers": lambda x: [torch.linalg.matrix_power(x, 3), torch.linalg.matrix_exp(x / 4), x @ x, x.trace()],
    "pinv": lambda x: torch.linalg.pinv(x),
    "inverse": lambda x: torch.linalg.inv(x + 3 * torch.eye(len(x), device=x.device)),
    "cholesky": lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(len(x), device=x.device)),
}
add_table(
    cases,
    "one-wants-known-matrices",
    {
        f"{asked}-{known}-{n}": lambda x, act=_ASKED[asked], make=make, n=n: act(
            make(n, {"device": x.device, "dtype": x.dtype})
        )
        for asked in _ASKED
        for known, make in _KNOWN.items()
        for n in (1, 2, 3, 7)
    },
    lambda d: (d.normal(1),),
    terms=64,
    factor=16.0,
)
