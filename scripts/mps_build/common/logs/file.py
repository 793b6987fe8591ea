"""A log from a file or standard input, whatever it is: compressed, not UTF-8, enormous and read in part."""

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
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import IO, Any, TextIO

from ..errors import UsageError, reason_of
from ..files import open_regular
from ..workspace import expanded

# Beyond this a log is thinned out.
WHOLE = 2_000_000
_HEAD, _TAIL = 200_000, 500_000
# What trouble may take: plain words of failure, and words that often are none.
_SURE_TROUBLE, _LIKELY_TROUBLE = 700_000, 300_000
_AROUND = 30
_LONGEST_LINE = 20_000
# From a line's begin on only: tried from each character of a long line, it would take the square of its length.
_TOO_LONG = re.compile(rb"^[^\n]{%d,}" % (_LONGEST_LINE + 1), re.MULTILINE)
# Plain words: they are looked for in 100 MB, where a pattern would take minutes.
_SURE = (
    *(b"FAILED: ", b"CMake Error", b" error: ", b"fatal error", b"Traceback (most", b"Undefined symbols", b"Killed"),
    *(b"No space left", b"ignoring file", b"##[error]", b"canceled", b"Error: ", b"ERROR", b"failed with", b"*** ["),
    *(b"an SDK that doesn", b"SYSROOT", b"ymbol not found", b"Library not loaded", b"-- sdk version"),
    *(b"USE_MPS ", b"MPSGraph framework", b"metal shaders", b"Segmentation fault", b"Abort trap"),
    *("×".encode(), "─▶".encode(), b"ProductVersion", b"-x86_64-i386", b"_PROCESSOR", b"NotFound:", b"solving failed"),
)
_LIKELY = (
    *(b"license", b"ssertion", b"unable to", b"Unable to", b"not found", b"No such", b"cannot ", b"can't "),
    *(b"Could not", b"error", b"denied", b"not permitted", b"exit code", b"exited with", b"DYLD_"),
)


def thin(chunks: Iterable[bytes]) -> bytes:
    """Return a text with the same number of lines in which those far from trouble are empty, so that numbers hold.

    Args:
        chunks: the text in pieces, cut anywhere; a text of up to 2 MB (`WHOLE`) comes back as it is.
    """
    chunks = iter(chunks)
    whole = bytearray()
    for chunk in chunks:
        whole += chunk
        if len(whole) > WHOLE:
            return _Thinner().run(_blocks(whole, chunks))
    return bytes(whole)


def thin_text(text: str) -> str:
    """Return the same of a text."""
    if len(text) <= WHOLE:
        return text
    pieces = (text[start : start + 1_000_000].encode("utf-8", "replace") for start in range(0, len(text), 1_000_000))
    return thin(pieces).decode("utf-8", "replace")


