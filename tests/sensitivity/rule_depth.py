"""How many roundings lie one behind the other in a call: what comes of one expression has one."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rounding import EXACT


class Depth(TorchDispatchMode):
    """Counts, for each tensor, the operators that round between the call's operands and it."""

    def __init__(self) -> None:
        super().__init__()
        self._depth: dict[int, int] = {}
        self._alive: list[torch.Tensor] = []  # an address is not given away again

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        answer = func(*args, **(kwargs or {}))
        schema = func._schema
        name = schema.name.split("::")[1].rstrip("_")
        views = any(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns)
        given = max(map(self.of, tensors([args, kwargs or {}])), default=0)
        for one in tensors(answer):
            rounds = name not in EXACT and not views and (one.is_floating_point() or one.is_complex())
            self._depth[id(one)] = given + rounds
            self._alive.append(one)
        return answer

    def of(self, x: torch.Tensor) -> int:
        """Return how many roundings made a tensor; none made an operand."""
        return self._depth.get(id(x), 0)


def tensors(value: Any) -> list[torch.Tensor]:
    """Return the tensors of nested lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in tensors(part)]
    return [value] if isinstance(value, torch.Tensor) else []


def rounds_once(func: Any, args: Any, kwargs: Any) -> bool:
    """Say whether each answer of a call is made by one operator that rounds, at most.

    Some gradients round several times, and a few numbers do not show it.
    """
    with Depth() as depth:
        answers = tensors(func(*args, **kwargs))
        return all(depth.of(one) <= 1 for one in answers)
