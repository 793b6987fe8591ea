"""How many processes run the suite beside each other."""

from __future__ import annotations

from dataclasses import dataclass

_GIB = 1 << 30
# Room for torch and the largest cases of the default layers; a bound, not a measurement. With torch 2.11.0 eight
# processes ran beside each other on an NVIDIA GPU and 16 cores (suite.gpu_s in benchmarks/results.json).
PROCESS_BYTES = 4 * _GIB
DEVICE_BYTES = 4 * _GIB
# More were never tried, on a device and on the CPU.
MOST, MOST_ON_CPU = 8, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What the machine has: usable cores, bytes of memory, and bytes of the device's own memory (0: it has none).

    On a Mac the GPU shares the memory, so that a process counts twice in it; likewise where the CPU itself is the
    device (`is_cpu`).
    """

    cores: int
    memory: int
    device_memory: int = 0
    is_cpu: bool = False


def jobs_for(room: Room, *, threads: int | None = None) -> int:
    """Return how many processes of the suite the machine has room for: from 1 to 8, on the CPU to 16.

    With a device a process takes two cores: one waits for the device while the other computes what the CPU answers.
    On the CPU it takes one: a case is small, and a second thread of it waits for the first.

    Args:
        threads: how many each process has, where the user set it.

    >>> jobs_for(Room(cores=16, memory=128 << 30, device_memory=80 << 30))
    8
    >>> jobs_for(Room(cores=16, memory=128 << 30, is_cpu=True)), jobs_for(Room(cores=16, memory=128 << 30), threads=16)
    (16, 1)
    >>> jobs_for(Room(cores=8, memory=16 << 30))  # an M1: 16 GB, shared with its GPU
    2
    >>> jobs_for(Room(cores=2, memory=4 << 30))
    1
    """
    if room.device_memory:
        by_memory = min(room.memory // PROCESS_BYTES, room.device_memory // DEVICE_BYTES)
    else:
        by_memory = room.memory // (PROCESS_BYTES + DEVICE_BYTES)
    by_cores, most = (room.cores, MOST_ON_CPU) if room.is_cpu else (room.cores // 2, MOST)
    return max(1, min(by_cores, room.cores // (threads or 1), by_memory, most))
