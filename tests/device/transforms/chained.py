"""A producer whose result lies unusually in memory, and the operator right after it."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from engine.calls import bring, cut, flatten, operands_of, target
from engine.description import Operator
from engine.reference import Truth
from engine.transformation import Call, Factor, Transformation

# Name: what travels for a tensor, and what makes that tensor of it on the device.
PRODUCERS: dict[str, Any] = {
    "transpose": (lambda x: x.transpose(0, -1).contiguous(), lambda b: b.transpose(0, -1)),
    "transposed_result": (lambda x: x.transpose(0, -1).contiguous(), lambda b: b.transpose(0, -1).clone()),
    "narrow": (lambda x: torch.cat([x, x]), lambda b: b.narrow(0, b.shape[0] // 2, b.shape[0] // 2)),
    "cat": (lambda x: x, lambda b: torch.cat([b[:1], b[1:]])),
    "chunk": (lambda x: torch.cat([x, x], -1), lambda b: b.chunk(2, -1)[-1]),
    "unbind": (lambda x: torch.stack([x, x], -1), lambda b: b.unbind(-1)[1]),
    "flip": (lambda x: x.flip(0), lambda b: b.flip(0)),
    "roll": (lambda x: x.roll(-1, 0), lambda b: b.roll(1, 0)),
    "gather": (lambda x: x.flip(0), lambda b: b.index_select(0, torch.arange(len(b) - 1, -1, -1, device=b.device))),
    "cut": (lambda x: F.pad(x, (1, 2)), lambda b: F.pad(b, (-1, -2))),
    "written": (lambda x: x, lambda b: _written(b)),
    "steps": (lambda x: x.repeat_interleave(2, -1), lambda b: b[..., ::2]),
    "real": (lambda x: torch.stack([x, x], -1), lambda b: torch.view_as_complex(b).real),
    "where": (lambda x: x, lambda b: torch.where(torch.ones_like(b, dtype=torch.bool), b, b)),
    "selected": (lambda x: x[None], lambda b: b[0]),
    "masked": (lambda x: x, lambda b: b[torch.ones_like(b, dtype=torch.bool)].view(b.shape)),
    "diagonal": (lambda x: torch.stack([x, x], 0), lambda b: b[[1]].squeeze(0)),
}


def _written(b: torch.Tensor) -> torch.Tensor:
    larger = b.new_zeros((*b.shape[:-1], b.shape[-1] + 3))
    larger[..., 1:-2] = b
    return larger[..., 1:-2]


class _Chained(Transformation):
    name, graphs = "chained", 2.3

    def factors(self, operator: Operator) -> list[Factor]:
        return [("@producer", tuple(PRODUCERS))]

    def perform(self, call: Call, run: Any, truth: Truth | None) -> list[Any]:
        views = [cut(one) for one in call.changed(layout0="dense").bases(run)]
        if not views or not isinstance(views[0], torch.Tensor) or not views[0].dim() or not views[0].numel():
            raise NotImplementedError("not implemented: its first operand has no dimension")
        before, produce = PRODUCERS[call.levels["@producer"]]
        travels = before(views[0])
        moved = [cut(one) for one in bring(run, [(travels, None, None), *call.bases(run)[1:]])]
        operands, args = operands_of(call.row, run, [produce(moved[0]), *moved[1:]])
        return flatten(target(call.operator, call.row)(*operands, **args))

    def chosen_from(self, call: Call, run: Any) -> list[Any]:
        return super().chosen_from(call.changed(layout0="dense"), run)


transformation = _Chained()
