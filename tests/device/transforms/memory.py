"""Memory beside the operands and the result, and operands that are only read: all of it stays bit for bit."""

from __future__ import annotations

from typing import Any

import torch

from engine import reference
from engine.calls import perform
from engine.description import Operator
from engine.reference import Truth
from engine.transformation import Call, Transformation

_BESIDE = 64


class _Memory(Transformation):
    name, forms, graphs = "memory", ("call", "inplace", "out"), 1.8

    def forms_of(self, operator: Operator) -> tuple[str, ...]:
        return super().forms_of(operator) if operator.act is None else ("call",) if "call" in operator.forms else ()

    def reference(self, call: Call, run: Any) -> Truth:
        found = reference.reference(call.operator, call.row, run)
        return Truth([*found.answers, True], found.forms)

    def perform(self, call: Call, run: Any, truth: Truth | None) -> list[Any]:
        placed = [call.bases(run), call.places(truth)]
        held: list[Any] = []
        inside = [[_amid(one, held, run) for one in part] for part in placed]
        before = [one.clone() for one in held]
        answers = perform(call.operator, call.row, run, *inside)
        form = call.levels["@form"]
        written = [0] if form == "inplace" else list(range(len(held) - len(placed[1]), len(held)))
        written = written if form != "call" else []
        intact = all(_is_intact(*pair, number in written) for number, pair in enumerate(zip(held, before)))
        return [*answers, intact]


def _amid(placed: Any, held: list[Any], run: Any) -> Any:
    """Return an operand that lies on its device already, in the middle of a longer line."""
    base, layout, shape = placed
    if not isinstance(base, torch.Tensor):
        return placed
    line = torch.full((base.numel() + 2 * _BESIDE,), 1, dtype=base.dtype)
    line[_BESIDE : _BESIDE + base.numel()] = base.reshape(-1)
    line = line.to(run.device)
    held.append(line)
    inner = line[_BESIDE : _BESIDE + base.numel()].view(base.shape)
    return inner, layout, shape


def _is_intact(now: torch.Tensor, before: torch.Tensor, written: bool) -> bool:
    parts = [(now[:_BESIDE], before[:_BESIDE]), (now[-_BESIDE:], before[-_BESIDE:])] if written else [(now, before)]
    return all(torch.equal(_bits(one), _bits(two)) for one, two in parts)


def _bits(x: torch.Tensor) -> torch.Tensor:
    x = x.detach().cpu()
    return (torch.view_as_real(x) if x.is_complex() else x).contiguous().view(torch.uint8)


transformation = _Memory()
