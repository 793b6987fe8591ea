"""NaN, infinity and numbers beyond half precision in one operand: each operand of what takes several, one at a time."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.limits import HALVES, add_table, assigned

cases = Cases("conditions")


# For each function: its form, and the shapes of its operands.
_FORMS: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "linear": (F.linear, ((2, 3, 4), (5, 4), (5,))),
    "bilinear": (F.bilinear, ((3, 4), (3, 5), (2, 4, 5), (2,))),
    "matmul": (torch.matmul, ((3, 4), (4, 5))),
    "matmul-vector": (torch.matmul, ((2, 3, 4), (4,))),
    "bmm": (torch.bmm, ((2, 3, 4), (2, 4, 5))),
    "addmm": (torch.addmm, ((5,), (3, 4), (4, 5))),
    "addmm-beta": (lambda c, a, b: torch.addmm(c, a, b, beta=0), ((3, 5), (3, 4), (4, 5))),
    "baddbmm-beta": (lambda c, a, b: torch.baddbmm(c, a, b, beta=0, alpha=2), ((2, 3, 5), (2, 3, 4), (2, 4, 5))),
    "addmv": (lambda c, a, b: torch.addmv(c, a, b, beta=0), ((3,), (3, 4), (4,))),
    "einsum": (lambda a, b: torch.einsum("bij,bkj->bik", a, b), ((2, 3, 4), (2, 5, 4))),
    "conv1d": (F.conv1d, ((2, 3, 9), (4, 3, 3), (4,))),
    "conv2d": (F.conv2d, ((2, 3, 6, 5), (4, 3, 3, 3), (4,))),
    "conv3d": (F.conv3d, ((1, 2, 4, 4, 3), (3, 2, 2, 2, 2), (3,))),
    "conv_transpose2d": (F.conv_transpose2d, ((2, 3, 4, 4), (3, 2, 3, 3), (2,))),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),  # asked late: before 2.0 there is none
        ((2, 2, 5, 4), (2, 2, 6, 4), (2, 2, 6, 4)),
    ),
    "attention-mask": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        ((2, 2, 5, 4), (2, 2, 6, 4), (2, 2, 6, 4), (5, 6)),
    ),
    "attention-causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        ((2, 2, 6, 4), (2, 2, 6, 4), (2, 2, 6, 4)),
    ),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (5,), w, b), ((3, 4, 5), (5,), (5,))),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), ((3, 4, 5), (4,), (4,))),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), ((3, 4, 5), (4,), (4,))),
    "batch_norm-running": (lambda x, m, v: F.batch_norm(x, m, v.abs()), ((3, 4, 5), (4,), (4,))),
    "rms_norm": (lambda x, w: F.rms_norm(x, (5,), w), ((3, 4, 5), (5,))),
    "prelu": (F.prelu, ((3, 4, 5), (4,))),
    "embedding": (lambda w, x: F.embedding(torch.arange(0, 6, 2, device=x.device), w) * x[:, None], ((6, 4), (3,))),
    "pixels": (lambda x: [F.interpolate(x, (7, 9), mode=m) for m in ("nearest", "bilinear", "area")], ((1, 2, 4, 4),)),
    "pooled": (lambda x: [F.max_pool2d(x, 2, 1), F.avg_pool2d(x, 2, 1), F.adaptive_max_pool2d(x, 2)], ((1, 2, 4, 5),)),
    "padded": (lambda x: [F.pad(x, (1, 1), mode=m) for m in ("constant", "reflect", "circular")], ((1, 2, 5),)),
    "folded": (lambda x: F.fold(F.unfold(x, 2), (4, 5), 2), ((1, 2, 4, 5),)),
    "lerp": (torch.lerp, ((3, 4), (3, 4), (3, 4))),
    "addcmul": (torch.addcmul, ((3, 4), (3, 4), (3, 4))),
    "addcdiv": (torch.addcdiv, ((3, 4), (3, 4), (3, 4))),
    "where": (lambda c, a, b: torch.where(c > 0, a, b), ((3, 4), (3, 4), (3, 4))),
    "clamp": (lambda x, a, b: torch.clamp(x, a - 1, b + 1), ((3, 4), (3, 4), (3, 4))),
    "extremes": (lambda a, b: [torch.maximum(a, b), torch.fmin(a, b), torch.minimum(a, b)], ((3, 4), (3, 4))),
    "distances": (lambda a, b: [F.pairwise_distance(a, b), F.cosine_similarity(a, b)], ((3, 4), (3, 4))),
    "losses": (
        lambda a, b: [
            f(a, b, reduction=r)
            for f in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss)
            for r in ("none", "mean")
        ],
        ((3, 4), (3, 4)),
    ),
    "logits": (lambda a, w: F.binary_cross_entropy_with_logits(a, (a > 0).to(a.dtype), w.abs()), ((3, 4), (4,))),
    "classes": (
        lambda a, w: F.cross_entropy(a, torch.arange(3, device=a.device), w.abs(), reduction="none"),
        ((3, 4), (4,)),
    ),
    "scattered": (lambda x, y: x.scatter_reduce(0, _places(x), y, "amax"), ((4, 5), (4, 5))),
    "added": (lambda x, y: x.index_add(0, _places(x)[:, 0], y), ((4, 5), (4, 5))),
    "copied": (lambda x, y: x.index_copy(0, _places(x)[:, 0], y), ((4, 5), (4, 5))),
    "masked": (lambda x, y: x.masked_scatter(x.abs() < 1, y), ((4, 5), (4, 5))),
    "sorted": (lambda x: [x.sort(-1)[0], x.topk(2)[0], x.median(-1)[0], x.nanmedian(-1)[0]], ((4, 5),)),
    "scanned": (lambda x: [x.cumsum(-1), x.cummax(-1)[0], x.cummin(0)[0], x.cumprod(0), x.logcumsumexp(0)], ((4, 5),)),
    "reduced": (lambda x: [x.sum(0), x.nansum(0), x.amax(0), x.aminmax(dim=0), x.norm(dim=0), x.var(0)], ((4, 5),)),
    "soft": (
        lambda x: [x.softmax(-1), x.log_softmax(0), x.logsumexp(0), F.gumbel_softmax(x * 0, hard=True) * 0],
        ((4, 5),),
    ),
}


def _places(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(x.shape[0], device=x.device).flip(0)[:, None].expand(x.shape).contiguous()


# Where back ends that are right differ. The CPU's fused attention loses a NaN in a query (2.13). A product that is put
# together of several has no infinity: inf - inf. A transposed convolution may be a product with zeros: 0 * inf. A norm
# with an infinite weight is w * (x - mean), or w * x - w * mean.
_OPEN: dict[str, dict[float, tuple[int, ...]]] = {
    "attention": {math.nan: (0,), math.inf: (0, 1, 2)},
    "attention-causal": {math.nan: (0, 1), math.inf: (0, 1, 2)},
    "attention-mask": {math.inf: (0, 1, 2)},
    "conv_transpose2d": {math.nan: (1,), math.inf: (1,)},
    "group_norm": {math.inf: (1,)},
    "batch_norm": {math.inf: (1,)},
    "rms_norm": {math.inf: (0,)},
}


def _asked(name: str, count: int, value: float) -> list[int]:
    """Return the operands that are spoilt, one after the other."""
    return [place for place in range(count) if place not in _OPEN.get(name, {}).get(value, ())]


def _one_at_a_time(form: Any, places: list[int], value: float) -> dict[str, Any]:
    def poisoned(operands: Any, place: int) -> Any:
        spoilt = operands[place].clone()
        spoilt.view(-1)[spoilt.numel() // 2] = value
        return form(*operands[:place], spoilt, *operands[place + 1 :])

    return {str(place): lambda *operands, place=place: poisoned(operands, place) for place in places}


for _name, (_form, _shapes) in _FORMS.items():
    for _value in (math.nan, math.inf):
        if _spoilt := _asked(_name, len(_shapes), _value):
            add_table(
                cases,
                f"poisoned-{_name}-{_value}",
                _one_at_a_time(_form, _spoilt, _value),
                lambda d, shapes=_shapes: tuple(d.normal(*shape) for shape in shapes),
                deterministic=False,
            )

# Functions of two numbers, at every pair of these: x one after the other, y all of them for each.
_ENDS = (0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0, 0.5, -2.5, 3.5)
_TWO = """hypot atan2 copysign logaddexp logaddexp2 xlogy float_power pow fmod remainder floor_divide true_divide mul
maximum minimum fmax fmin heaviside eq ne lt ge isclose logical_xor""".split()
_PAIRED: dict[str, Any] = {
    **{name: getattr(torch, name) for name in _TWO},
    **{f"lerp-{weight}": lambda x, y, weight=weight: x.lerp(y, weight) for weight in (0.0, 0.25, 0.5, 0.75, 1.0, -0.5)},
    **{
        f"lerp-tensor-{weight}": lambda x, y, weight=weight: torch.lerp(x, y, torch.full_like(x, weight))
        for weight in (0.25, 0.75)
    },
    **{f"divide-{mode}": lambda x, y, mode=mode: torch.div(x, y, rounding_mode=mode) for mode in ("floor", "trunc")},
    "scaled": lambda x, y: [torch.add(x, y, alpha=2), torch.sub(x, y, alpha=0.5), torch.rsub(x, y)],
    "addc": lambda x, y: [torch.addcmul(x, x, y, value=0.5), torch.addcdiv(y, x, y, value=2)],
    "bounded": lambda x, y: [torch.clamp(x, y), torch.clamp(x, max=y), torch.clamp(x, -y.abs(), y.abs())],
    "exponent": lambda x, y: torch.ldexp(x, torch.full_like(x, 3).int()),
    "log1p": lambda x, y: torch.special.xlog1py(x, y),
    "parts": lambda x, y: [torch.complex(x, y).real, torch.complex(x, y).imag, torch.complex(x, y).conj().imag],
    # A NaN's sign is nobody's.
    "signs": lambda x, y: [
        one.nan_to_num(1.0).signbit() for one in (x * y, x + y, -x, torch.copysign(x, -y.nan_to_num(1.0)))
    ],
    "chosen": lambda x, y: [torch.where(x > y, x, y), x.masked_fill(y.isnan(), 7.0), x.nan_to_num(1, 2, 3) + y],
    "losses": lambda x, y: [
        form(x, y, reduction="none") for form in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss)
    ],
    "curves": lambda x, y: [
        F.softplus(x, 2.0),
        F.elu(x, 0.5),
        F.leaky_relu(x),
        F.softshrink(x),
        F.threshold(x, 0.5, 9),
    ],
}
for _dtype in (torch.float32, *HALVES):
    add_table(
        cases,
        f"poisoned-pairs-{str(_dtype)[6:]}",
        _PAIRED,
        lambda d, dtype=_dtype: tuple(
            one.flatten().to(dtype) for one in torch.meshgrid(torch.tensor(_ENDS), torch.tensor(_ENDS), indexing="ij")
        ),
        factor=16.0,
    )

# Half precision: what is in between would be beyond it, the answer is not.
_WIDE: dict[str, Any] = {
    "scores": lambda x: [
        F.scaled_dot_product_attention(x, x, x / 512, scale=scale, is_causal=causal)
        for scale in (1 / 4096, 0.5)
        for causal in (False, True)
    ],
    "masked": lambda x: F.scaled_dot_product_attention(x, x, x / 512, x[..., :1, :1].expand(2, 2, 6, 6) * 64),
    "soft": lambda x: [(x * 64).softmax(-1), (x * 64).log_softmax(-1), (x * 64).logsumexp(-1), F.softmin(x * 64, -1)],
    "means": lambda x: [(x.abs() * 64).mean(-1), (x.abs() * 64).mean(), (x.abs() * 64).mean((1, 2))],
    "spread": lambda x: [x.std(-1), x.std(), x.norm(dim=-1), x.norm(), torch.linalg.vector_norm(x, 3, -1)],
    "normed": lambda x: [F.layer_norm(x * 32, (16,)), F.rms_norm(x * 32, (16,)), F.group_norm(x * 32, 2)],
    "trained": lambda x: [F.batch_norm(x * 32, None, None, training=True), F.instance_norm(x * 32)],
    "unit": lambda x: [F.normalize(x * 32, dim=-1), F.cosine_similarity(x * 32, x.flip(0) * 32, dim=-1)],
    "pooled": lambda x: [F.avg_pool2d(x.abs() * 64, 2), F.adaptive_avg_pool2d(x.abs() * 64, 1)],
    "resized": lambda x: [F.interpolate(x * 64, (9, 7), mode=m) for m in ("bilinear", "area", "bicubic")],
    "between": lambda x: [torch.lerp(x * 64, -x * 64, 0.5), torch.addcdiv(x, x * 64, x.abs() * 64 + 1, value=2)],
    "hypotenuse": lambda x: [torch.hypot(x, x.flip(0)), torch.pairwise_distance(x * 8, -x * 8), (x * 32).abs().sqrt()],
    "products": lambda x: [x @ (x.mT / 512), torch.bmm(x[0], x[0].mT / 512), F.linear(x, x[0, 0] / 512)],
    "losses": lambda x: [
        F.cross_entropy(x[0, 0] * 16, torch.arange(6, device=x.device)),
        F.smooth_l1_loss(x * 32, -x * 32),
        F.binary_cross_entropy_with_logits(x * 32, (x > 0).to(x.dtype)),
    ],
    "activated": lambda x: [F.gelu(x * 16), F.gelu(x * 16, approximate="tanh"), F.silu(x * 16), F.mish(x * 16)],
    "smooth": lambda x: [F.softplus(x * 16), F.elu(x * 16), F.selu(x * 16), F.celu(x * 16), F.logsigmoid(x * 16)],
    "sums": lambda x: [(x * 4).sum(-1), (x * 2).cumsum(-1), (x * 32).diff(dim=-1)],
}
for _dtype in (torch.float16, torch.bfloat16):
    add_table(
        cases,
        f"beyond-{str(_dtype)[6:]}",
        _WIDE,
        lambda d, dtype=_dtype: (d.normal(2, 2, 6, 16, scale=200.0).clamp(-900, 900).to(dtype),),
        factor=16.0,
        floor=4.0,
        deterministic=False,
    )


# Matrices in which one number is none: refused or a NaN, as each back end has it, but no answer that hides it.
_FACTORED: dict[str, Any] = {
    "cholesky": torch.linalg.cholesky,
    "cholesky-upper": lambda x: torch.linalg.cholesky(x, upper=True),
    "eigh": torch.linalg.eigh,
    "svd": torch.linalg.svd,
    "values": torch.linalg.svdvals,
    "qr": torch.linalg.qr,
    "exponential": torch.linalg.matrix_exp,
    "norm": lambda x: torch.linalg.matrix_norm(x, 2),
}
_SPOILT: dict[str, Any] = {
    "corner": lambda x: assigned(x, (0, 0), math.nan),
    "end": lambda x: assigned(x, (3, 3), math.nan),
    "batch": lambda x: torch.stack([x, x * math.nan, x]),
}


def _hides(form: Any, x: torch.Tensor) -> bool:
    try:
        parts = form(x)
    except (RuntimeError, NotImplementedError):
        return False
    parts = parts if isinstance(parts, tuple) else (parts,)
    return not any(bool(part.isnan().any()) for part in parts)


add_table(
    cases,
    "poisoned-matrices",
    {
        f"{name}-{label}": lambda x, form=form, spoil=spoil: _hides(form, spoil(x))
        for name, form in _FACTORED.items()
        for label, spoil in _SPOILT.items()
    },
    lambda d: torch.eye(4) * 3 + 0.5,
)
