"""Operators as data: how each is spelled, what it takes, what it promises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Iterator

import torch

from .draws import Draw

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@dataclass(frozen=True)
class Arg:
    """One tensor operand: its shape in letters and digits ("b c h w", "r 3"), and how it is drawn.

    A fixed one stays plain in every layout.
    """

    shape: str
    draw: Callable[[Draw, torch.dtype, tuple], torch.Tensor] | str = "any"  # type: ignore[type-arg]
    dtype: torch.dtype | None = None
    fixed: bool = False

    def make(self, d: Draw, dtype: torch.dtype, shape: tuple) -> torch.Tensor:  # type: ignore[type-arg]
        """Return the operand's base of that shape."""
        own = self.dtype or dtype
        return DOMAINS[self.draw](d, own, shape) if isinstance(self.draw, str) else self.draw(d, own, shape)


def _between(low: float, high: float) -> Callable[..., torch.Tensor]:
    def draw(d: Draw, dtype: torch.dtype, shape: Any) -> torch.Tensor:
        if dtype.is_floating_point:
            return d.uniform(low, high, *shape, dtype=dtype)
        return d.integers(max(int(low), 1), max(int(high), 2) + 1, *shape, dtype=dtype)

    return draw


DOMAINS: dict[str, Callable[..., torch.Tensor]] = {
    "any": lambda d, dtype, shape: d.of(dtype, *shape),
    "positive": _between(0.25, 3),
    "unit": _between(-0.9, 0.9),
    "inner": _between(0.1, 0.9),
    "above_one": _between(1.25, 4),
    "quarters": lambda d, dtype, shape: (d.integers(-20, 21, *shape) / (4 if dtype.is_floating_point else 1)).to(dtype),
    "halves": lambda d, dtype, shape: (d.integers(1, 6, *shape) / (2 if dtype.is_floating_point else 1)).to(dtype),
    "distinct": lambda d, dtype, shape: d.distinct(*shape, dtype=dtype),
    "bool": lambda d, dtype, shape: d.bools(*shape),
}


@dataclass(frozen=True)
class Op:
    """An operator: how it is spelled, what it takes, where its layouts make sense.

    Attributes:
        forms: spellings that must agree: torch.f, Tensor.f, F.f; the first is the one that out= and gradients take.
        inplace: the in-place spelling, which gets the first operand's view.
        out: a function with `out=`.
        grads: operands that get a gradient; None is all floating ones, () none.
        pointwise: also asked without dimensions, with four dimensions, and with 65,543 rows.
        empty: the letter that is 0 in the layout "empty"; "" skips it.
    """

    name: str
    args: tuple[Arg, ...]
    forms: tuple[Callable[..., Any], ...]
    inplace: Callable[..., Any] | None = None
    out: Callable[..., Any] | None = None
    grads: tuple[int, ...] | None = None
    dtypes: tuple[torch.dtype, ...] = FLOATS
    terms: int = 1
    factor: float = 4.0
    since: str | None = None
    pointwise: bool = False
    tall: bool = False
    empty: str = ""
    expanded: bool = True
    deterministic: bool = True
    anywhere: bool = False
    devices: tuple[str, ...] = ()


def spellings(name: str, *more: Any, methods: bool = True, **options: Any) -> tuple[Callable[..., Any], ...]:
    """Return every public spelling of a function that this torch has: torch.f, F.f, Tensor.f; looked up at the call.

    `more` and `options` are passed on after the operands.
    """
    homes = [torch, torch.nn.functional] + ([torch.Tensor] if methods else [])
    found = []
    for home in homes:
        if hasattr(home, name):
            found.append(_late(home, name, more, options))
    if not found:
        raise AttributeError(f"this torch has no {name}")
    return tuple(found)


def _late(home: Any, name: str, more: Any, options: Any) -> Callable[..., Any]:
    def call(*operands: Any, **out: Any) -> Any:
        return getattr(home, name)(*operands, *more, **options, **out)

    return call


# Functions of `torch` that take no out=.
_WITHOUT_OUT = (
    *("selu", "celu", "relu", "positive", "threshold", "isnan", "isinf", "isfinite", "where", "hardshrink", "rrelu"),
    *("prelu", "sigmoid_focal_loss", "true_divide_scalar"),
)


def pointwise(name: str, *domains: str, more: tuple[Any, ...] = (), **fields: Any) -> Op | None:
    """Return a pointwise operator with all its spellings, in-place form and out=; None where this torch lacks it."""
    options = fields.pop("options", {})
    out = name not in _WITHOUT_OUT
    label = fields.pop("label", name)
    try:
        forms = spellings(name, *more, **options)
    except AttributeError:
        return None
    args = tuple(Arg("r n", domain) for domain in domains)
    if hasattr(torch.Tensor, name + "_"):
        fields.setdefault("inplace", _late(torch.Tensor, name + "_", more, options))
    if out and hasattr(torch, name):
        fields.setdefault("out", _late(torch, name, more, options))
    return replace(Op(name=label, args=args, forms=forms, pointwise=True, empty="r"), **fields)


def present(*ops: Op | None) -> Iterator[Op]:
    """Return the operators that this torch has."""
    return (op for op in ops if op is not None)
