"""Work on one device, timed to the moment when its result can be read."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any, Callable, ContextManager

import torch

FaultMaker = Callable[[], ContextManager[Any]]


@dataclass(frozen=True)
class Block:
    """One timed block: steps, seconds from synchronise to synchronise, and what came after it.

    `tail_seconds` is what reading the result back took after the synchronise: nearly nothing, if that waited at all.
    """

    steps: int
    seconds: float
    tail_seconds: float

    @property
    def step_seconds(self) -> float:
        return self.seconds / self.steps


class TimedDevice:
    """A device, and the fault to hold around all work that is given to it."""

    def __init__(self, device: str, around: FaultMaker | None = None) -> None:
        self.device = torch.device(device)
        self.name = device
        self._around = around

    def entered(self) -> ContextManager[Any]:
        """Return the context of one piece of work: the fault, if there is one."""
        return self._around() if self._around is not None else contextlib.nullcontext()

    def synchronise(self) -> None:
        """Wait for the device.

        Not by torch.utils.benchmark, which did not wait for MPS before https://github.com/pytorch/pytorch/pull/157131.
        """
        if self.name == "mps":
            backend: Any = getattr(torch, "mps", None)
            if backend is None:  # before 2.0 nothing waits but a copy to the CPU, behind all work in its queue
                read_back(torch.ones(1, device=self.device))
            else:
                backend.synchronize()
        elif self.name == "cuda":
            torch.cuda.synchronize()

    def run(self, steps: int, step: Callable[[], torch.Tensor]) -> Block:
        """Run steps and time them; then read the last one's result, and time that too."""
        context = self.entered()
        with context:
            self.synchronise()
            began = time.perf_counter()
            for _ in range(steps):
                result = step()
            self.synchronise()
            ended = time.perf_counter()
            read_back(result)
        return Block(steps=steps, seconds=ended - began, tail_seconds=time.perf_counter() - ended)

    def free(self) -> None:
        """Give cached memory back, so that one row's peak is not the next one's shortage."""
        backend: Any = getattr(torch, self.name, None)
        if self.name != "cpu" and hasattr(backend, "empty_cache"):
            backend.empty_cache()


def read_back(result: torch.Tensor) -> float:
    """Return one number of a result: it can only be read when the work before it is done."""
    return float(result.detach().reshape(-1)[-1:].float().cpu()[0])
