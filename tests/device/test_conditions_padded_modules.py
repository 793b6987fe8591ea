"""Convolution's modules: every way to pad, with windows, gaps and groups; pooling's modules beside them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from device_suite import Cases
from device_suite.acts import filled, learned
from device_suite.limits import add_table

cases = Cases("conditions")
_WAYS = ("zeros", "reflect", "replicate", "circular")
_CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
_SIDES = {1: (2, 4, 9), 2: (2, 4, 7, 8), 3: (1, 4, 5, 6, 5)}
# (kernel, padding, and the rest): one side alone, windows of one pixel, of two, as wide as twice the padding.
_SHAPES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "3-1": (3, 1, {}),
    "3-2": (3, 2, {}),
    "2-1": (2, 1, {}),
    "1-1": (1, 1, {}),
    "1-0": (1, 0, {}),
    "5-4": (5, 4, {"bias": False}),
    "3-same": (3, "same", {}),
    "4-same": (4, "same", {}),
    "2-same": (2, "same", {"dilation": 3}),
    "3-valid": (3, "valid", {"stride": 2}),
    "3-same-gaps": (3, "same", {"dilation": 2}),
    "3-1-gaps": (3, 1, {"dilation": 2}),
    "3-4-gaps": (3, 4, {"dilation": 4}),
    "3-2-steps": (3, 2, {"stride": 3}),
    "3-1-groups": (3, 1, {"groups": 2}),
    "3-1-each": (3, 1, {"groups": 4}),
    "3-4-each-gaps": (3, 4, {"groups": 4, "dilation": 4}),
    "3-same-each": (3, "same", {"groups": 4, "dilation": 2, "out": 8}),
    "1-2-each": (1, 2, {"groups": 4, "stride": 2}),
}
# Of two and three sides: another number for each.
_UNEVEN: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "uneven": ((3, 2, 1), (1, 0, 2), {}),
    "uneven-gaps": ((2, 3, 2), (0, 2, 1), {"dilation": (1, 2, 3)}),
    "one-side": ((1, 3, 1), (0, 1, 0), {"stride": (2, 1, 3)}),
    "uneven-same": ((4, 3, 2), "same", {"dilation": (1, 2, 2)}),
}


def _cut(value: Any, rank: int) -> Any:
    return value[:rank] if isinstance(value, tuple) else value


def _convolved(rank: int, way: str, shape: Any, x: torch.Tensor) -> Any:
    kernel, padding, more = shape
    more = {name: _cut(value, rank) for name, value in more.items()}
    channels = more.pop("out", 4)
    module = _CONVOLUTIONS[rank](4, channels, _cut(kernel, rank), padding=_cut(padding, rank), padding_mode=way, **more)
    return learned(filled(module, x), x)


for _rank, _size in _SIDES.items():
    for _dtype in (torch.float32, torch.float16, torch.bfloat16) if _rank == 2 else (torch.float32,):
        add_table(
            cases,
            f"padded-{_rank}d-{str(_dtype)[6:]}",
            {
                f"{way}-{name}": lambda x, rank=_rank, way=way, shape=shape: _convolved(rank, way, shape, x)
                for way in _WAYS
                for name, shape in {**_SHAPES, **(_UNEVEN if _rank > 1 else {})}.items()
                if (way != "zeros" or "each" in name)
                and (_dtype == torch.float32 or name in ("3-1", "5-4", "uneven", "3-same", "3-4-each-gaps"))
            },
            lambda d, size=_size, dtype=_dtype: (d.normal(*size, dtype=dtype),),
            terms=1024,
            deterministic=False,
        )
# Inputs without a batch, of one pixel, and as small as the window once they are padded.
_SMALL = {
    1: ((4, 5), (1, 4, 1), (1, 4, 3)),
    2: ((4, 5, 5), (1, 4, 1, 1), (1, 4, 2, 3)),
    3: ((1, 4, 1, 1, 1), (4, 2, 3, 2)),
}
for _rank, _sizes in _SMALL.items():
    add_table(
        cases,
        f"padded-small-{_rank}d",
        {
            f"{way}-{name}-{number}": lambda *given, rank=_rank, way=way, name=name, number=number: _convolved(
                rank, way, _SHAPES[name], given[number]
            )
            for way in _WAYS
            for name in ("3-1", "1-1", "3-same", "3-1-each")
            for number in range(len(_sizes))
        },
        lambda d, sizes=_sizes: tuple(d.normal(*size) for size in sizes),
        terms=1024,
        deterministic=False,
    )
# Transposed: what is added at one end, up to where the steps and gaps allow it.
_TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
# (kernel, stride, padding, added at the end, groups, dilation)
_ENDS = (
    (1, 2, 0, 1, 1, 1),
    (3, 3, 1, 2, 4, 1),
    (2, 3, 0, 1, 1, 2),
    (3, 1, 1, 2, 2, 3),
    (5, 2, 2, 0, 4, 3),
    (1, 3, 0, 2, 4, 1),
)
for _rank, _size in _SIDES.items():
    add_table(
        cases,
        f"turned-{_rank}d",
        {
            "-".join(map(str, end)): lambda x, kind=_TRANSPOSED[_rank], end=end: learned(
                filled(kind(4, 8, *end[:5], True, end[5]), x), x
            )
            for end in _ENDS
        },
        lambda d, size=_size: (d.normal(*size),),
        terms=1024,
        deterministic=False,
    )


def _pool(kind: str, x: torch.Tensor, *given: Any, **more: Any) -> torch.Tensor:
    """Return what a pooling module of the rank of x answers."""
    return getattr(nn, f"{kind}Pool{x.dim() - 2}d")(*given, **more)(x)  # type: ignore[no-any-return]


# Pooling's modules to sides of none, one, and more than there are; and windows that reach over both ends.
_POOLED: dict[str, Any] = {
    **{
        f"adaptive-{kind}-{side}": lambda x, kind=kind, side=side: _pool(f"Adaptive{kind}", x, side)
        for kind in ("Avg", "Max")
        for side in (1, 3, 5, 11)
    },
    **{
        f"max-{'-'.join(map(str, given))}-{ceil}": lambda x, o=given, ceil=ceil: _pool("Max", x, *o, ceil_mode=ceil)
        for given in ((3, 1, 1, 2), (2, 3, 1, 1), (3, 2, 1, 1), (1, 2, 0, 1), (4, 4, 2, 1), (2, 1, 1, 4))
        for ceil in (False, True)
    },
    **{
        f"avg-{'-'.join(map(str, given))}-{ceil}-{count}": lambda x, o=(*given, ceil, count): _pool("Avg", x, *o)
        for given in ((3, 1, 1), (2, 3, 1), (3, 2, 1), (1, 2, 0), (4, 4, 2), (4, 3, 2))
        for ceil in (False, True)
        for count in (False, True)
    },
    **{
        f"divided-{k}-{n}": lambda x, k=k, n=n: _pool("Avg", x, k, 2, k // 2, divisor_override=n)
        for k in (2, 3)
        for n in (1, 3, 7)
    },
}


def _trained(form: Any, x: torch.Tensor) -> Any:
    return learned(nn.Identity(), x, form)


for _rank, _size in _SIDES.items():
    for _dtype in (torch.float32, torch.float16):
        add_table(
            cases,
            f"pools-{_rank}d-{str(_dtype)[6:]}",
            {
                name: lambda x, form=form: _trained(form, x)
                for name, form in _POOLED.items()
                if _rank > 1 or not name.startswith("divided")  # AvgPool1d has no such option
            },
            lambda d, size=_size, dtype=_dtype: ((d.distinct(*size) / 64).to(dtype),),
            terms=256,
            deterministic=False,
        )
