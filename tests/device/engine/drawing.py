"""Draws one row's operands on the host: bases, and how a view is cut out of each on the device."""

from __future__ import annotations

import math
from typing import Any

import torch

from .description import VIEWS, Operator, Row
from .pools import LENGTH, SINGLE_PERIOD, SINGLE_PLACE, SINGLES, expression, pool, precise_pool

# (base, layout, shape of the view); without a layout the base is the operand: a number, a list of tensors.
Placed = Any
_POOLED = (
    *(torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
)


# Of more elements, two of each are not drawn.
_MOST_REPEATED = 4_000


class Context:
    """One row while its operands are drawn; `precise` draws the same values in float64."""

    def __init__(self, operator: Operator, row: Row, *, precise: bool = False) -> None:
        self.operator, self.row, self.precise = operator, row, precise
        self.dtype: torch.dtype = row.levels["@dtype"]
        self.shape = row.shape(operator)
        self.args = row.args(lambda dtype: dtype)
        self._turn = 0
        self._is_once = False

    def draw(
        self, domain: str, shape: Any, dtype: torch.dtype | None = None, values: str | None = None
    ) -> torch.Tensor:
        """Return a fresh dense tensor out of a pool; each call of a row starts at another place."""
        self._turn += 1
        count = math.prod(shape)
        start = 1013 * self._turn + 7 * (self.row.number % 97)
        values = values or self.row.levels["@values"]
        if values in SINGLES:
            start += (SINGLE_PLACE - count * 2 // 3 - start) % SINGLE_PERIOD
        start = start if start + count <= LENGTH else 0
        source = (precise_pool if self.precise else pool)(dtype or self.dtype, domain, values)
        made = source[start : start + count].reshape(shape).clone()
        if not (dtype or self.dtype).is_complex:  # whose formula rolls the whole pool
            made.formula = (start, expression(dtype or self.dtype, domain, values))
        return made

    def indices(self, below: int, shape: Any) -> torch.Tensor:
        """Return indices below a number, in no order; they repeat where there are more of them."""
        self._turn += 1
        count = math.prod(shape)
        return (torch.arange(self._turn, self._turn + count) * 7919 % 65551 % max(below, 1)).reshape(shape)

    def at(self, found: torch.Tensor, side: int) -> torch.Tensor:
        """Return indices below `side` as the row wants them: of another dtype, from the end, all alike, in order."""
        how = self.args.get("_at")
        if how == "equal" and self._is_once:
            return found
        if how == "negative":
            return found - side
        if how == "equal":
            return torch.full_like(found, max(side - 1, 0))
        if how == "sorted":
            return found.reshape(-1).sort()[0].reshape(found.shape)
        if how == "none":
            return found[:0] if found.dim() else found
        return found.to(how) if isinstance(how, torch.dtype) else found

    def once(self) -> None:
        """Say that the indices which a description draws name each place once, so that the order of writes is free."""
        self._is_once = True

    def unique(self, below: int, count: int) -> torch.Tensor:
        """Return different indices below a number, in no order."""
        self.once()
        every = torch.arange(below)
        return (every * 3 % below if below % 3 else every.flip(0))[:count].clone()

    def bases(self) -> list[Placed]:
        """Return what travels for each operand."""
        found = []
        for number, operand in enumerate(self.operator.operands):
            layout = VIEWS[self.row.levels.get(f"@layout{number}", "dense")]
            if callable(operand):
                self._is_once = False
                made = operand(self)
                # Expanded, they would all be one index.
                found.append(self._placed(made, VIEWS["dense"] if self._is_once and not layout.writable else layout))
                continue
            domain, _, sides = operand.partition(":")
            shape = self._shape(sides)
            dtype = torch.bool if domain == "mask" else self.args.get("_with") if number else None
            found.append((self.draw("any" if domain == "mask" else domain, layout.base(shape), dtype), layout, shape))
        return found

    def places(self, forms: list[tuple[Any, torch.dtype]]) -> list[Placed]:
        """Return what travels for out=, or for the gradients of the answers, given the answers' forms."""
        varied = self.operator.layout_operands
        layout = VIEWS[self.row.levels[f"@layout{varied[0]}"] if varied else "dense"]
        written = self.row.levels["@form"] == "out"
        values = "plain" if self.row.levels["@values"] in ("special", "inf", *SINGLES) else None
        found: list[Placed] = []
        for shape, dtype in forms:
            if written and not layout.writable:  # an out= without elements: the operator gives it its size
                found.append((torch.zeros((0,), dtype=dtype), VIEWS["dense"], (0,)))
            elif dtype in _POOLED:
                found.append((self.draw("any", layout.base(shape), dtype, values), layout, shape))
            else:
                found.append((torch.ones(layout.base(shape), dtype=dtype), layout, shape))
        return found

    def _shape(self, sides: str) -> tuple[int, ...]:
        how = self.args.get("_cast")
        if sides == "cast" and how is not None and self.shape:
            forms: dict[str, tuple[int, ...]] = {
                "row": self.shape[-1:],
                "column": (*self.shape[:-1], 1),
                "none": (),
                "ones": (1,) * len(self.shape),
                "more": (2, *self.shape) if math.prod(self.shape) < _MOST_REPEATED else self.shape,
            }
            return forms[how]
        if not sides or sides == "cast":
            return self.shape
        return tuple(self.shape[int(one)] for one in sides.split(","))

    def _placed(self, made: Any, layout: Any) -> Placed:
        """Return an operand that a description drew itself, spread so that its view in the layout has its values."""
        if not isinstance(made, torch.Tensor):
            return _widened(made, self.precise), None, None
        shape = tuple(made.shape)
        value = _widened(made, self.precise)
        if layout.name == "contiguous":
            return value, layout, shape
        base = torch.zeros(layout.base(shape), dtype=value.dtype)
        if value.numel() and (layout.writable or not shape):
            layout.cut(base, shape).copy_(value)
        elif value.numel():
            base.copy_(value[:1])
        return base, layout, shape


def _widened(value: Any, precise: bool) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_widened(one, precise) for one in value)
    if not precise or not isinstance(value, torch.Tensor):
        return value
    return value.to(widest(value.dtype))


def widest(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of the reference: float64 and complex128; whole numbers stay."""
    return torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else dtype


def narrowed(dtype: torch.dtype, row: Row) -> torch.dtype:
    """Return the dtype that the device should give where the reference gives this one."""
    if dtype == torch.complex128:
        return torch.complex64
    if dtype != torch.float64:
        return dtype
    wanted, own = row.levels.get("dtype"), row.levels["@dtype"]
    if isinstance(wanted, torch.dtype) and wanted.is_floating_point:
        return wanted
    beside = row.levels.get("_with")  # whole numbers beside it take its dtype
    if not own.is_floating_point and isinstance(beside, torch.dtype) and beside.is_floating_point:
        return beside
    return own if own.is_floating_point else torch.float32  # type: ignore[no-any-return]
