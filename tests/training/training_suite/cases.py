"""Cases that judge themselves: on the device, on the CPU in the same type, and on the CPU in float64."""

from __future__ import annotations

import contextlib
import math
import time
import traceback
from typing import Any, Callable, ContextManager, Iterable, Iterator, Mapping

import torch

from .events import Events
from .own_work import tell_own_fault

LIMIT_SECONDS = 180.0
# A device's plain sums are up to so many times worse than the CPU's, which are unusually good.
CPU_MULTIPLE = 8.0
# Of the largest value: 4 eps sqrt(K) of a network whose longest path adds up some 40,000 products.
OUTPUT_FLOOR, GRADIENT_FLOOR = 1e-4, 1e-3
# A gradient that is zero but for rounding (of a key's bias, say) has the model's as its scale.
SMALLEST_SHARE = 1e-4

Maker = Callable[[], ContextManager[Any]]


class Wrong(AssertionError):
    """The device's answer is out of bounds."""

    def __init__(self, message: str, *, off: float = math.nan, bound: float = math.nan) -> None:
        super().__init__(message)
        self.off, self.bound = off, bound


class NotHere(Exception):
    """This version of the library has no such thing: the case is skipped."""


@contextlib.contextmanager
def on_the_cpu() -> Iterator[None]:
    """Hold around what only the CPU does: what it cannot do says nothing of the device."""
    try:
        yield
    except Exception as raised:
        raise NotHere(f"not even the CPU can: {type(raised).__name__}: {raised}"[:1000]) from raised


class Bench:
    """Compares a device's answers; keeps the one that came nearest to its bound."""

    def __init__(self, device: torch.device, injected: Maker) -> None:
        self.device, self.injected = device, injected
        self.nearest: tuple[float, float] = (0.0, math.inf)

    def compare(self, what: str, got: Any, same: Any, reference: Any, *, floor: float, least: float = 0.0) -> None:
        """Hold one tensor against its bound: max(8 x the CPU's own error, floor x scale).

        Raises:
            Wrong: it is out of bounds, not finite, or of another shape.
        """
        got, same, reference = (value.detach().cpu().double() for value in (got, same, reference))
        if got.shape != reference.shape:
            raise Wrong(f"{what}: shape {tuple(got.shape)}, the reference has {tuple(reference.shape)}")
        if not reference.numel():
            return
        if not bool(torch.isfinite(got).all()) and bool(torch.isfinite(reference).all()):
            raise Wrong(f"{what}: {int((~torch.isfinite(got)).sum())} of {got.numel()} values are not finite")
        off, scale = float((got - reference).abs().max()), max(float(reference.abs().max()), least)
        bound = max(CPU_MULTIPLE * float((same - reference).abs().max()), floor * scale)
        if off > bound:
            raise Wrong(f"{what}: off by {off:.3g} of at most {scale:.3g}, allowed {bound:.3g}", off=off, bound=bound)
        if bound and off / bound >= self.nearest[0] / self.nearest[1]:
            self.nearest = (off, bound)

    def is_there(self, what: str, *tensors: torch.Tensor) -> None:
        """Hold that tensors lie on the device.

        Raises:
            Wrong: one lies elsewhere.
        """
        elsewhere = sorted({str(tensor.device) for tensor in tensors if tensor.device.type != self.device.type})
        if elsewhere:
            raise Wrong(f"{what}: on {', '.join(elsewhere)}, not on {self.device.type}")


def run_cases(
    cases: Mapping[str, Callable[[Bench], None]],
    events: Events,
    device: str,
    injected: Maker,
    *,
    after: str | None = None,
    hits: Callable[[], int | None] = lambda: None,
) -> None:
    """Ask every case behind `after` and tell each one's outcome, with the hits of the fault so far."""
    names = list(cases)
    names = names[names.index(after) + 1 :] if after in names else names
    events.tell("collected", ids=names)
    for name in names:
        _ask(name, cases[name], events, Bench(torch.device(device), injected), hits)
    events.tell("fault", hits=hits())
    events.tell("end")


def _ask(
    name: str, case: Callable[[Bench], None], events: Events, bench: Bench, hits: Callable[[], int | None]
) -> None:
    events.tell("started", id=name, layer="transformers", limit_seconds=LIMIT_SECONDS)
    began, outcome, reason = time.monotonic(), "passed", ""
    off, bound = math.nan, math.nan
    try:
        case(bench)
        off, bound = bench.nearest
    except NotHere as missing:
        outcome, reason = "skipped", str(missing)
    except Wrong as wrong:
        outcome, reason, off, bound = "failed", str(wrong), wrong.off, wrong.bound
    except Exception as raised:
        traceback.print_exc()
        tell_own_fault(events, raised)
        outcome, reason = "failed", f"{type(raised).__name__}: {raised}"
    known = math.isfinite(off) and math.isfinite(bound)
    events.tell(
        "finished",
        id=name,
        layer="transformers",
        outcome=outcome,
        reason=reason[:2000],
        error={"max_abs": off, "bound": bound} if known else None,
        seconds=round(time.monotonic() - began, 3),
        fault_hits=hits(),
    )


def no_fault() -> ContextManager[Any]:
    return contextlib.nullcontext()


def moved(batch: Mapping[str, torch.Tensor], device: Any, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Return a batch on a device, its floating tensors in one type; always copies, so that no run spoils another's."""
    return {
        name: (value.to(dtype) if value.dtype.is_floating_point else value).clone().to(device)
        for name, value in batch.items()
    }


def largest(tensors: Iterable[torch.Tensor]) -> float:
    """Return the largest absolute value of any."""
    return max((float(tensor.detach().abs().max()) for tensor in tensors if tensor.numel()), default=0.0)
