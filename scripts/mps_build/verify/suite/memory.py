"""How much memory a group of processes holds, and how much it may."""

from __future__ import annotations

import os
from pathlib import Path

from mps_build.common.process import Command, capture

_GIB = 1 << 30


def group_memory_bytes(group: int) -> int:
    """Return the resident bytes of all processes in a process group; 0 where that is unknown."""
    if Path("/proc/self/stat").exists():
        return _from_proc(group)
    answer = capture(Command(argv=("ps", "-axo", "pgid=,rss=")), timeout_seconds=5)
    return parse_group_memory(answer.stdout, group)


def parse_group_memory(text: str, group: int) -> int:
    """Return the bytes of one group from `ps -axo pgid=,rss=` (rss in KiB).

    >>> parse_group_memory("  10  2048\\n  11  1\\n  10  1024\\n", 10)
    3145728
    """
    rows = (line.split() for line in text.splitlines())
    return sum(int(row[1]) * 1024 for row in rows if len(row) == 2 and row[0] == str(group) and row[1].isdigit())


def default_limit_bytes() -> int:
    """Return what a case may hold before it is ended: half the memory, at least 8 GiB, at most four fifths.

    A machine that begins to swap takes the other cases' time, and at last the whole session, with it.
    """
    total = total_bytes()
    return int(min(total * 0.8, max(8 * _GIB, total * 0.5)))


def total_bytes() -> int:
    """Return the memory of this machine, or of the container that holds us."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        path = Path(name)
        if path.is_file():
            text = path.read_text().strip()
            if text.isdigit():
                return min(total, int(text))
    return total


def _from_proc(group: int) -> int:
    total = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The program's name (field 2) may hold blanks and brackets: read on behind its last bracket.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[2]) == group:
                total += int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            continue  # it ended while we looked
    return total
