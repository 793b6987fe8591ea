"""Watches a member's data go by, keeps the runs of bytes that somebody wants, and hashes its pages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush

from ..malformed import Malformed
from .limits import MOST_ALL_KEPT_BYTES, MOST_KEPT_BYTES
from .macho import Range


@dataclass(slots=True, kw_only=True)
class Allowance:
    """How many bytes may still be kept of one input, shared by all who keep some."""

    left: int


class RangeCollector:
    """Keeps chosen ranges of a stream; a delivered one may ask for ranges that come later.

    All ranges of all files together are held against `kept`, so that overlapping ones cannot multiply a file.
    """

    def __init__(self, kept: Allowance | None = None) -> None:
        self._position = 0
        self._kept = kept or Allowance(left=MOST_ALL_KEPT_BYTES)
        self._own = MOST_KEPT_BYTES
        # By where they begin; the number keeps equal ones in order, and functions from being compared.
        self._waiting: list[tuple[int, int, Range, Callable[[bytes], None]]] = []
        self._begun: list[tuple[Range, bytearray, Callable[[bytes], None]]] = []
        self._asked = 0

    def want(self, extent: Range, deliver: Callable[[bytes], None]) -> None:
        """Have `deliver` called with the bytes of `extent`, once they have gone by.

        Raises:
            Malformed: they are gone, or are more than is kept of one file, or of all.
        """
        if extent.size > self._own:
            raise Malformed(f"{extent.size} bytes at byte {extent.offset}; at most {self._own} more are kept")
        if extent.size > self._kept.left:
            raise Malformed(f"{extent.size} bytes; of all files, at most {MOST_ALL_KEPT_BYTES} are kept")
        if extent.offset < self._position:
            raise Malformed(f"byte {extent.offset} lies before what refers to it")
        self._own -= extent.size
        self._kept.left -= extent.size
        self._asked += 1
        heappush(self._waiting, (extent.offset, self._asked, extent, deliver))

    def update(self, data: bytes) -> None:
        """Take the next bytes, and deliver each range that is complete."""
        begin, end = self._position, self._position + len(data)
        pending, self._begun = self._begun, []
        # What a delivered range asks for may lie in this very piece.
        while pending or (self._waiting and self._waiting[0][0] < end):
            if pending:
                extent, kept, deliver = pending.pop()
            else:
                _, _, extent, deliver = heappop(self._waiting)
                kept = bytearray()
            kept += data[max(extent.offset + len(kept) - begin, 0) : extent.end - begin]
            if len(kept) == extent.size:
                deliver(bytes(kept))
            else:
                self._begun.append((extent, kept, deliver))
        self._position = end


class PageHasher:
    """Hashes a stream page by page, up to `limit`, as code signatures do."""

    def __init__(self, *, limit: int, page_size: int, hash_name: str = "sha256", hash_size: int | None = None) -> None:
        self.page_size = page_size
        self.hash_name = hash_name
        self._left = limit
        self._new = getattr(hashlib, hash_name)
        self._size = hash_size
        self._partial = b""
        self._digests: list[bytes] = []

    def update(self, data: bytes) -> None:
        """Take the next bytes, and add the digest of each page that is complete."""
        view = memoryview(data)[: self._left]
        self._left -= len(view)
        page = self.page_size
        if self._partial:
            missing = page - len(self._partial)
            self._partial += bytes(view[:missing])
            view = view[missing:]
            if len(self._partial) < page:
                return
            self._digests.append(self._new(self._partial).digest())
        whole = len(view) // page * page
        new, append = self._new, self._digests.append
        for at in range(0, whole, page):
            append(new(view[at : at + page]).digest())
        self._partial = bytes(view[whole:])

    def digests(self) -> bytes:
        """Return all digests, joined; call once, at the end."""
        if self._partial:
            self._digests.append(self._new(self._partial).digest())
            self._partial = b""
        return b"".join(digest[: self._size] for digest in self._digests)
