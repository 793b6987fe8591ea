"""Copies between the CPU's memory and the device's: how long one takes, and how much goes over in a second."""

from __future__ import annotations

from typing import Any

import torch

from .jobs import Job


class CopyJob(Job):
    """One copy, into the device or out of it; on the CPU's own side the same copy within its memory."""

    def __init__(self, values: torch.Tensor, direction: str) -> None:
        self._values, self._direction = values, direction
        self._target = torch.device("cpu")
        self.bytes = float(values.numel() * values.element_size())

    def round_to(self, dtype: torch.dtype) -> None:
        self._values = self._values.to(dtype).float()

    def to(self, device: torch.device, dtype: torch.dtype) -> CopyJob:
        inwards = self._direction == "in"
        moved = CopyJob(self._values.to(device="cpu" if inwards else device, dtype=dtype, copy=True), self._direction)
        moved._target = device if inwards else torch.device("cpu")
        return moved

    def step(self) -> torch.Tensor:
        return self._values.to(self._target, copy=True)

    def results(self) -> dict[str, torch.Tensor]:
        return {"out": self.step().cpu()}

    def jittered(self) -> dict[str, torch.Tensor]:
        return self.results()  # a copy rounds nothing


def copy_in(mode: str, *, bytes: int) -> Job:
    """Return a copy of so many bytes from the CPU to the device."""
    return CopyJob(torch.randn(bytes // 4), "in")


def copy_out(mode: str, *, bytes: int) -> Job:
    """Return a copy of so many bytes from the device to the CPU."""
    return CopyJob(torch.randn(bytes // 4), "out")


SIZES: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    # The smallest tells the latency, the largest the bandwidth; then the same reduced.
    ("4kB", {"bytes": 1 << 12}, {"bytes": 1 << 10}),
    ("1MB", {"bytes": 1 << 20}, {"bytes": 1 << 18}),
    ("256MB", {"bytes": 1 << 28}, {"bytes": 1 << 24}),
)
