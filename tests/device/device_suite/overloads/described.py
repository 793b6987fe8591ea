"""A call of an overload as data: `calls.json` holds, for each overload, lists of arguments in which tensors are texts.

A tensor is "@float32 2x3 step -4 4": dtype, shape ("-" without dimensions), layout, least and greatest value.
"@dtype float16", "@device", "@number inf" and "@complex 1 2" stand for what JSON does not have.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable

import torch

from ..layouts import LAYOUTS, Layout

VIEWS = {"dense": LAYOUTS["contiguous"], "step": LAYOUTS["step2"], **LAYOUTS}
_LENGTH = 65_551
_SMALL = 256


def is_tensor(value: Any) -> bool:
    """Say whether a described argument is a tensor.

    >>> is_tensor("@float32 2x3 dense 0 1"), is_tensor("@dtype float32"), is_tensor("sum")
    (True, False, False)
    """
    return isinstance(value, str) and value.startswith("@") and value.count(" ") == 4


def dtype_of(text: str) -> torch.dtype:
    """Return the dtype of a described tensor."""
    found: torch.dtype = getattr(torch, text[1:].partition(" ")[0])
    return found


def shape_of(text: str) -> tuple[int, ...]:
    """Return the shape of a described tensor."""
    sides = text.split(" ")[1]
    return () if sides == "-" else tuple(map(int, sides.split("x")))


def tensor_text(dtype: Any, shape: Any, layout: str, low: float, high: float) -> str:
    """Return the description of a tensor."""
    sides = "x".join(map(str, shape)) or "-"
    return f"@{str(dtype).replace('torch.', '')} {sides} {layout} {low:g} {high:g}"


def changed(value: Any, change: Callable[[str], Any]) -> Any:
    """Return described arguments with every tensor's text replaced."""
    if is_tensor(value):
        return change(value)
    if isinstance(value, list):
        return [changed(one, change) for one in value]
    return {key: changed(one, change) for key, one in value.items()} if isinstance(value, dict) else value


def texts(value: Any) -> list[str]:
    """Return the tensors' texts, in order."""
    found: list[str] = []
    changed(value, lambda text: found.append(text) or text)  # type: ignore[func-returns-value]
    return found


class Drawn:
    """One call with the host's tensors, drawn once; every run gets copies of them."""

    def __init__(self, call: Any, number: int, choices: Callable[[list[Any]], tuple[int, torch.Tensor]] | None = None):
        """`choices`: (positional arguments) -> (place, values) of an argument that follows from the others."""
        self.call, self._number, self._choices = call, number, choices

    @functools.cached_property
    def bases(self) -> list[torch.Tensor]:
        """Return the tensors of which the call's are views, in order, on the host."""
        bases = [
            values(dtype_of(text), _layout_of(text).base(shape_of(text)), *map(float, text.split(" ")[3:]), turn)
            for turn, text in enumerate(texts(self.call), start=self._number + 1)
        ]
        self._choose(bases)
        return bases

    def _choose(self, bases: list[torch.Tensor]) -> None:
        """Write the operand that follows from the others."""
        if self._choices is not None:
            args, _ = self.arguments(bases, torch.device("cpu"), lambda dtype: dtype)
            place, chosen = self._choices(args)
            args[place].copy_(chosen)  # a view of its base

    def arguments(self, bases: list[torch.Tensor], device: Any, cast: Any) -> tuple[Any, Any]:
        """Return (args, kwargs): views of these bases put in, dtypes and devices as the run has them."""
        waiting = iter(bases)

        def made(value: Any) -> Any:
            if is_tensor(value):
                return _layout_of(value).cut(next(waiting), shape_of(value))
            if isinstance(value, list):
                return [made(one) for one in value]
            if isinstance(value, dict):
                return {key: made(one) for key, one in value.items()}
            return plain(value, device, cast)

        return made(self.call[0]), made(self.call[1])


def _layout_of(text: str) -> Layout:
    return VIEWS[text.split(" ")[2]]


def values(dtype: torch.dtype, shape: Any, low: float, high: float, turn: int) -> torch.Tensor:
    """Return values between two, in no order; whole numbers for integers, both ends of a range among them."""
    count = math.prod(shape)
    if count <= _SMALL:
        return _small_line(dtype, count, low, high, turn).reshape(shape).clone()
    if count <= _LENGTH // 4:
        return _line(dtype, count, low, high, turn).reshape(shape)
    period = _whole_line(dtype, _LENGTH, low, high, turn)
    if count <= _LENGTH:
        return period[:count].reshape(shape).clone()
    return period.repeat(-(-count // _LENGTH))[:count].reshape(shape)


def _line(dtype: torch.dtype, count: int, low: float, high: float, turn: int) -> torch.Tensor:
    """Return the first values: behind _LENGTH of them they come again."""
    begin = 31 * turn % _LENGTH
    places = _places()[begin : begin + count]
    if dtype == torch.bool:
        return places % 3 == 0 if low < high else places >= 0 if low else places < 0
    if dtype.is_complex:
        parts = [low + (high - low) * ((places + step) % _LENGTH) / _LENGTH for step in (0, 5003)]
        return torch.complex(*parts).to(dtype)
    if dtype.is_floating_point:
        return (low + (high - low) * places / _LENGTH).to(dtype)
    least = max(int(low), torch.iinfo(dtype).min)
    most = max(min(int(high), torch.iinfo(dtype).max), least)
    return (places % (most - least + 1) + least).to(dtype)


_small_line = functools.lru_cache(maxsize=4096)(_line)  # most operands are small, and alike
_whole_line = functools.lru_cache(maxsize=16)(_line)  # of one overload several calls are long


@functools.lru_cache(maxsize=None)
def _places() -> torch.Tensor:
    """Return numbers below _LENGTH in no order, twice behind each other."""
    return (torch.arange(2 * _LENGTH) * 7919) % _LENGTH


def plain(value: Any, device: Any, cast: Callable[[torch.dtype], torch.dtype]) -> Any:
    """Return an argument that is not a tensor."""
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    kind, _, rest = value[1:].partition(" ")
    if kind == "dtype":
        return cast(getattr(torch, rest))
    if kind == "format":
        return getattr(torch, rest)
    if kind == "complex":
        return complex(*map(float, rest.split()))
    return device if kind == "device" else float(rest)


def overload(name: str) -> Any:
    """Return torch.ops.aten's overload by its name, or None where this torch has it not."""
    packet, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet, None), rest, None)
