"""A process that gets no more memory than a little: what a call asks for a device would have to find too."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

_LITTLE = 256 << 20


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    """Refuse this process more memory than a little: a device would have to find it too."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    taken_now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken_now + _LITTLE, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
