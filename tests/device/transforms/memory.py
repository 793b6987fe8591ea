"""Memory beside the operands and the result, and operands that are only read: all of it stays bit for bit."""

from __future__ import annotations

from typing import Any

import torch

from engine import reference
from engine.calls import perform
from engine.compare import Mismatch
from engine.description import Operator
from engine.reference import Truth, own_answers
from engine.states import Refused
from engine.transformation import Call, Transformation

_BESIDE = 64


class _Memory(Transformation):
    name, forms, graphs = "memory", ("call", "inplace", "out"), 1.8
    share = 0.6
    relayout = False

    def forms_of(self, operator: Operator) -> tuple[str, ...]:
        return super().forms_of(operator) if operator.act is None else ("call",) if "call" in operator.forms else ()

    def reference(self, call: Call, run: Any) -> Truth:
        found = reference.reference(call.operator, call.row, run)
        return Truth([*found.answers, torch.tensor(0)], found.forms)

    def perform(self, call: Call, run: Any, truth: Truth | None) -> list[Any]:
        placed = [call.bases(run), call.places(truth)]
        held: list[Any] = []
        inside = [[_between(one, held, run) for one in placed[0]]]
        read = len(held)
        inside.append([_between(one, held, run) for one in placed[1]])
        before = [one.clone() for one in held]
        answers = perform(call.operator, call.row, run, *inside)
        form = call.levels["@form"]
        written = [0] if form == "inplace" else list(range(read, len(held)))
        written = written if form != "call" else []
        changed = [_changed(*pair, number in written) for number, pair in enumerate(zip(held, before))]
        return [*answers, torch.stack([torch.tensor(0), *changed]).sum().to(run.device)]

    def judge(self, call: Call, bench: Any, truth: Truth, answer: Any) -> Any:
        try:
            return super().judge(call, bench, truth, answer)
        except Mismatch:
            # The losses grow their out= for a while, into what lies behind it (Loss.cpp, soft_margin_loss_out).
            if not isinstance(answer, Exception) and int(own_answers(truth)[-1][0]):
                raise Refused("the CPU writes beside its operands, too") from None
            raise


def _between(placed: Any, held: list[Any], run: Any) -> Any:
    """Return an operand that lies on its device already, in the middle of a longer line."""
    base, layout, shape = placed
    if not isinstance(base, torch.Tensor) or shape == (0,):  # an out= to be resized: it may grow into its line
        return placed
    line = torch.full((base.numel() + 2 * _BESIDE,), 1, dtype=base.dtype)
    line[_BESIDE : _BESIDE + base.numel()] = base.reshape(-1)
    line = line.to(run.device)
    held.append(line)
    inner = line[_BESIDE : _BESIDE + base.numel()].view(base.shape)
    return inner, layout, shape


def _changed(now: torch.Tensor, before: torch.Tensor, written: bool) -> torch.Tensor:
    """Return how many bytes are others, between the lines' ends where what lies there is written."""
    now, before = now.detach(), before.detach()
    if written:
        now, before = (torch.cat([one[:_BESIDE], one[-_BESIDE:]]) for one in (now, before))
    return (_bits(now) != _bits(before)).sum()


def _bits(x: torch.Tensor) -> torch.Tensor:
    x = x.cpu()
    return (torch.view_as_real(x) if x.is_complex() else x).view(torch.uint8)


transformation = _Memory()
