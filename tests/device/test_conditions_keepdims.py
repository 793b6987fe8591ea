"""Rules 1 and 2: sides kept where no dimension is named, rows of nothing but NaN, vectors of one number beside others.

linalg.norm(keepdim=True) without a dimension gave one dimension for all,
https://github.com/Oneflow-Inc/oneflow/issues/8179; argmax of nothing but NaN was no place of the row,
https://github.com/openvinotoolkit/openvino/issues/33626; where raised for a vector of one number beside one of two,
https://github.com/tracel-ai/burn/issues/3807
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")
Form = Callable[..., Any]

_WHOLE = ("sum", "mean", "amax", "amin", "logsumexp", "nansum", "nanmean", "norm", "argmax", "argmin", "std", "var")
_KEPT: dict[str, Form] = {
    **{
        f"{name}-{dim}": lambda x, name=name, dim=dim: getattr(torch, name)(x, dim=dim, keepdim=True)
        for name, dim in itertools.product(_WHOLE, (None, (), (0, -1), [1], -1))
        if not (name.startswith("arg") and isinstance(dim, (tuple, list)))
        and not (name == "logsumexp" and dim is None)
        and not (name in ("std", "var") and dim == ())
    },
    **{
        f"{name}-own": lambda x, name=name: getattr(torch, name)(x, keepdim=True)
        for name in ("argmax", "argmin", "norm", "amax", "amin", "std", "var", "std_mean", "var_mean")
    },
    **{f"{name}-truth": lambda x, name=name: getattr(x > 0, name)(dim=None, keepdim=True) for name in ("any", "all")},
    "linalg-norm": lambda x: [torch.linalg.norm(x[0], keepdim=True), torch.linalg.norm(x, keepdim=True)],
    "linalg-norm-line": lambda x: [
        torch.linalg.norm(x[0, 0], 1, keepdim=True),
        torch.linalg.norm(x[0], 1, keepdim=True),
    ],
    "linalg-vector": lambda x: [torch.linalg.vector_norm(x, p, keepdim=True) for p in (2, 1, 0, float("inf"), 0.5)],
    "linalg-matrix": lambda x: [torch.linalg.matrix_norm(x, p, keepdim=True) for p in ("fro", 1, float("inf"), -1)],
    "norm-gradient": lambda x: derived(lambda y: torch.linalg.norm(y, keepdim=True), x),
    "sum-gradient": lambda x: derived(lambda y: y.sum(dim=(), keepdim=True), x),
    "amax-gradient": lambda x: derived(lambda y: y.amax(keepdim=True), x),
    "quantile": lambda x: [torch.quantile(x.float(), 0.3, keepdim=True), x.float().nanquantile(0.3, keepdim=True)],
    "places": lambda x: [x.max(1, keepdim=True), x.median(-1, keepdim=True), x.mode(0, keepdim=True)[0]],
    "kept-places": lambda x: [x.kthvalue(2, 1, keepdim=True), x.nanmedian(1, keepdim=True), x.cummax(1)],
}
for _dtype in (torch.float32, *HALVES):
    add_table(
        cases,
        f"kept-sides-{str(_dtype)[6:]}",
        _KEPT if _dtype == torch.float32 else dict(list(_KEPT.items())[:: 2 if _dtype == torch.float16 else 3]),
        lambda d, dtype=_dtype: ((d.distinct(3, 4, 5) / 16 + 0.03125).to(dtype),),
    )


def _of(x: torch.Tensor, places: torch.Tensor, dim: int) -> Any:
    """Say whether places are in their rows, and whether what is there is NaN: which of them is open."""
    inside = (places >= 0) & (places < x.shape[dim])
    return [inside, x.gather(dim, places.clamp(0, x.shape[dim] - 1)).isnan()]


# Rows of NaN alone, and of NaN beside numbers; short, past a group of threads, past a block.
_CHOSEN: dict[str, Form] = {
    "argmax": lambda x, d: x.argmax(d, True),
    "argmin": lambda x, d: x.argmin(d, True),
    "max": lambda x, d: x.max(d, True)[1],
    "min": lambda x, d: x.min(d, True)[1],
    "median": lambda x, d: x.median(d, True)[1],
    "kthvalue": lambda x, d: x.kthvalue(2, d, True)[1],
    "topk": lambda x, d: x.topk(2, d)[1],
    "sort": lambda x, d: x.sort(d)[1],
    "cummax": lambda x, d: x.cummax(d)[1],
    "cummin": lambda x, d: x.cummin(d)[1],
}
_COUNTS = (2, 7, 33, 257, 1031)


def _nan(x: torch.Tensor, count: int) -> torch.Tensor:
    return torch.full((2, count), float("nan"), device=x.device, dtype=x.dtype)


for _dtype in (torch.float32, *HALVES):
    add_table(
        cases,
        f"none-but-nan-{str(_dtype)[6:]}",
        {
            f"{name}-{count}-{dim}": lambda x, form=form, count=count, dim=dim: _of(
                y := _nan(x, count) if dim else _nan(x, count).t().contiguous(), form(y, dim), dim
            )
            for name, form in _CHOSEN.items()
            for count, dim in itertools.product(_COUNTS, (0, 1))
        }
        | {
            f"{name}-{count}-line": lambda x, form=form, count=count: _of(y := _nan(x, count)[0], form(y, 0), 0)
            for name, form in _CHOSEN.items()
            for count in _COUNTS
        }
        | {
            # By its documentation the first of several that are largest.
            f"first-{count}": lambda x, count=count: [
                _nan(x, count)[0].argmax(),
                _nan(x, count)[0].argmin(),
                _nan(x, count).argmax(1),
            ]
            for count in _COUNTS
        }
        | {
            f"values-{count}": lambda x, count=count: [
                (y := _nan(x, count)).amax(1),
                y.max(),
                y.min(1)[0],
                y.sort()[0],
                y.nansum(1),
                y.nanmean(1),
                y.argmax() < y.numel(),
            ]
            for count in _COUNTS
        },
        lambda d, dtype=_dtype: (torch.zeros(1, dtype=dtype),),
    )

# Vectors of one number, of two, and numbers by themselves, in each place of what takes three.
_THREE: dict[str, Form] = {
    "where": lambda c, x, y: torch.where(c > 0, x, y),
    "where-method": lambda c, x, y: x.where(c > 0, y),
    "lerp": lambda c, x, y: torch.lerp(x, y, c),
    "addcmul": lambda c, x, y: torch.addcmul(c, x, y, value=0.5),
    "addcdiv": lambda c, x, y: torch.addcdiv(c, x, y.abs() + 1),
    "clamp": lambda c, x, y: torch.clamp(c, x - 2, y + 2),
    "masked_fill": lambda c, x, y: (c + x).masked_fill(y > 0, 2.0),
    "isclose": lambda c, x, y: [torch.isclose(x, y), torch.isclose(c, x, equal_nan=True)],
    "added": lambda c, x, y: [c + x * y, torch.hypot(c, x) / (y.abs() + 1), torch.maximum(c, torch.minimum(x, y))],
    "broadcast": lambda c, x, y: [one.clone() for one in torch.broadcast_tensors(c, x, y)],
    "derived": lambda c, x, y: derived(lambda p, q: torch.where(c > 0, p, q), x, y),
}
_SIDES = ((), (1,), (2,), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1, 1))
add_table(
    cases,
    "three-sides",
    {
        f"{name}-{'-'.join('x'.join(map(str, side)) or 'none' for side in sides)}": lambda x, form=form, sides=sides: (
            form(*(x[at : at + torch.Size(side).numel()].reshape(side) for at, side in zip((0, 5, 11), sides)))
        )
        for number, (name, form) in enumerate(_THREE.items())
        for place, sides in enumerate(itertools.product(_SIDES, repeat=3))
        if len(set(sides)) > 1 and (name.startswith("where") or (place + number) % 5 == 0)
    },
    lambda d: (d.distinct(18) / 8 + 0.0625,),
)

# Activations and what stands beside them over videos of 64 channels: five dimensions and more than four blocks.
_VIDEO = (
    *(
        "relu",
        "relu6",
        "leaky_relu",
        "elu",
        "selu",
        "celu",
        "gelu",
        "silu",
        "mish",
        "hardswish",
        "hardsigmoid",
        "softplus",
    ),
    *("softsign", "tanhshrink", "hardtanh", "logsigmoid", "hardshrink", "softshrink", "sigmoid", "tanh"),
)


def _video(x: torch.Tensor, way: str) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last_3d) if way == "last" else x


add_table(
    cases,
    "videos",
    {
        f"{name}-{'x'.join(map(str, shape))}-{way}": lambda x, name=name, shape=shape, way=way: derived(
            getattr(F, name),
            _video(x.view(shape), way),
        )
        for name in _VIDEO
        for shape in ((1, 64, 2, 3, 5), (2, 64, 5, 1, 3), (1, 64, 30, 1, 1))
        for way in ("first", "last")
    },
    lambda d: (d.distinct(1920) / 128 + 0.003,),
    factor=16.0,
)
