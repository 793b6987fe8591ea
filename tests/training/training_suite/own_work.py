"""Tells a failure of this suite from one of the program, its libraries and the device: only theirs are findings."""

from __future__ import annotations

import contextlib
import traceback
from pathlib import Path
from typing import Iterator

from .events import Events

_SUITES = (Path(__file__).resolve().parents[1], Path(__file__).resolve().parents[2] / "device")
# What Python itself says of a wrong program. torch's own errors are others, also where a frame of ours called it.
_OF_PYTHON = (NameError, AttributeError, ImportError, SyntaxError)


class OwnFault(BaseException):
    """A part of the suite failed; no `except Exception` of a program's may hold it."""


@contextlib.contextmanager
def own_work(what: str) -> Iterator[None]:
    """Hold around what computes on the CPU with what was fetched already: neither the program nor a device is in it."""
    try:
        yield
    except Exception as raised:
        raise OwnFault(f"{what}: {type(raised).__name__}: {raised}") from raised


def tell_own_fault(events: Events, raised: BaseException) -> None:
    """Tell the driver of an error that is the suite's own; of another say nothing."""
    if isinstance(raised, OwnFault):
        events.tell("own_fault", reason=str(raised)[:2000])
    elif isinstance(raised, _OF_PYTHON) and _raised_here(raised):
        events.tell("own_fault", reason=f"{type(raised).__name__}: {raised}"[:2000])


def _raised_here(raised: BaseException) -> bool:
    frames = traceback.extract_tb(raised.__traceback__)
    innermost = Path(frames[-1].filename).resolve() if frames else Path()
    return any(folder in innermost.parents for folder in _SUITES)
