"""Rule 6: calls in place, one behind the other, on views of one memory: what is read after each is what lies there."""

from __future__ import annotations

from typing import Any

import torch

from ..layouts import Layout
from ..overloads.described import VIEWS, shape_of, texts

# How a chain goes: `again` calls on what earlier calls left; `anew` writes the first values back before each call, for
# what has no answer to its own answers (a logarithm of a logarithm).
MODES = ("again", "anew")
_CHAIN = "chain"
# Views that share rows with one another, and one that is called twice: the first call must not be remembered.
_CALLED = ("offset", "transposed", "overlapping", "steps", "offset")


def _memory(shape: Any) -> Any:
    if len(shape) == 1:
        return (2 * shape[0] + 4,)
    side = 2 * max(shape[0], shape[-1]) + 3
    return (side, *shape[1:-1], side)


# The memory itself is brought: a chain cuts its views by itself.
VIEWS.setdefault("chained", Layout("chained", _memory, lambda memory, shape: memory))


def mode_of(changes: list[Any]) -> str:
    """Return which chain a call's changes ask for, or an empty text."""
    return next((str(one[1]) for one in changes if one[0] == _CHAIN), "")


def views_of(memory: torch.Tensor, shape: Any) -> dict[str, torch.Tensor]:
    """Return views of a shape that share memory, none of which has two places in one element."""
    if len(shape) == 1:
        (count,) = shape
        return {
            "offset": memory[2 : count + 2],
            "transposed": memory[count : 2 * count],
            "overlapping": memory[count // 2 : count // 2 + count],
            "steps": memory[1::2][:count],
        }
    first, last = shape[0], shape[-1]
    return {
        "offset": memory[1 : first + 1, ..., 1 : last + 1],
        "transposed": memory.transpose(0, -1)[:first, ..., 2 : last + 2],
        "overlapping": memory[3 : first + 3, ..., :last],
        "steps": memory[1::2, ..., ::2][:first, ..., :last],
    }


class Chain:
    """An overload in a chain: it is called as the overload is, with the whole memory as the first operand."""

    def __init__(self, func: Any, shape: Any, mode: str) -> None:
        self._name, self._call, self._shape, self._anew = str(func), func, shape, mode == "anew"
        self._schema, self._overloadname = func._schema, func._overloadname

    def __str__(self) -> str:
        return self._name

    def calling(self, call: Any) -> Chain:
        """Return this chain, of another function."""
        self._call = call
        return self

    def __call__(self, memory: torch.Tensor, *operands: Any, **options: Any) -> list[torch.Tensor]:
        """Return, after each call, copies of the memory, of every view, and of what was expanded from a row of one."""
        views = views_of(memory, self._shape)
        read = [memory, *views.values(), views["transposed"][1:], views["offset"][:1].expand(self._shape)]
        first = memory.clone()
        found = []
        for name in _CALLED:
            if self._anew:
                memory.transpose(0, -1).copy_(first)
            self._call(views[name], *operands, **options)
            found += [one.clone() for one in read]
        return found


def chained(func: Any, call: Any, changes: list[Any]) -> Any:
    """Return the overload, or the chain of it that the changes ask for."""
    mode = mode_of(changes)
    return Chain(func, shape_of(texts(call.call)[0]), mode) if mode else func