def _blocks(first: bytearray, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield whole lines with their ends, about a chunk at a time; of a line longer than any message its two ends."""
    whole, _, rest = bytes(first).rpartition(b"\n")
    yield _shortened(whole) + b"\n"
    for chunk in chunks:
        whole, end, rest = (_shortened(rest) + chunk).rpartition(b"\n")
        if end:
            yield _shortened(whole) + b"\n"
    yield _shortened(rest)


def _shortened(text: bytes) -> bytes:
    half = _LONGEST_LINE // 2
    if len(text) <= _LONGEST_LINE:
        return text
    return _TOO_LONG.sub(lambda line: line[0][:half] + b"\r" + line[0][-half:], text)


def _marks(block: bytes, signs: tuple[bytes, ...]) -> set[int]:
    """Return where the lines begin that hold a sign; lines one by one would take ten times as long."""
    marks = set()
    for sign in signs:
        position = block.find(sign)
        while position >= 0:
            marks.add(block.rfind(b"\n", 0, position) + 1)
            end = block.find(b"\n", position)
            position = block.find(sign, end) if end >= 0 else -1
    return marks


class _Thinner:
    """Keeps lines while its budgets (bytes) last; a line that is not kept leaves its line end.

    What stands far from trouble is never taken apart: its line ends are counted, a block at a time. The last lines
    left out are held back in `before`, since trouble may follow; what was kept among them is marked so.
    """

    def __init__(self) -> None:
        self.out = bytearray()
        self.before: deque[tuple[bytes, bool]] = deque()
        self.tail: deque[bytes] = deque()
        self.head, self.sure, self.likely = _HEAD, _SURE_TROUBLE, _LIKELY_TROUBLE
        self.tail_size = self.left_out = self.ahead = 0

    def run(self, blocks: Iterator[bytes]) -> bytes:
        for block in blocks:
            self._remember(block)
            self._take(block)
        self._settle(0)
        return self._with_tail()

    def _take(self, block: bytes) -> None:
        position = 0
        if self.head > 0:
            position = block.find(b"\n", min(self.head, len(block))) + 1 or len(block)
            self.out += block[:position]
            self.head -= position
        sure = _marks(block, _SURE) if self.sure > 0 else set()
        likely = _marks(block, _LIKELY) if self.likely > 0 else set()
        for start in sorted(sure | likely):
            if self.sure <= 0 and self.likely <= 0:
                break
            is_sure = start in sure and self.sure > 0
            if start < position or not (is_sure or (start in likely and self.likely > 0)):
                continue
            self._pass_by(block, position, start)
            position = block.find(b"\n", start) + 1 or len(block)
            if is_sure:
                self.sure -= sum(len(line) for line, kept in self.before if not kept) + position - start
                self.out += b"".join(line for line, _ in self.before) + block[start:position]
                self.before.clear()
                self.left_out, self.ahead = 0, _AROUND
            else:
                self.likely -= position - start
                self.before.append((block[start:position], True))
        self._pass_by(block, position, len(block))

    def _pass_by(self, block: bytes, start: int, end: int) -> None:
        """Keep the lines right behind a trouble; leave out the others, of which the last ones are held back."""
        while start < end and self.ahead > 0 and self.sure > 0:
            self._settle(0)
            stop = block.find(b"\n", start, end) + 1 or end
            self.out += block[start:stop]
            self.sure -= stop - start
            self.ahead -= 1
            start = stop
        held = end
        for _ in range(_AROUND):
            held = block.rfind(b"\n", start, max(held - 1, start)) + 1 or start
        if held > start:
            self._settle(0)
            self.out += b"\n" * block.count(b"\n", start, held)
        lines = _lines(block[held:end])
        self.before.extend((line, False) for line in lines)
        self.left_out += len(lines)
        self._settle(_AROUND)

    def _settle(self, most: int) -> None:
        """Write what was held back, up to the last `most` lines that were left out."""
        while self.before and (self.left_out > most or not most):
            line, kept = self.before.popleft()
            self.out += line if kept else b"\n" * line.endswith(b"\n")
            self.left_out -= not kept

    def _remember(self, block: bytes) -> None:
        self.tail.append(block)
        self.tail_size += len(block)
        while self.tail_size - len(self.tail[0]) > _TAIL:
            self.tail_size -= len(self.tail.popleft())

    def _with_tail(self) -> bytes:
        """Return the text with its last lines as they were."""
        last = b"".join(self.tail)
        last = last[last.find(b"\n", max(len(last) - _TAIL, 0)) + 1 :]
        position = len(self.out)
        for _ in range(last.count(b"\n") + 1):
            position = self.out.rfind(b"\n", 0, position)
        return bytes(self.out[: position + 1]) + last


def _lines(text: bytes) -> list[bytes]:
    return [line + b"\n" for line in text.split(b"\n")[:-1]] + ([rest] if (rest := text.rpartition(b"\n")[2]) else [])


# What is read at most (unpacked); beyond a few megabytes only what stands around trouble is kept.
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
