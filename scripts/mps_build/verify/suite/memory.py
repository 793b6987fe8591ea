"""How much memory a group of processes holds, and how much it may."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import psutil

_GIB = 1 << 30


def group_memory_bytes(group: int) -> int:
    """Return the resident bytes of all processes in a process group; one that ends meanwhile counts as 0."""
    total = 0
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, PermissionError, psutil.Error):
            if os.getpgid(process.pid) == group:
                total += process.memory_info().rss
    return total


def default_limit_bytes() -> int:
    """Return what a case may hold before it is ended: half the memory, at least 8 GiB, at most four fifths.

    A machine that begins to swap takes the other cases' time, and at last the whole session, with it.
    """
    total = total_bytes()
    return int(min(total * 0.8, max(8 * _GIB, total * 0.5)))


def total_bytes() -> int:
    """Return the memory of this machine, or of the container that holds us."""
    total = int(psutil.virtual_memory().total)
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        path = Path(name)
        if path.is_file():
            text = path.read_text().strip()
            if text.isdecimal():
                return min(total, int(text))
    return total
