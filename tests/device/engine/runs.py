"""Runs: one run of a case on one device, inside the injected fault if there is one."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, ContextManager

import torch

from .cases import Case
from .draws import Draw, leaves_of, map_tensors

FaultMaker = Callable[[], ContextManager[Any]]
# How many faults a device may tell one after another, before it is given up (`still_serves` decides).
_LATE_FAULTS = 4
# What a process may keep of freed memory: a few of the largest cases.
_KEPT_BYTES = 1 << 29


def synchronise(device: torch.device) -> None:
    """Wait until a device has done its work, where this torch has a wait for it."""
    backend: Any = getattr(torch, device.type, None)
    if device.type != "cpu" and hasattr(backend, "synchronize"):
        backend.synchronize()


def seed_numbers(device: torch.device, seed: int) -> None:
    """Seed the random numbers of the host and of a device.

    Not torch.manual_seed: it seeds every back end, and formats a stack for each that is not there, 2 to 17 ms a call.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cpu":
        return
    backend: Any = getattr(torch, device.type, None)
    if hasattr(backend, "manual_seed"):
        backend.manual_seed(seed)
    else:  # torch.mps came with 2.0
        torch.manual_seed(seed)


class DeviceRun:
    """One run on one device. Enter it, bring the bases, act, and read the outputs back, all in the same thread.

    Args:
        precise: floating bases are raised to float64 (complex to complex128): the reference.
        tested: the run under test, not one that tells what is right.
        around: makes the context manager to hold around the run: a fault, or a recorder.
    """

    def __init__(
        self,
        device: torch.device,
        *,
        precise: bool = False,
        tested: bool = False,
        around: FaultMaker | None = None,
    ) -> None:
        self.device = device
        self.precise = precise
        self.tested = tested
        self._around = around
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> DeviceRun:
        self._stack.__enter__()
        if self._around is not None:
            self._stack.enter_context(self._around())
        return self

    def __exit__(self, *caught: Any) -> Any:
        return self._stack.__exit__(*caught)

    def synchronise(self) -> None:
        """Wait until the device has done its work; nothing to wait for on the CPU."""
        synchronise(self.device)

    def cast(self, dtype: torch.dtype) -> torch.dtype:
        """Return the dtype to use where a case names one: float64 instead of any floating one in the reference."""
        if self.precise and dtype.is_complex:
            return torch.complex128
        return torch.float64 if self.precise and dtype.is_floating_point else dtype

    def copy(self, bases: Any) -> Any:
        """Return a copy of the host's bases for this run; call it before entering (a clone is no device operation)."""
        return map_tensors(bases, lambda base: base.to(self.cast(base.dtype)) if self._raises(base) else base.clone())

    def bring(self, copies: Any) -> Any:
        """Move copies to the device: inside the run, since moving is a device operation too."""
        return map_tensors(copies, lambda copy: copy.to(self.device))

    def seed(self, seed: int) -> None:
        """Seed the random numbers of the host and of this device."""
        seed_numbers(self.device, seed)

    def _raises(self, base: torch.Tensor) -> bool:
        return self.cast(base.dtype) != base.dtype


class Bench:
    """What a run of the suite has at hand: the device, the fault, the seed; makes runs."""

    def __init__(self, device: torch.device, *, around: FaultMaker | None = None, seed: int = 0) -> None:
        self.device = device
        self.seed = seed
        self.around = around
        self._bases: dict[tuple[str, tuple[int, int]], tuple[Any, ...]] = {}

    def device_run(self) -> DeviceRun:
        """Return a run on the device under test: `with bench.device_run() as run:`."""
        return DeviceRun(self.device, tested=True, around=self.around)

    def reference(self) -> DeviceRun:
        """Return a run in float64 on the CPU, without any fault."""
        return DeviceRun(torch.device("cpu"), precise=True)

    def same(self) -> DeviceRun:
        """Return a run on the CPU in the case's own dtypes, without any fault."""
        return DeviceRun(torch.device("cpu"))

    def draw(self, case_id: str, *, k: int = 0, data: int = 0) -> Draw:
        """Return the source of host data for a case."""
        return Draw(case_id, k=k, data=data, seed=self.seed)

    def bases(self, case: Case, draw: tuple[int, int]) -> tuple[Any, ...]:
        """Return the host's data of a case; the last case's is kept, since every run gets a copy of it."""
        if case.make is None:
            return ()
        key = case.id, draw
        if key in self._bases:
            return self._bases[key]
        drawn = case.make(self.draw(case.id, k=draw[0], data=draw[1]))
        bases = drawn if isinstance(drawn, tuple) else (drawn,)
        self._bases = {old: one for old, one in self._bases.items() if old[0] == case.id}
        if not case.memory_bytes and _is_copied_whole(bases):
            self._bases[key] = bases
        return bases

    def synchronise(self) -> None:
        """Wait until the device has done its work; nothing to wait for on the CPU."""
        synchronise(self.device)

    def settle(self) -> Exception | None:
        """Wait for the device, and return what it raises only now: work that the case has left, which no answer read.

        Otherwise it would be reported in the next case. A buffer that was committed and one that was not may both fail.
        """
        first: Exception | None = None
        for _ in range(_LATE_FAULTS):
            try:
                self.synchronise()
            except Exception as raised:
                first = first or raised
            else:
                break
        return first

    def still_serves(self) -> bool:
        """Say whether the device computes at all: after a fault of its own it may refuse everything in this process."""
        try:
            return float((torch.ones(2, device=self.device) * 3).sum().cpu()) == 6.0
        except Exception:
            return False

    def release(self) -> None:
        """Give freed memory back to the system, where it is much: the device waits for that, once for each file."""
        backend: Any = getattr(torch, self.device.type, None)
        if self.device.type == "cpu" or not hasattr(backend, "empty_cache"):
            return
        held = getattr(backend, "memory_reserved", None) or getattr(backend, "driver_allocated_memory", None)
        if held is None or held() > _KEPT_BYTES:
            backend.empty_cache()

    def pollute(self, sizes: list[int]) -> None:
        """Fill and free blocks near the given element counts, so that stale memory is visibly wrong."""
        blocks = [torch.full((size + odd,), 1000.0, device=self.device) for size in sizes for odd in (0, 1, 13)]
        self.synchronise()
        del blocks


def _is_copied_whole(bases: Any) -> bool:
    """Say whether a copy shares nothing that an act could change with what it was copied from."""
    plain = (torch.Tensor, torch.dtype, bool, int, float, complex, str, type(None))
    return all(isinstance(one, plain) for one in leaves_of(bases))
