"""Watches a member's data go by, keeps the runs of bytes that somebody wants, and hashes its pages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from .macho import Malformed, Range

MOST_KEPT_BYTES = 64 << 20


class RangeCollector:
    """Keeps chosen ranges of a stream; a delivered one may ask for ranges that come later."""

    def __init__(self) -> None:
        self._position = 0
        self._wanted: list[tuple[Range, bytearray, Callable[[bytes], None]]] = []

    def want(self, extent: Range, deliver: Callable[[bytes], None]) -> None:
        """Have `deliver` called with the bytes of `extent`, once they have gone by.

        Raises:
            Malformed: they are gone, or are absurdly many.
        """
        if extent.size > MOST_KEPT_BYTES:
            raise Malformed(f"{extent.size} bytes at byte {extent.offset}")
        if extent.offset < self._position:
            raise Malformed(f"byte {extent.offset} lies before what refers to it")
        self._wanted.append((extent, bytearray(), deliver))

    def update(self, data: bytes) -> None:
        begin, end = self._position, self._position + len(data)
        index = 0
        while index < len(self._wanted):
            extent, kept, deliver = self._wanted[index]
            if extent.offset < end:
                kept += data[max(extent.offset + len(kept) - begin, 0) : extent.end - begin]
                if len(kept) == extent.size:
                    del self._wanted[index]
                    # What it asks for now may lie in this very piece: it is appended, and met by this loop.
                    deliver(bytes(kept))
                    continue
            index += 1
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
