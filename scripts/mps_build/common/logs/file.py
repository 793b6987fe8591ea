"""A log from a file or standard input, whatever it is: compressed, not UTF-8, enormous."""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import os
import re
import select
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import IO, Any, TextIO

from ..errors import UsageError, reason_of
from ..home import expanded
from ..opening import open_regular
from .thinning import thin

# What is read at most (unpacked); beyond a few megabytes only what stands around trouble is kept (thinning.py).
LARGEST_BYTES = 1_000_000_000
_CHUNK = 1_000_000
# A build is never silent for so long; an open pipe that nobody writes to always is.
SILENCE_SECONDS = 600.0
_OWN = re.compile(r"/dev/(?:stdin|fd/(\d+))")


def read_log_file(argument: str, *, silence_seconds: float = SILENCE_SECONDS) -> str:
    """Return the text of a file (`-`: standard input); bytes that are not UTF-8 become replacement characters.

    A pipe is read where the caller opened it on purpose: as standard input, or as a descriptor that the shell made
    (`<(command)`). One that is named by its path is refused, since its writer may never come.

    Of a text over 2 MB, lines far from any trouble come back empty, so that memory and time are bounded.

    Raises:
        UsageError: there is no such file, it is not a file, it cannot be read, it is a broken .gz, or a pipe stayed
            silent for `silence_seconds`.
    """
    try:
        with _opened(argument, silence_seconds) as file:
            return _read(file)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        hint = "give a log file, or - for standard input"
        raise UsageError(f"{argument}: cannot be read: {reason_of(error)}", hint=hint) from error


def _opened(argument: str, silence_seconds: float) -> AbstractContextManager[IO[bytes]]:
    if argument == "-":
        return nullcontext(sys.stdin.buffer) if _is_finite(sys.stdin) else _awaited(0, silence_seconds)
    path = expanded(argument)
    own = _OWN.fullmatch(argument)
    if own and not path.is_file():
        return _awaited(int(own[1] or 0), silence_seconds)
    return open_regular(path)


def _is_finite(stream: TextIO) -> bool:
    """True for a file and for text in memory; a pipe may stay open without an end."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except io.UnsupportedOperation:
        return True


def _awaited(descriptor: int, silence_seconds: float) -> io.BufferedReader:
    return io.BufferedReader(_Awaited(os.dup(descriptor), silence_seconds))


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


class _Awaited(io.RawIOBase):
    """A pipe that is read until it ends, or until nothing came for too long; a person at a terminal may take longer."""

    def __init__(self, descriptor: int, silence_seconds: float) -> None:
        self._descriptor = descriptor
        self._seconds = None if os.isatty(descriptor) else silence_seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        if not select.select([self._descriptor], [], [], self._seconds)[0]:
            raise TimeoutError(errno.ETIMEDOUT, f"nothing was written to it for {self._seconds:g} seconds")
        return os.readv(self._descriptor, [buffer])

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


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
