"""Messages between processes: a length of the text and one of the bytes behind it, both limited, then the two.

Standard library alone: the process that has torch loads this file by its path.
"""

from __future__ import annotations

import json
import os
import select
import struct
import time
from collections.abc import Callable
from typing import Any

_LENGTHS = struct.Struct("<IQ")
_PIECE = 1 << 20
_LOOK_SECONDS = 0.2


class BrokenTalk(Exception):
    """The other side sent what no message is."""


class TooLate(Exception):
    """The other side did not answer in time."""


def as_json(record: Any) -> bytes:
    """Return a record as JSON; its dataclasses have slots, and asdict, which copies, would take longer than the rest.

    >>> as_json({"a": (1, None)})
    b'{"a":[1,null]}'
    """
    return json.dumps(record, separators=(",", ":"), default=_fields).encode()


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


def write_frame(descriptor: int, text: bytes, *parts: bytes) -> None:
    """Write a message. Raises BrokenPipeError if nobody reads any more."""
    size = sum(map(len, parts))
    waiting = [_LENGTHS.pack(len(text), size) + text, *parts] if size < _PIECE else []
    if waiting:
        _write(descriptor, b"".join(waiting))
        return
    _write(descriptor, _LENGTHS.pack(len(text), size) + text)
    for each in parts:
        _write(descriptor, each)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_frame(
    descriptor: int,
    most_text: int,
    most_bytes: int,
    until: float | None = None,
    watch: Callable[[], None] | None = None,
) -> tuple[bytes, bytes]:
    """Return a message's text and bytes.

    Args:
        most_text: and `most_bytes`: a longer one is refused before it is read.
        until: a moment of time.monotonic() after which nobody waits.
        watch: called again and again while nothing comes; what it raises ends the waiting.

    Raises:
        EOFError: the other side has gone.
        BrokenTalk: a length is larger than its limit.
        TooLate: it did not come in time.
    """
    text, size = _LENGTHS.unpack(_read(descriptor, _LENGTHS.size, until, watch))
    if text > most_text or size > most_bytes:
        raise BrokenTalk(f"a message of {text} and {size} bytes, where at most {most_text} and {most_bytes} may come")
    first = bytes(_read(descriptor, text, until, watch)) if text else b""
    return first, bytes(_read(descriptor, size, until, watch)) if size else b""


def _read(descriptor: int, size: int, until: float | None, watch: Callable[[], None] | None) -> bytearray:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    data = bytearray(min(size, _PIECE))
    done = 0
    while done < size:
        if until is not None:
            _wait(waiting, until, watch)
        if done == len(data):  # room is made as it is filled: a length alone takes no memory
            data += bytes(min(size, 2 * done) - done)
        count = os.readv(descriptor, [memoryview(data)[done:]])
        if not count:
            raise EOFError
        done += count
    return data


def _wait(waiting: select.poll, until: float, watch: Callable[[], None] | None) -> None:
    while True:
        left = max(0.0, until - time.monotonic())
        if waiting.poll(min(left, _LOOK_SECONDS if watch else left) * 1000):
            return
        if time.monotonic() >= until:
            raise TooLate
        if watch is not None:
            watch()
