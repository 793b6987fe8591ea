"""A log from a file or standard input, whatever it is: compressed, not UTF-8, enormous."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from pathlib import Path
from typing import IO

from ..errors import UsageError

# More than this is cut in the middle: a log's trouble stands at its head, at its tail, or far less deep.
LARGEST_BYTES = 256_000_000


def read_log_file(argument: str) -> str:
    """Return the text of a file (`-`: standard input); bytes that are no UTF-8 become replacement characters.

    Raises:
        UsageError: there is no such file, it is a folder, it cannot be read, or it is a broken .gz.
    """
    try:
        if argument == "-":
            return _decoded(_read(sys.stdin.buffer))
        with Path(argument).expanduser().open("rb") as file:
            return _decoded(_read(file))
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = "give a log file, or - for standard input"
        raise UsageError(f"{argument}: cannot be read: {reason}", hint=hint) from error


def _read(file: IO[bytes]) -> bytes:
    head = file.read(2)
    if head == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=io.BytesIO(head + file.read(LARGEST_BYTES))) as unpacked:
            return unpacked.read(LARGEST_BYTES)
    return head + file.read(LARGEST_BYTES)


def _decoded(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")
