"""Logs too long to be read whole: their head, their tail and what stands around trouble, in one pass."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import accumulate

# Beyond this a log is thinned out.
WHOLE = 2_000_000
_HEAD, _TAIL = 200_000, 500_000
# What trouble may take: plain words of failure, and words that often are none.
_SURE_TROUBLE, _LIKELY_TROUBLE = 700_000, 300_000
_AROUND = 30
_LONGEST_LINE = 20_000
# Plain words: they are looked for in 100 MB, where a pattern would take minutes.
_SURE = (
    *(b"FAILED: ", b"CMake Error", b" error: ", b"fatal error", b"Traceback (most", b"Undefined symbols", b"Killed"),
    *(b"No space left", b"ignoring file", b"##[error]", b"canceled", b"Error: ", b"ERROR", b"failed with", b"*** ["),
    *(b"an SDK that doesn", b"SYSROOT", b"ymbol not found", b"Library not loaded", b"-- sdk version"),
    *(b"USE_MPS ", b"MPSGraph framework", b"metal shaders", b"Segmentation fault", b"Abort trap"),
)
_LIKELY = (
    *(b"license", b"ssertion", b"unable to", b"Unable to", b"not found", b"No such", b"cannot ", b"can't "),
    *(b"Could not", b"error", b"denied", b"not permitted", b"exit code", b"exited with"),
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


def _blocks(first: bytearray, chunks: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield lines without their ends, block by block; of one longer than any message its two ends."""
    *whole, rest = bytes(first).split(b"\n")
    yield [_short(line) for line in whole]
    for chunk in chunks:
        *whole, rest = (_short(rest) + chunk).split(b"\n")
        yield [_short(line) for line in whole]
    yield [_short(rest)]


def _marks(lines: list[bytes], signs: tuple[bytes, ...]) -> set[int]:
    """Return which lines hold a sign. The block is searched as one: lines one by one would take ten times as long."""
    block = b"\n".join(lines)
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    marks = set()
    for sign in signs:
        position = block.find(sign)
        while position >= 0:
            index = bisect_right(starts, position) - 1
            marks.add(index)
            position = block.find(sign, starts[index + 1])
    return marks


def _short(line: bytes) -> bytes:
    half = _LONGEST_LINE // 2
    return line if len(line) <= _LONGEST_LINE else line[:half] + b"\r" + line[-half:]


class _Thinner:
    """Keeps lines while its budgets (bytes) last; a line that is not kept leaves its line end."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []
        self.behind: deque[tuple[int, bytes]] = deque(maxlen=_AROUND)
        self.tail: deque[tuple[int, bytes]] = deque()
        self.head, self.sure, self.likely = _HEAD, _SURE_TROUBLE, _LIKELY_TROUBLE
        self.tail_size = self.ahead = 0

    def run(self, blocks: Iterator[list[bytes]]) -> bytes:
        for lines in blocks:
            sure = _marks(lines, _SURE) if self.sure > 0 else set()
            likely = _marks(lines, _LIKELY) if self.likely > 0 else set()
            for index, line in enumerate(lines):
                self._take(line, sure=index in sure, likely=index in likely)
        for index, line in self.tail:
            self.kept[index] = line
        return b"\n".join(self.kept)

    def _take(self, line: bytes, *, sure: bool, likely: bool) -> None:
        index = len(self.kept)
        self.kept.append(b"")
        self.tail.append((index, line))
        self.tail_size += len(line) + 1
        while self.tail_size > _TAIL:
            self.tail_size -= len(self.tail.popleft()[1]) + 1
        if self.head > 0:
            self.head -= self._keep(index, line)
        elif sure and self.sure > 0:
            self.sure -= self._keep(index, line) + self._keep_what_stands_before()
            self.ahead = _AROUND
        elif likely and self.likely > 0:
            self.likely -= self._keep(index, line)
        elif self.ahead > 0 and self.sure > 0:
            self.ahead -= 1
            self.sure -= self._keep(index, line)
        else:
            self.behind.append((index, line))

    def _keep(self, index: int, line: bytes) -> int:
        self.kept[index] = line
        return len(line) + 1

    def _keep_what_stands_before(self) -> int:
        spent = sum(self._keep(index, line) for index, line in self.behind)
        self.behind.clear()
        return spent
