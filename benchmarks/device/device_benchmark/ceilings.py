"""What this device can do at most, as its own libraries show it: matrix products, and copies of memory."""

from __future__ import annotations

import time
from typing import Callable

import torch

from .timed_device import TimedDevice, read_back

_SECONDS = {False: 1.5, True: 0.4}
_SIDES = {False: (4096, 8192), True: (1024, 2048)}


def best_seconds(timed: TimedDevice, call: Callable[[], torch.Tensor], *, within: float) -> float:
    """Return the shortest time of one call, in blocks that end when a number of the result is read.

    Not by synchronise: what holds the others to account must not be fooled as they are.
    """
    with timed.entered():
        read_back(call())
        began = time.perf_counter()
        read_back(call())
        once = time.perf_counter() - began
        calls = max(1, min(50, int(within / 8 / max(once, 1e-6))))
        best, deadline = once, time.perf_counter() + within
        while True:
            began = time.perf_counter()
            for _ in range(calls):
                result = call()
            read_back(result)
            best = min(best, (time.perf_counter() - began) / calls)
            if time.perf_counter() > deadline:
                return best


def flops_ceiling(timed: TimedDevice, dtype: torch.dtype, *, quick: bool) -> tuple[float, str]:
    """Return the highest FLOP/s of a large matrix product, and which one had it."""
    found: dict[float, str] = {}
    for side in _SIDES[quick]:
        left, right = (torch.randn(side, side).to(device=timed.device, dtype=dtype) for _ in range(2))
        for how, other in (("", right), (", second one transposed", right.t())):
            seconds = best_seconds(timed, lambda a=left, b=other: torch.matmul(a, b), within=_SECONDS[quick] / 2)
            found[2.0 * side**3 / seconds] = f"{side} x {side}{how}"
        if seconds * 8 > _SECONDS[quick]:  # double the side is eight times the work
            break
    best = max(found)
    return best, found[best]


def bytes_ceiling(timed: TimedDevice, *, quick: bool) -> float:
    """Return the highest bytes/s of a copy from memory to memory of the device, read and written both counted."""
    size = (1 << 25) if quick else (1 << 28)
    source = torch.randn(1 << 20).to(timed.device).repeat(size >> 20)
    target = torch.empty_like(source)
    return 2.0 * size * 4 / best_seconds(timed, lambda: target.copy_(source), within=_SECONDS[quick])


class Ceilings:
    """What was measured, by name (`flops_per_second.float32`, `bytes_per_second`), and again where it is doubted."""

    def __init__(self, timed: TimedDevice, *, quick: bool, values: dict[str, float] | None = None) -> None:
        self._timed, self._quick = timed, quick
        self.values: dict[str, float] = dict(values or {})
        self.which: dict[str, str] = {}

    @property
    def is_of_cpu(self) -> bool:
        return self._timed.name == "cpu"

    def measure(self) -> None:
        """Measure all of them."""
        for dtype in ("float32", "bfloat16") if self._timed.name != "cpu" else ("float32",):
            self._measure(f"flops_per_second.{dtype}")
        self._measure("bytes_per_second")

    def of(self, figure: str, dtype: str) -> float | None:
        """Return the ceiling of a figure, if it could be measured."""
        return self.values.get(self._name(figure, dtype))

    def again(self, figure: str, dtype: str) -> float:
        """Return a ceiling that something went beyond, measured again: the machine may have been busy."""
        self._measure(self._name(figure, dtype))
        return self.values[self._name(figure, dtype)]

    @staticmethod
    def _name(figure: str, dtype: str) -> str:
        return figure if figure == "bytes_per_second" else f"{figure}.{dtype}"

    def _measure(self, name: str) -> None:
        try:
            if name == "bytes_per_second":
                value, which = bytes_ceiling(self._timed, quick=self._quick), "copy"
            else:
                dtype = getattr(torch, name.partition(".")[2])
                value, which = flops_ceiling(self._timed, dtype, quick=self._quick)
        except (RuntimeError, TypeError) as error:  # no bfloat16 on this macOS, or no memory
            self.which[name] = str(error).splitlines()[0][:200]
            return
        if value > self.values.get(name, 0.0):
            self.values[name], self.which[name] = value, which


class Sentinel:
    """A product of fixed size, timed before each row: what it loses in the course of a run is heat, or a neighbour."""

    def __init__(self, timed: TimedDevice, *, quick: bool) -> None:
        side = 1024 if quick else 4096
        self._timed = timed
        self._left, self._right = (torch.randn(side, side).to(timed.device) for _ in range(2))
        self._within = 0.15 if quick else 0.5

    def seconds(self) -> float:
        return best_seconds(self._timed, lambda: torch.matmul(self._left, self._right), within=self._within)
