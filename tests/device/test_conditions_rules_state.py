"""Rule 6, state: overloads in place on views of one memory; modules of one class trained and asked in turn."""

from __future__ import annotations

import copy
from typing import Any

import torch

from device_suite import Cases
from device_suite.acts import leaf, uneven
from device_suite.answers import attempt
from device_suite.limits import ONCE
from device_suite.rules.asked import add_rule
from device_suite.rules.asking import ask_answered
from device_suite.rules.modules import MODULES, Kind

cases = Cases("conditions")


add_rule(cases, "chains", ask_answered, since="2.6")

_SIZES = {"first": 4, "wide": 6, "twin": 4, "half": 4}


def _floats(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    return [one for part in value for one in _floats(part)] if isinstance(value, (tuple, list)) else []


class _Asked:
    """A module with its operands: what it keeps must change by its own steps alone."""

    def __init__(self, module: torch.nn.Module, operands: list[torch.Tensor]) -> None:
        self.module, self.operands = module, operands
        learns = list(module.parameters())
        self.optimiser = torch.optim.SGD(learns, lr=0.05, momentum=0.5) if learns else None

    def trained(self) -> list[Any]:
        """Make a step, and return the answers, and the gradient of the first operand."""
        self.module.train()
        self.module.zero_grad()
        first, *others = self.operands
        first = leaf(first) if first.is_floating_point() else first
        answers = _floats(self.module(first, *others))
        sum((one * uneven(one)).sum() for one in answers).backward()
        if self.optimiser is not None:
            self.optimiser.step()
        return [answers, first.grad]

    def told(self) -> list[torch.Tensor]:
        """Return what it answers, in eval mode and without a tape."""
        self.module.eval()
        with torch.no_grad():
            return _floats(self.module(*self.operands))

    def kept(self) -> list[torch.Tensor]:
        """Return what it keeps."""
        return [one.clone() for one in self.module.state_dict().values() if isinstance(one, torch.Tensor)]


def _made(run: Any, kind: Kind, name: str, operands: list[torch.Tensor], weights: torch.Tensor) -> _Asked:
    dtype = run.cast(torch.float16 if name == "half" else torch.float32)
    module = kind.build(_SIZES[name]).to(run.device, dtype)
    given = [one.to(dtype) if one.is_floating_point() else one for one in operands]
    if any(isinstance(one, torch.nn.parameter.UninitializedParameter) for one in module.parameters()):
        module(*given)
    if hasattr(module, "reset_running_stats"):
        module.reset_running_stats()
    turn = 17 * list(_SIZES).index(name)
    with torch.no_grad():
        for parameter in module.parameters():
            places = (torch.arange(parameter.numel(), device=run.device) + turn) % len(weights)
            parameter.copy_(weights[places].view(parameter.shape))
    return _Asked(module, given)


def _in_turn(run: Any, kind: Kind, weights: torch.Tensor, operands: dict[str, list[torch.Tensor]]) -> Any:
    first, wide, twin = (_made(run, kind, name, operands[name], weights) for name in ("first", "wide", "twin"))
    half = attempt(lambda: _made(run, kind, "half", operands["half"], weights))

    def halved() -> Any:
        return attempt(lambda: half.told()) if isinstance(half, _Asked) else half

    found = [
        *(first.trained(), wide.told(), twin.trained(), halved(), first.told(), wide.trained(), twin.told()),
        *(first.trained(), first.trained(), halved(), wide.told(), twin.told(), first.told()),
    ]
    beside = _Asked(copy.deepcopy(wide.module), wide.operands)
    found += [beside.trained(), wide.told(), beside.told()]
    twin.module.load_state_dict(first.module.state_dict())
    found += [twin.told(), twin.trained(), first.told(), twin.told(), halved()]
    return found, [one.kept() for one in (first, wide, twin, beside)]


for _name, _kind in MODULES.items():
    if hasattr(torch.nn, _name):
        cases.add(
            f"modules-{_name}",
            lambda run, weights, operands, kind=_kind: _in_turn(run, kind, weights, operands),
            make=lambda d, kind=_kind: (
                d.uniform(-0.6, 0.8, 211),
                {name: list(kind.draw(d, n)) for name, n in _SIZES.items()},
            ),
            terms=64 * _kind.steps,
            factor=16.0,
            floor=1.0,
            states=ONCE,
            since="2.1",
            may_be_missing=True,
            deterministic=False,
        )
