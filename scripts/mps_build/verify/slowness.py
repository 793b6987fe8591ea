"""Why a run is many times slower than estimated: the likely cause, from what the machine says of itself."""

from __future__ import annotations

import os
from dataclasses import dataclass

import psutil

from mps_build.common.records.device_record import Concurrency

_LEAST_FREE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the machine does now: processes that want a core, ours too, and the share of memory that is free."""

    running: float
    free_memory: float


def load_now() -> Load:
    """Return the load of the last minute, and the free memory."""
    memory = psutil.virtual_memory()
    return Load(running=os.getloadavg()[0], free_memory=memory.available / memory.total)


def likely_cause(together: Concurrency | None, load: Load) -> str:
    """Return what most likely slows a run down, and what helps.

    >>> likely_cause(Concurrency(cores=16, processes=8, threads=16), Load(running=120, free_memory=0.5))
    '8 processes with 16 threads each on 16 cores: unset OMP_NUM_THREADS and --jobs'
    """
    if together is not None and together.processes * together.threads > together.cores:
        return (
            f"{together.processes} processes with {together.threads} threads each on {together.cores} cores: "
            "unset OMP_NUM_THREADS and --jobs"
        )
    if load.free_memory < _LEAST_FREE:
        return "memory is short: try --jobs 1, or end other programs"
    if together is not None and load.running > 1.5 * together.cores + 1:
        return f"other programs compute too: {load.running:.0f} processes want one of {together.cores} cores"
    return "the machine is slow now (power, heat, a virtual machine), or the device is"
