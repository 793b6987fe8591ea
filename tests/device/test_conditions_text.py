"""How a tensor is written as text: special numbers, scales, sizes, views, options; without its device and dtype."""

from __future__ import annotations

import re
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.limits import add_table

cases = Cases("conditions")
_AT = re.compile(r",\s*(device='[^']*'|dtype=torch\.\w+)")


def _text(y: Any) -> str:
    """Return a text without the device and the dtype: the reference has others."""
    return re.sub(r"\s+", " ", _AT.sub("", repr(y)))


def _with(y: torch.Tensor, **options: Any) -> str:
    try:
        torch.set_printoptions(**options)
        return _text(y)
    finally:
        torch.set_printoptions(profile="default")


def _numbers(x: torch.Tensor, *numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=x.dtype, device=x.device)


# x has a shape of (4, 6); its numbers are quarters of whole ones.
_FORMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "whole": lambda x: _text(x.round()),
    "quarters": lambda x: [_text(x), str(_AT.sub("", str(x.t()))), _text(x[1:, ::2])],
    "number": lambda x: [_text(x[1, 2]), f"{x[1, 2]}", f"{x[1, 2].item():.3f}", f"{x[1, 2]:.2f}"],
    "nothing": lambda x: [_text(x[:0]), _text(x[:, :0]), _text(x.new_zeros(0)), _text(x.new_zeros(2, 0, 3))],
    "special": lambda x: _text(_numbers(x, float("nan"), float("inf"), -float("inf"), 1.5, -0.0)),
    "special-whole": lambda x: _text(_numbers(x, float("nan"), 2.0, float("-inf"))),
    "special-alone": lambda x: [_text(_numbers(x, n)) for n in (float("nan"), float("inf"), -0.0, 0.0)],
    "special-number": lambda x: [f"{_numbers(x, n)[0]}" for n in (float("nan"), float("inf"), -float("inf"))],
    "large": lambda x: [_text(_numbers(x, 2.0**12, 1.0)), _text(_numbers(x, 2.0**15, 0.25))],
    "small": lambda x: [_text(_numbers(x, 2.0**-12, 1.0)), _text(_numbers(x, 2.0**-10, 2.0**-12))],
    "wide": lambda x: _text(_numbers(x, 2.0**-8, 2.0**14)),
    "zeros": lambda x: [_text(x * 0), _text(torch.zeros_like(x, dtype=torch.int64)), _text(x > 99)],
    "many": lambda x: [_text(x.round().repeat(20, 20)), _text(x.round().flatten().repeat(60))],
    "deep": lambda x: _text(x.reshape(2, 2, 3, 2)),
    "expanded": lambda x: [_text(x[:1].expand(3, 6)), _text(x[0, 0].expand(2, 2))],
    "integers": lambda x: [_text((x * 4).to(kind)) for kind in (torch.int64, torch.int8, torch.int32)],
    "bools": lambda x: [_text(x > 0), f"{(x > 0)[0, 0]}"],
    "complex": lambda x: _text(torch.complex(x.float(), x.flip(0).float())),
    "complex-conj": lambda x: _text(torch.complex(x.float(), x.flip(0).float()).conj()[1:]),
    "wanted": lambda x: [_text(leaf(x.clone())), _text(-leaf(x.clone())), _text(torch.nn.Parameter(x))],
    "precision": lambda x: [_with(x, precision=1), _with(x, precision=6), _with(x, sci_mode=True)],
    "edges": lambda x: [_with(x, threshold=5, edgeitems=1), _with(x.reshape(2, 2, 6), threshold=3, edgeitems=2)],
    "lines": lambda x: [_with(x, linewidth=30), _with(x, profile="full"), _with(x, profile="short")],
    "list": lambda x: [_text([x[0], x[:, 0]]), _text({"a": x[0, 0]})],
    "sizes": lambda x: [repr(x.shape), repr(x.size()), str(x[:, :0].shape), f"{x.shape}", repr(x[0, 0].shape)],
}
for _dtype in (torch.float32, torch.float16):
    add_table(
        cases,
        f"text-{str(_dtype)[6:]}",
        _FORMS,
        lambda d, dtype=_dtype: ((d.integers(-40, 40, 4, 6) / 4).to(dtype),),
        since="2.1",
    )
