"""A program of public calls as data: its inputs, its steps, what it answers, and each as Python text."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Callable

import torch

# What a number or a word of a call may be; anything else cannot be written out.
_WORDS = (bool, str, type(None), type(Ellipsis))
_BINARY = {"__getitem__": "{0}[{1}]", "__setitem__": "{0}[{1}] = {2}"}


class Inexpressible(Exception):
    """This case cannot be written as public calls; the message says why."""


@dataclass(frozen=True)
class Ref:
    """A value of the program, by the expression that names it: `x0`, `r3`, `r3[1]`."""

    text: str

    @property
    def name(self) -> str:
        """Return the variable."""
        return self.text.partition("[")[0]


@dataclass(frozen=True)
class Device:
    """The device under test, as an argument."""


@dataclass(frozen=True)
class Step:
    """One call: the variable that holds its result, the function's public name, its arguments."""

    result: str
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    changes: bool = False  # it changes what it is given
    under: tuple[str, ...] = ()  # the contexts that it is called in

    @property
    def is_backward(self) -> bool:
        """Say whether the step fills the gradients of what its value was made of."""
        return self.name.rpartition(".")[2] == "backward"

    def refs(self) -> list[Ref]:
        """Return the values that the step reads."""
        return [one for one in leaves([self.args, self.kwargs]) if isinstance(one, Ref)]

    def text(self) -> str:
        """Return the step as a line of Python."""
        kind, _, last = self.name.rpartition(".")
        args = [literal(one) for one in self.args]
        if last in ("__get__", "__set__"):
            field = f"{args[0]}.{kind.rpartition('.')[2]}"
            done = field if last == "__get__" else f"{field} = {args[1]}"
        elif kind == "torch.Tensor" and last in _BINARY and not self.kwargs:
            key = self.args[1]
            inner = ", ".join(index(one) for one in key) if isinstance(key, tuple) and key else index(key)
            done = _BINARY[last].format(args[0], inner, *args[2:])
        else:
            named = [f"{key}={literal(value)}" for key, value in self.kwargs.items()]
            if kind == "torch.Tensor" and self.args and isinstance(self.args[0], Ref):
                done = f"{args[0]}.{last}({', '.join(args[1:] + named)})"
            else:
                done = f"{self.name}({', '.join(args + named)})"
        line = f"{self.result} = {done}" if self.result else done
        return f"with {', '.join(self.under)}: {line}" if self.under else line


@dataclass(frozen=True)
class Input:
    """One tensor of the host: its values, and how it is written where they are drawn anew."""

    value: torch.Tensor
    drawn: str = ""

    def text(self) -> str:
        """Return the expression that makes it."""
        numbers = mapped(self.value.tolist(), self._shortened)
        return self.drawn or f"torch.tensor({literal(numbers)}, dtype={self.value.dtype})" + (
            f".reshape({tuple(self.value.shape)})" if self.value.numel() == 0 else ""
        )

    def _shortened(self, number: Any) -> Any:
        """Return the shortest number that is the same in the tensor's dtype."""
        if not isinstance(number, float):
            return number
        digits = {torch.float32: 9, torch.float16: 5, torch.bfloat16: 4}.get(self.value.dtype, 17)
        return next(
            (
                short
                for count in range(1, digits)
                if (short := float(f"{number:.{count}g}")) == number
                or torch.tensor(short, dtype=self.value.dtype).item() == number
            ),
            float(f"{number:.{digits}g}"),
        )


@dataclass(frozen=True)
class Program:
    """Inputs by name, steps in order, the expressions of what is compared, and how far that may be off."""

    inputs: dict[str, Input]
    steps: tuple[Step, ...]
    answers: tuple[str, ...] = ()
    factor: float = 16.0

    def body(self) -> list[str]:
        """Return the lines of the function that asks."""
        return [step.text() for step in self.steps]

    def with_input(self, name: str, value: Input) -> Program:
        """Return the program with another input."""
        return replace(self, inputs={**self.inputs, name: value})

    def used(self) -> Program:
        """Return the program without the inputs that nothing reads."""
        names = {ref.name for step in self.steps for ref in step.refs()} | {Ref(one).name for one in self.answers}
        return replace(self, inputs={key: one for key, one in self.inputs.items() if key in names})


def leaves(value: Any) -> list[Any]:
    """Return what lies in nested containers and slices, in order."""
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in leaves(one)]
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in leaves(one)]
    if isinstance(value, slice):
        return leaves([value.start, value.stop, value.step])
    return [value]


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return nested containers with every leaf changed."""
    if isinstance(value, (tuple, list)):
        made = [mapped(one, change) for one in value]
        return tuple(made) if isinstance(value, tuple) else made
    if isinstance(value, dict):
        return {key: mapped(one, change) for key, one in value.items()}
    if isinstance(value, slice):
        return slice(mapped(value.start, change), mapped(value.stop, change), mapped(value.step, change))
    return change(value)


def index(value: Any) -> str:
    """Return an index as it stands between brackets."""
    if isinstance(value, slice):
        ends = ["" if one is None else literal(one) for one in (value.start, value.stop, value.step)]
        return ":".join(ends[: 3 if ends[2] else 2])
    return "..." if value is Ellipsis else literal(value)


def literal(value: Any) -> str:
    """Return a value as Python text.

    >>> literal((1, float("inf"), [True]))
    '(1, float("inf"), [True])'
    """
    if isinstance(value, Ref):
        return value.text
    if isinstance(value, Device):
        return "device"
    if isinstance(value, torch.dtype):
        wide = value.is_floating_point or value.is_complex
        return f"cast({value})" if wide else str(value)
    if isinstance(value, (float, complex)) and not isinstance(value, bool):
        return _number(value)
    if isinstance(value, (int, *_WORDS)):
        return repr(value)
    if isinstance(value, (torch.memory_format, torch.layout)):
        return str(value)
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return "{" + ", ".join(f"{key!r}: {literal(one)}" for key, one in value.items()) + "}"
    raise Inexpressible(f"an argument is a {type(value).__name__}")


def _number(value: Any) -> str:
    if isinstance(value, complex):
        return f"complex({_number(value.real)}, {_number(value.imag)})"
    return repr(value) if math.isfinite(value) else f'float("{value}")'
