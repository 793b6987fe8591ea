"""A log from a file or standard input, whatever it is: compressed, not UTF-8, enormous."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from typing import IO

from ..errors import UsageError, reason_of
from ..home import expanded
from .thinning import thin

# What is read at most (unpacked); beyond a few megabytes only what stands around trouble is kept (thinning.py).
LARGEST_BYTES = 1_000_000_000
_CHUNK = 1_000_000


def read_log_file(argument: str) -> str:
    """Return the text of a file (`-`: standard input); bytes that are not UTF-8 become replacement characters.

    Of a text over 2 MB, lines far from any trouble come back empty, so that memory and time are bounded.

    Raises:
        UsageError: there is no such file, it is a folder, it cannot be read, or it is a broken .gz.
    """
    try:
        if argument == "-":
            return _read(sys.stdin.buffer)
        with expanded(argument).open("rb") as file:
            return _read(file)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        hint = "give a log file, or - for standard input"
        raise UsageError(f"{argument}: cannot be read: {reason_of(error)}", hint=hint) from error


def _read(file: IO[bytes]) -> str:
    head = file.read(4)
    if head[:2] == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=_Resumed(head, file)) as unpacked:
            return _text(unpacked.read(4), unpacked)
    return _text(head, file)


def _text(head: bytes, file: IO[bytes] | gzip.GzipFile) -> str:
    chunks = _chunks(head, file)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        chunks = _in_utf_8(chunks)
    return thin(chunks).decode("utf-8-sig", "replace")


def _chunks(head: bytes, file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    yield head
    left = LARGEST_BYTES
    while left > 0 and (chunk := file.read(_CHUNK)):
        left -= len(chunk)
        yield chunk


def _in_utf_8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "replace")


class _Resumed(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self._head, self._file = head, file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._head:
            size = len(self._head) if size < 0 else size
            head, self._head = self._head[:size], self._head[size:]
            return head
        return self._file.read(size)
