"""Tables of functions in one graph of torch.compile: on MPS its code generator writes kernels of its own for them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.limits import ONCE, each

cases = Cases("conditions")
_HALF = (torch.float32, torch.float16)
_WHOLE = (torch.int64, torch.int32, torch.uint8)


_ROUNDED: dict[str, Any] = {
    name: lambda x, y, name=name: getattr(torch, name)(x * 3)
    for name in ("floor", "ceil", "round", "trunc", "frac", "sign", "signbit", "abs", "neg", "isnan", "isinf")
} | {
    name: lambda x, y, name=name: getattr(torch, name)(x, y)
    for name in (
        "fmod",
        "remainder",
        "floor_divide",
        "copysign",
        "hypot",
        "atan2",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
    )
}
_CURVES: dict[str, Any] = {
    name: lambda x, y, name=name: getattr(torch, name)(x)
    for name in (
        *("exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh", "atan", "sigmoid", "sinc"),
        *("erf", "erfc", "lgamma", "digamma", "i0", "square", "reciprocal", "nan_to_num"),
    )
} | {
    name: lambda x, y, name=name: getattr(torch, name)(x.abs() + 0.25)
    for name in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt")
}
_SPECIAL: dict[str, Any] = {
    name: lambda x, y, name=name: getattr(torch.special, name)(x)
    for name in (
        *("i0e", "i1", "i1e", "ndtr", "log_ndtr", "entr", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"),
        *(
            "modified_bessel_i0",
            "modified_bessel_i1",
            "modified_bessel_k0",
            "modified_bessel_k1",
            "spherical_bessel_j0",
        ),
    )
} | {
    "erfinv": lambda x, y: torch.erfinv(x.sin() * 0.9),
    "ndtri": lambda x, y: torch.special.ndtri(x.sigmoid()),
    "polygamma0": lambda x, y: torch.polygamma(0, x.abs() + 0.5),
    "polygamma1": lambda x, y: torch.polygamma(1, x.abs() + 0.5),
    "polygamma2": lambda x, y: torch.polygamma(2, x.abs() + 0.5),
    "zeta": lambda x, y: torch.special.zeta(x.abs() + 1.5, y.abs() + 0.5),
    "xlogy": lambda x, y: torch.xlogy(x, y.abs() + 0.25),
    "xlog1py": lambda x, y: torch.special.xlog1py(x, y.abs()),
    "pow": lambda x, y: (x.abs() + 0.5) ** y,
    "logaddexp": lambda x, y: torch.logaddexp(x, y),
    **{
        kind: lambda x, y, kind=kind: getattr(torch.special, kind)(x.sin(), 3)
        for kind in (
            "chebyshev_polynomial_t",
            "chebyshev_polynomial_u",
            "hermite_polynomial_h",
            "hermite_polynomial_he",
        )
    },
}
_ACTIVE: dict[str, Any] = {
    name: lambda x, y, name=name: getattr(F, name)(x * 2)
    for name in (
        *("relu", "relu6", "gelu", "silu", "mish", "softplus", "softsign", "tanhshrink", "hardswish", "hardsigmoid"),
        *("leaky_relu", "elu", "selu", "celu", "logsigmoid", "softshrink", "hardshrink", "hardtanh"),
    )
} | {"gelu_tanh": lambda x, y: F.gelu(x, approximate="tanh"), "clamped": lambda x, y: torch.clamp(x, -0.5, 0.75)}
_REDUCED: dict[str, Any] = {
    name: lambda x, y, name=name: (getattr(torch, name)(x), getattr(torch, name)(x, 1), getattr(torch, name)(x, 0))
    for name in ("sum", "mean", "argmax", "argmin", "var", "std")
} | {
    "amax": lambda x, y: (x.amax(1), x.amin(0)),
    "prod": lambda x, y: (1 + x / 64).prod(1),
    "any": lambda x, y: ((x > 2).any(1), (x > -2).all(0)),
    "counted": lambda x, y: torch.count_nonzero(x > 0, dim=1),
    "logsumexp": lambda x, y: x.logsumexp((0, 1)),
    "softmax": lambda x, y: (x.softmax(1), x.log_softmax(0)),
    "normed": lambda x, y: (F.layer_norm(x, x.shape[1:]), x.norm(dim=1), F.normalize(x, dim=0)),
    "largest": lambda x, y: (x.max(1), x.min(0)),
    "scanned": lambda x, y: (x.cumsum(1), x[:, :6].cumprod(1), x.cummax(0)[0], x[:, :9].logcumsumexp(1)),
    "moments": lambda x, y: (torch.var_mean(x, 1), x.sort(1)[0], x.topk(3, 1)[0]),
}
_PLACED: dict[str, Any] = {
    "gathered": lambda x, y: (x.gather(1, _index(x)), x[:, [2, 0]], x.index_select(0, _index(x)[0, :3])),
    "put": lambda x, y: (
        x.index_put((_index(x)[0],), y[:3], accumulate=True),
        x.scatter_add(1, _index(x), y),
        x.scatter(1, _index(x), 2.0),
    ),
    "embedded": lambda x, y: F.embedding(_index(x), x),
    "chosen": lambda x, y: (torch.where(x > y, x, 2.0), x.masked_fill(y > 0, -1.0)),
    "turned": lambda x, y: (x.roll(2, 1), x.flip(0), x.mT.contiguous(), x.unfold(1, 2, 1) + 0, x.repeat(2, 3)),
    "joined": lambda x, y: (torch.cat([x, y[:1]]), torch.stack([x, y], 1), torch.cat([x[:, 1:], y], 1)),
    "padded": lambda x, y: (F.pad(x, (1, 2), value=3.0), F.pad(x[None], (1, 2), mode="reflect")),
    "triangles": lambda x, y: (x.tril(-1), x.triu(1), x.diagonal() + 0),
    "made": lambda x, y: (torch.arange(7, device=x.device), torch.full_like(x, 2.5), F.one_hot(_index(x), 8)),
    "sought": lambda x, y: (torch.bucketize(x, y[0].sort()[0]), torch.searchsorted(y.sort(1)[0], x)),
    "cast": lambda x, y: ((x * 9).to(torch.int32), (x * 9).to(torch.bool), x.to(torch.float16), x.to(torch.bfloat16)),
    "strided": lambda x, y: (x[:, ::2] + y[:, 1:2], x[1:].T * 2, x.as_strided((3, 2), (1, 2), 1) + 1),
}
_IMAGES: dict[str, Any] = {
    "pooled": lambda x, y: (F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 2, 1, count_include_pad=False)),
    "adaptive": lambda x, y: (F.adaptive_max_pool2d(x, (3, 2)), F.adaptive_avg_pool2d(x, (4, 3))),
    "adaptive1d": lambda x, y: (F.adaptive_max_pool1d(x[0], 3), F.adaptive_avg_pool1d(x[0], 4)),
    "resized": lambda x, y: (
        *(F.interpolate(x, (7, 9), mode=mode) for mode in ("nearest", "bilinear", "bicubic")),
        F.interpolate(x, scale_factor=0.5, mode="bilinear", align_corners=True),
    ),
    "shuffled": lambda x, y: (F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2), F.pixel_unshuffle(x[..., :4, :4], 2)),
    "sampled": lambda x, y: F.grid_sample(x, y[:, 0, :, :2][:, :, None].tanh(), align_corners=False),
    "convolved": lambda x, y: (F.conv2d(x, y[:, :, :3, :3], padding=1), F.conv1d(x[0], y[:2, 0, :, :3])),
    "normed": lambda x, y: (F.batch_norm(x, None, None, training=True), F.group_norm(x, 1), F.instance_norm(x)),
}
_PRODUCTS: dict[str, Any] = {
    "multiplied": lambda x, y: (x @ y.mT, torch.addmm(x[:, :5], x, y.mT), x[0] @ y.mT, torch.einsum("ij,kj->ik", x, y)),
    "batched": lambda x, y: (x[None] @ y.mT[None], torch.baddbmm(x[None, :, :5], x[None], y.mT[None], beta=0.5)),
    "attention": lambda x, y: F.scaled_dot_product_attention(
        x[None, None], y[None, None], y[None, None], is_causal=True
    ),
    "factored": lambda x, y: (torch.linalg.cholesky(_positive(x)), torch.linalg.inv(_positive(x))),
    "solved": lambda x, y: (torch.linalg.solve(_positive(x), y), torch.linalg.det(_positive(x))),
    "values": lambda x, y: (torch.linalg.svdvals(x), torch.linalg.qr(x)[1].abs(), torch.linalg.eigvalsh(_positive(x))),
}
_COUNTED: dict[str, Any] = {
    "divided": lambda x, y: (x // (y | 1), x % (y | 1), torch.div(x, y | 1, rounding_mode="trunc"), x / (y | 1)),
    "bits": lambda x, y: (x & y, x | y, x ^ y, ~x, x << 2, x >> 1),
    "compared": lambda x, y: (x < y, x == y, torch.maximum(x, y), x.clamp(1, 5), torch.where(x > y, x, y)),
    "summed": lambda x, y: (x.sum(), x.sum(1), x.cumsum(1), x.prod(1), x.argmax(1), x.amax(0), (x > 5).any(1)),
    "powers": lambda x, y: (x**2, x * x - y, x.abs(), x.sign(), torch.gcd(x, y)),
    "cast": lambda x, y: (x.to(torch.float32) / 3, x.to(torch.uint8), x.to(torch.bool), x.to(torch.int16)),
}


def _index(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([[3, 0, 1], [2, 2, 4], [0, 4, 4], [1, 3, 0], [4, 1, 2]], device=x.device)


def _positive(x: torch.Tensor) -> torch.Tensor:
    return x @ x.mT + 4 * torch.eye(x.shape[0], dtype=x.dtype, device=x.device)


def _of(*shape: int) -> Any:
    return lambda d, dtype: (d.of(dtype, *shape), d.of(dtype, *shape))


# A table, its operands and its dtypes.
_TABLES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "rounded": (_ROUNDED, _of(5, 7), _HALF),
    "curves": (_CURVES, _of(5, 7), _HALF),
    "special": (_SPECIAL, _of(5, 7), _HALF[:1]),
    "active": (_ACTIVE, _of(5, 7), _HALF),
    "reduced": (_REDUCED, _of(5, 37), _HALF[:1]),
    "reduced-long": (_REDUCED, _of(3, 3001), _HALF[:1]),
    "placed": (_PLACED, _of(5, 5), _HALF[:1]),
    "images": (_IMAGES, _of(3, 3, 10, 8), _HALF[:1]),
    "products": (_PRODUCTS, _of(5, 6), _HALF[:1]),
    "counted": (_COUNTED, _of(5, 7), _WHOLE),
}


def _built(form: Any) -> Any:
    return torch.compile(form, dynamic=False)


def _compiled(table: dict[str, Any]) -> Any:
    def whole(*operands: Any) -> Any:
        return {name: form(*operands) for name, form in table.items()}

    def act(run: Any, *operands: Any) -> Any:
        if not run.tested:
            return whole(*operands)
        torch._dynamo.reset()
        with torch.no_grad():
            try:
                return _built(whole)(*operands)
            except Exception:  # one that is refused must not hide the others
                return each({name: _built(form) for name, form in table.items()}, *operands)

    return act


for _name, (_table, _make, _dtypes) in _TABLES.items():
    for _dtype in _dtypes:
        for _label, _fields in (
            ("", {"devices": ("mps",)}),
            ("-rehearsed", {"devices": ("cpu", "cuda"), "full": True}),
        ):
            # The Metal back end of torch.compile came with 2.7.
            cases.add(
                f"condition-compiled-{_name}-{str(_dtype)[6:]}{_label}",
                _compiled(_table),
                make=lambda d, make=_make, dtype=_dtype: make(d, dtype),
                terms=4096,
                factor=16.0,
                floor=1.0,
                states=ONCE,
                may_be_missing=True,
                since="2.7",
                limit_seconds=300,
                **_fields,  # type: ignore[arg-type]
            )
