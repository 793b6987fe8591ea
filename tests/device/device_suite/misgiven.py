"""Calls of public functions with one argument given wrongly: by rule, for each argument of a call that is right."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, Iterator

import torch

_FAR = 19


@dataclass(frozen=True)
class Call:
    """A call that is right: `@x` among its arguments stands for the tensor x."""

    path: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def tensors(self) -> tuple[str, ...]:
        """Return the names of the tensors, in order."""
        texts = (*self.args, *self.kwargs.values(), *(one for value in self.args if value == ("@x",) for one in value))
        return tuple(sorted({one[1:] for one in texts if isinstance(one, str) and one.startswith("@")}))

    def made(self, tensors: dict[str, torch.Tensor]) -> Any:
        """Return the answer; the function is looked up each time."""
        path = self.path.replace("F.", "nn.functional.") if self.path.startswith("F.") else self.path
        function: Any = functools.reduce(getattr, path.split("."), torch)

        def given(value: Any) -> Any:
            return tensors[value[1:]] if isinstance(value, str) and value.startswith("@") else value

        args = [[given(one) for one in value] if value == ("@x",) else given(value) for value in self.args]
        return function(*args, **{key: given(value) for key, value in self.kwargs.items()})


def call(path: str, *args: Any, **kwargs: Any) -> Call:
    """Return a call: of torch, or of what a path such as `F.pad` names."""
    return Call(path, args, kwargs)


def misgiven(right: Call) -> Iterator[tuple[str, Call]]:
    """Give each way to give one argument wrongly, with its name; whether it is refused says the CPU."""
    yield "unknown", Call(right.path, right.args, {**right.kwargs, "no_such": 1})
    yield "more", Call(right.path, (*right.args, "more"), right.kwargs)
    for place, value in enumerate(right.args):
        for name, wrong in _wrong(value):
            args = (*right.args[:place], wrong, *right.args[place + 1 :])
            yield f"{place}-{name}", Call(right.path, args, right.kwargs)
    for key, value in right.kwargs.items():
        for name, wrong in _wrong(value):
            yield f"{key}-{name}", Call(right.path, right.args, {**right.kwargs, key: wrong})


def _wrong(value: Any) -> Iterator[tuple[str, Any]]:
    if value == ("@x",):
        yield "none", ()
        yield "number", (3,)
    elif isinstance(value, tuple):
        yield "shorter", value[:-1]
        yield "longer", (*value, value[-1])
        yield "much-longer", value * 3
        yield "none", ()
        yield "twice", (value[-1], *value[1:])
        yield "past", (_FAR, *value[1:])
        yield "last-past", (*value[:-1], _FAR)
        yield "below", (-_FAR, *value[1:])
        yield "negative", (*value[:-1], -1)
        yield "zero", (0, *value[1:])
        yield "fraction", (value[0] + 0.5, *value[1:])
    elif isinstance(value, str):
        yield ("number", 3) if value.startswith("@") else ("unknown", "no such")
        yield "nothing", [] if value.startswith("@") else 1.5
    elif isinstance(value, int) and not isinstance(value, bool):
        yield "past", _FAR
        yield "below", -_FAR
        yield "negative", -1
        yield "zero", 0
        yield "fraction", value + 0.5
        yield "text", str(value)
