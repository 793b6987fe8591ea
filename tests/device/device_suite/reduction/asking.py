"""Runs a program on the device, on the CPU and in float64, and says what is wrong."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any, Callable, ContextManager

import torch

from .steps import Program

# Their elements are not defined, or what they leave is no number.
_UNDEFINED = ("empty", "resize", "empty_like", "new_empty", "empty_strided", "new_empty_strided")


@dataclass(frozen=True)
class Fault:
    """What is wrong: after which step, in which value, and in words."""

    step: int
    answer: str
    effect: str


class Asker:
    """Runs programs on one device, with a plant around if there is one."""

    def __init__(
        self, device: torch.device, around: Callable[[], ContextManager[Any]] = contextlib.nullcontext
    ) -> None:
        self.device = device
        self.around = around

    def first_fault(self, program: Program) -> Fault | None:
        """Return the first value that is wrong on the device; None where all are right, or the CPU cannot say.

        The order is that of the steps; then come the inputs and values that later steps changed.
        """
        same = _run(program, torch.device("cpu"), wide=False)
        if isinstance(same[-1], Exception):
            return None
        wide = _run(program, torch.device("cpu"), wide=True)
        torch.manual_seed(1)
        again = _run(program, torch.device("cpu"), wide=False)
        with self.around():
            got = _run(program, self.device, wide=False)
        for place, mine in enumerate(got):
            if isinstance(mine, Exception):
                if place >= len(program.steps):
                    return None
                return Fault(place, "", f"raises {type(mine).__name__}: {' '.join(str(mine).split())[:150]}")
            for text, value in mine.items():
                if program.answers and text not in program.answers:
                    continue
                if _undefined(program, place) or not _equal(same[place][text], again[place][text]):
                    continue
                exact = wide[place].get(text) if place < len(wide) and isinstance(wide[place], dict) else None
                found = wrong(value, same[place][text], exact, program.factor)
                if found:
                    return Fault(min(place, len(program.steps) - 1), text, found)
        return None


def _undefined(program: Program, place: int) -> bool:
    if place >= len(program.steps):
        return False
    return program.steps[place].name.rpartition(".")[2].rstrip("_") in _UNDEFINED


def _run(program: Program, device: torch.device, *, wide: bool) -> list[Any]:
    """Return, for each step, its tensors by expression; then all values at the end; an exception ends the list."""

    def cast(dtype: torch.dtype) -> torch.dtype:
        return widest(dtype) if wide else dtype

    names: dict[str, Any] = {"torch": torch, "device": device, "cast": cast}
    found: list[Any] = []
    for name, given in program.inputs.items():
        value = given.value.clone()
        names[name] = value.to(widest(value.dtype)) if wide else value
    try:
        for step in program.steps:
            exec(step.text(), names)  # our own recording of our own suite
            watched = [step.result] if step.result else []
            if step.changes:
                watched += [ref.text for ref in step.refs()]
            found.append({text: one for name in watched for text, one in _snapshot(name, eval(name, names))})
        every = [*program.inputs, *(step.result for step in program.steps if step.result)]
        found.append({text: one for name in every for text, one in _snapshot(name, names[name])})
    except Exception as raised:
        found.append(raised)
    return found


def _snapshot(text: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            value = value.to_dense()
        return [(text, value.detach().cpu().clone())]
    if isinstance(value, (tuple, list)):
        return [pair for number, one in enumerate(value) for pair in _snapshot(f"{text}[{number}]", one)]
    return []


def widest(dtype: torch.dtype) -> torch.dtype:
    """Return float64 or complex128 for what is floating; whole numbers stay."""
    return torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else dtype


def wrong(got: torch.Tensor, same: torch.Tensor, wide: Any, factor: float) -> str:
    """Return what is wrong with an answer, or an empty text: within the bound of float64, or of the CPU's answer."""
    if got.shape != same.shape:
        return f"has the shape {tuple(got.shape)}, the CPU gives {tuple(same.shape)}"
    if got.dtype != same.dtype:
        return f"is {str(got.dtype)[6:]}, the CPU gives {str(same.dtype)[6:]}"
    if not (got.is_floating_point() or got.is_complex()):
        count = int(got.ne(same).sum())
        return f"has {count} of {got.numel()} elements wrong" if count else ""
    wants = [same] if wide is None or wide.shape != same.shape else [wide, same]
    offs = [_off(got, want) for want in wants]
    own = _off(same, wants[0])
    scale = _scale(wants[0])
    allowed = factor * torch.finfo(got.dtype).eps * scale
    if math.isfinite(own):
        allowed = max(allowed, 8 * own)
    if min(offs) <= allowed:
        return ""
    if math.isinf(offs[0]):
        return "has NaN or infinity where it should not, or not where it should"
    return f"is off by {offs[0]:.3g} of {scale:.3g}"


def _off(got: torch.Tensor, want: torch.Tensor) -> float:
    """Return the largest difference; infinity where NaN or infinities lie elsewhere."""
    if got.numel() == 0:
        return 0.0
    if got.is_complex():
        got, want = torch.view_as_real(got.resolve_conj()), torch.view_as_real(want.resolve_conj())
    mine, rounded = got.double(), want.to(got.dtype).double()
    special = ~(torch.isfinite(mine) & torch.isfinite(rounded))
    equal = (mine == rounded) | (torch.isnan(mine) & torch.isnan(rounded))
    if bool((special & ~equal).any()):
        return math.inf
    gap = (mine - rounded).abs()[~special]
    return float(gap.max()) if gap.numel() else 0.0


def _scale(want: torch.Tensor) -> float:
    finite = want.abs().double()
    finite = finite[torch.isfinite(finite)]
    return float(finite.max()) if finite.numel() else 0.0


def _equal(one: torch.Tensor, two: torch.Tensor) -> bool:
    if torch.equal(one, two):
        return True
    return one.shape == two.shape and bool(((one == two) | (one.ne(one) & two.ne(two))).all())
