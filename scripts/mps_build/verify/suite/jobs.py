"""How many processes run the suite beside each other."""

from __future__ import annotations

from dataclasses import dataclass

_GIB = 1 << 30
# Room for torch and the largest cases of the default layers; a bound, not a measurement. With torch 2.11.0 eight
# processes ran beside each other on an NVIDIA GPU and 16 cores: benchmarks/device/gpu_record.json.
PROCESS_BYTES = 4 * _GIB
DEVICE_BYTES = 4 * _GIB
# More were never tried.
MOST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What the machine has: cores, bytes of memory, and bytes of the device's own memory (0: it has none).

    On a Mac the GPU shares the memory, so that a process counts twice in it.
    """

    cores: int
    memory: int
    device_memory: int = 0


def jobs_for(room: Room) -> int:
    """Return how many processes of the suite the machine has room for: from 1 to 8.

    A process takes two cores: one waits for the device while the other computes what the CPU answers.

    >>> jobs_for(Room(cores=16, memory=128 << 30, device_memory=80 << 30))
    8
    >>> jobs_for(Room(cores=8, memory=16 << 30))  # an M1: 16 GB, shared with its GPU
    2
    >>> jobs_for(Room(cores=2, memory=4 << 30))
    1
    """
    if room.device_memory:
        by_memory = min(room.memory // PROCESS_BYTES, room.device_memory // DEVICE_BYTES)
    else:
        by_memory = room.memory // (PROCESS_BYTES + DEVICE_BYTES)
    return int(max(1, min(room.cores // 2, by_memory, MOST)))
