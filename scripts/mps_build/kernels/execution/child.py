"""What every closed child does: say which process it is, close itself, and do what is requested until nobody asks.

Requests come pickled from the process that started the server; answers go back as JSON and bytes, and are read there
by a strict decoder (execution/closed.py).
"""

from __future__ import annotations

import gc
import os
import pickle
import socket
from collections.abc import Callable
from typing import Any

from ...inspection.limits import Malformed
from ..program.launch import WrongBinding
from . import sandbox
from .frames import as_json, read_frame, write_frame

_MOST = 1 << 34  # of a request: the judging process's own inputs

Answer = tuple[dict[str, Any], tuple[bytes, ...]]


def talk(connection: socket.socket, served: object, memory: int) -> None:
    """Answer with the methods of `served`, each of which returns a record and bytes."""
    descriptor = connection.fileno()
    write_frame(descriptor, as_json({"pid": os.getpid(), "outer": _outer()}))
    try:
        sandbox.enter(memory, keep=(descriptor,))
    except sandbox.SandboxUnavailable as error:
        write_frame(descriptor, as_json({"unavailable": str(error)}))
        return
    gc.disable()
    while True:
        try:
            _, request = read_frame(descriptor, 0, _MOST)
        except EOFError:
            return
        name, arguments = pickle.loads(request)
        head, parts = _done(getattr(served, name), arguments)
        write_frame(descriptor, as_json(head), *parts)


def _outer() -> int:
    """Return this process's number as those outside of its namespace have it; 0 if /proc does not say."""
    try:
        return int(os.readlink("/proc/self"))  # noqa: PTH115  # a child's first milliseconds
    except (OSError, ValueError):
        return 0


def _done(function: Callable[..., Answer], arguments: tuple[Any, ...]) -> Answer:
    try:
        return function(*arguments)
    except Malformed as error:
        return {"failed": "malformed", "text": str(error)[:2000]}, ()
    except WrongBinding as error:
        return {"failed": "binding", "text": str(error)[:2000]}, ()
    except MemoryError:
        return {"failed": "memory", "text": "it needs more memory than it may have"}, ()
    except Exception as error:
        return {"failed": "fault", "text": f"{type(error).__name__}: {error}"[:2000]}, ()
