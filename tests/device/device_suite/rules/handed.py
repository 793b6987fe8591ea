"""Rule 6: the answer of one overload is the very next operand of another: no copy and no other call in between."""

from __future__ import annotations

from typing import Any, Callable

import torch

from ..overloads.asking import flat_answers
from .asked import calls_of
from .asking import Called, ask_calls

TABLE = 64  # places of a table that an answer of small whole numbers may name

Consumer = Callable[[torch.Tensor], Any]


def _ramp(y: torch.Tensor) -> torch.Tensor:
    return torch.arange(y.numel(), device=y.device, dtype=torch.float32).reshape(y.shape)


def _table(y: torch.Tensor) -> torch.Tensor:
    return torch.arange(TABLE, device=y.device, dtype=torch.float32) / 4


# What takes a mask, whole numbers, places in a table.
CONSUMERS: dict[str, dict[str, Consumer]] = {
    "mask": {
        "all": lambda y: y.all(),
        "any": lambda y: y.any(),
        "all-last": lambda y: y.all(-1) if y.dim() else y.all(),
        "any-first": lambda y: y.any(0) if y.dim() else y.any(),
        "sum": lambda y: y.sum(),
        "count": lambda y: y.count_nonzero(),
        "nonzero": lambda y: y.nonzero(),
        "not": lambda y: ~y,
        "and": lambda y: y & y,
        "where": lambda y: torch.where(y, 2.0, -1.0),
        "fill": lambda y: _ramp(y).masked_fill(y, -3.0),
        "select": lambda y: _ramp(y).masked_select(y),
        "index": lambda y: _ramp(y)[y],
        "put": lambda y: _ramp(y).index_put_((y,), torch.tensor(5.0, device=y.device)) if y.dim() else y,
        "float": lambda y: y.float(),
        "scan": lambda y: y.cumsum(-1) if y.dim() else y.cumsum(0),
        "sort": lambda y: y.sort(dim=-1, stable=True)[1] if y.dim() else y,
        "mul": lambda y: _ramp(y) * y,
    },
    "whole": {
        "sum": lambda y: y.sum(),
        "float": lambda y: y.float(),
        "equal": lambda y: y == 1,
        "most": lambda y: y.max() if y.numel() else y,
        "sort": lambda y: y.sort(-1)[0] if y.dim() else y,
        "unique": lambda y: torch.unique(y),
        "scan": lambda y: y.cumsum(-1) if y.dim() else y.cumsum(0),
        "mul": lambda y: y * 3,
        "all": lambda y: y.all(),
    },
    "places": {
        "take": lambda y: _table(y).take(y),
        "index": lambda y: _table(y)[y],
        "select": lambda y: _table(y).index_select(0, y.reshape(-1)),
        "gather": lambda y: _table(y).gather(0, y.reshape(-1)),
        "embedding": lambda y: torch.nn.functional.embedding(y, _table(y)[:, None]),
        "one-hot": lambda y: torch.nn.functional.one_hot(y, TABLE),
        "count": lambda y: torch.bincount(y.reshape(-1), minlength=TABLE),
        "scatter": lambda y: torch.zeros(TABLE, device=y.device).scatter_(0, y.reshape(-1), 1.0),
        "add": lambda y: torch.zeros(TABLE, device=y.device).index_add_(0, y.reshape(-1), _ramp(y.reshape(-1))),
        "fill": lambda y: _table(y).index_fill(0, y.reshape(-1), -2.0),
        "put": lambda y: _table(y).index_put((y,), torch.tensor(5.0, device=y.device)),
    },
}


class Handed:
    """An overload whose answer each consumer gets, of a call of its own; it is called as the overload is."""

    def __init__(self, func: Any, kind: str) -> None:
        self._call, self._kind = func, kind
        self._schema, self._overloadname = func._schema, func._overloadname

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Return what the consumers answer."""
        return [consume(taken(self._call(*args, **kwargs))) for consume in CONSUMERS[self._kind].values()]


def taken(answer: Any) -> torch.Tensor:
    """Return the mask, or the whole numbers, of an answer.

    Raises:
        TypeError: it has none.
    """
    for one in flat_answers(answer):
        if isinstance(one, torch.Tensor) and one.dtype in (torch.bool, torch.int64):
            return one
    raise TypeError("no mask and no whole numbers")


def handed(func: Any, changes: list[Any]) -> Handed:
    """Return the overload with its consumers, as the changes of a call say."""
    return Handed(func, next(str(one[1]) for one in changes if one[0] == "handed"))


def ask_handed(overloads: list[Any], bench: Any) -> Any:
    """Ask what other overloads make of each answer."""
    return ask_calls(
        [Called(name, handed(func, changes), call, changes) for name, func, call, changes in calls_of(overloads)], bench
    )
