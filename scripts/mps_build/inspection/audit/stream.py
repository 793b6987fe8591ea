"""Members' data, from a wheel file or an installed package's folder: unpacked, and read in one pass by two threads."""

from __future__ import annotations

import hashlib
import os
import queue
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from mps_build.common.files import is_machines, named, open_regular

from .archive import STORED, Member

_engine: Any = zlib  # two modules with the same functions
try:
    from isal import isal_zlib

    _engine = isal_zlib
except ImportError:
    pass

# Pieces large enough that two threads hand them over some 60 times and not 2000.
IN_BYTES, OUT_BYTES = 1 << 21, 1 << 23


class Damaged(Exception):
    """A member's data is not what the directory says."""


def unpack(descriptor: int, member: Member) -> Iterator[bytes]:
    """Yield the member's data in pieces of at most 8 MiB.

    Raises:
        Damaged: after the last good piece, if the data is cut off, longer than declared, or has another CRC.
    """
    crc = seen = 0
    for piece in _stored(descriptor, member) if member.method == STORED else _deflated(descriptor, member):
        seen += len(piece)
        if seen > member.size:
            raise Damaged(f"holds more than the {member.size} bytes it says")
        crc = _engine.crc32(piece, crc)
        yield piece
    if seen != member.size:
        raise Damaged(f"holds {seen} bytes and says {member.size}")
    if crc != member.crc:
        raise Damaged(f"has CRC {crc:08x} and says {member.crc:08x}")


def unpack_whole(descriptor: int, member: Member) -> bytes:
    """Return a small member's data at once.

    Raises:
        Damaged: as `unpack`.
    """
    return unpack_packed(os.pread(descriptor, member.packed, member.data_offset), member)


def unpack_packed(packed: bytes, member: Member) -> bytes:
    """Return a small member's data, given what of it lies in the archive.

    Raises:
        Damaged: as `unpack`.
    """
    if member.method == STORED:
        data = packed
    else:
        inflater = _engine.decompressobj(-zlib.MAX_WBITS)
        try:
            data = inflater.decompress(packed, member.size + 1)
        except _engine.error as error:
            raise Damaged(f"cannot be inflated: {error}") from error
        if not inflater.eof or inflater.unused_data:
            raise Damaged("is a deflate stream that ends elsewhere than the directory says")
    if len(data) != member.size:
        raise Damaged(f"holds {len(data)} bytes and says {member.size}")
    if (crc := _engine.crc32(data)) != member.crc:
        raise Damaged(f"has CRC {crc:08x} and says {member.crc:08x}")
    return data


def unpack_head(descriptor: int, member: Member, size: int) -> bytes:
    """Return the first `size` bytes, or all there are; the CRC is not looked at.

    Raises:
        Damaged: the data cannot be inflated that far.
    """
    head = bytearray()
    for piece in _stored(descriptor, member) if member.method == STORED else _deflated(descriptor, member, size):
        head += piece
        if len(head) >= size:
            break
    return bytes(head[:size])


def _stored(descriptor: int, member: Member) -> Iterator[bytes]:
    at, end = member.data_offset, member.data_offset + member.packed
    while at < end:
        piece = os.pread(descriptor, min(OUT_BYTES, end - at), at)
        if not piece:
            raise Damaged("is cut off")
        yield piece
        at += len(piece)


def _deflated(descriptor: int, member: Member, out_bytes: int = OUT_BYTES) -> Iterator[bytes]:
    inflater = _engine.decompressobj(-zlib.MAX_WBITS)
    at, end = member.data_offset, member.data_offset + member.packed
    pending = b""
    while not inflater.eof:
        if not pending and at < end:
            pending = os.pread(descriptor, min(IN_BYTES, end - at), at)
            at += len(pending)
        try:
            # Also with nothing left to give: what did not fit in the last piece may still be inside.
            piece = inflater.decompress(pending, out_bytes)
        except _engine.error as error:
            raise Damaged(f"cannot be inflated: {error}") from error
        if not piece and not pending:
            raise Damaged("is a deflate stream that is cut off")
        pending = inflater.unconsumed_tail
        if piece:
            yield piece
    if inflater.unused_data or at != end:
        raise Damaged("is a deflate stream that ends before its packed data")


MOST_TOGETHER_BYTES = 8 << 20


class Source(Protocol):
    """Gives members' data; `head` and `pieces` raise Damaged where they cannot, `few` yields it."""

    def head(self, member: Member, size: int) -> bytes:
        """Return the first `size` bytes of a member, or all if it is shorter.

        Raises:
            Damaged: it cannot be read.
        """

    def few(self, members: Sequence[Member]) -> Iterator[tuple[Member, bytes | Damaged]]:
        """Yield whole small members; one that is damaged is yielded as its error."""

    def pieces(self, member: Member) -> Iterator[bytes]:
        """Yield a member's data, piece by piece.

        Raises:
            Damaged: it cannot be read to its end.
        """


@dataclass(frozen=True, slots=True)
class ZipSource:
    """The open file of a wheel."""

    descriptor: int

    def head(self, member: Member, size: int) -> bytes:
        """Return the first bytes of a member, inflated.

        Raises:
            Damaged: its data cannot be inflated.
        """
        return unpack_head(self.descriptor, member, size)

    def few(self, members: Sequence[Member]) -> Iterator[tuple[Member, bytes | Damaged]]:
        """Yield the data of small members; neighbours, as they mostly are, are read in one go."""
        begin = min(member.data_offset for member in members)
        end = max(member.data_offset + member.packed for member in members)
        together = os.pread(self.descriptor, end - begin, begin) if end - begin <= MOST_TOGETHER_BYTES else None
        for member in members:
            at = member.data_offset - begin
            try:
                if together is None:
                    yield member, unpack_whole(self.descriptor, member)
                else:
                    yield member, unpack_packed(together[at : at + member.packed], member)
            except Damaged as damage:
                yield member, damage

    def pieces(self, member: Member) -> Iterator[bytes]:
        """Yield a member's inflated data; size and CRC are checked at the end.

        Raises:
            Damaged: it is cut off, or does not have the size or CRC that the directory says.
        """
        return unpack(self.descriptor, member)


@dataclass(frozen=True, slots=True)
class FolderSource:
    """The folder (site-packages) that members' names are relative to."""

    root: Path

    def head(self, member: Member, size: int) -> bytes:
        """Return the first bytes of an installed file.

        Raises:
            Damaged: it cannot be read.
        """
        return self._read(member, size)

    def few(self, members: Sequence[Member]) -> Iterator[tuple[Member, bytes | Damaged]]:
        """Yield whole installed files; one that cannot be read is yielded as its error."""
        for member in members:
            try:
                yield member, self._read(member, -1)
            except Damaged as damage:
                yield member, damage

    def pieces(self, member: Member) -> Iterator[bytes]:
        """Yield an installed file's data.

        Raises:
            Damaged: it cannot be read.
        """
        path = self.root / member.name
        try:
            with named(path), open_regular(path) as file:
                while piece := file.read(OUT_BYTES):
                    yield piece
        except OSError as error:
            if is_machines(error):  # says nothing of the wheel
                raise
            raise Damaged(f"cannot be read: {error.strerror}") from error

    def _read(self, member: Member, size: int) -> bytes:
        path = self.root / member.name
        try:
            with named(path), open_regular(path) as file:
                return file.read(size)
        except OSError as error:
            if is_machines(error):  # says nothing of the wheel
                raise
            raise Damaged(f"cannot be read: {error.strerror}") from error


LARGE_BYTES = 1 << 18
QUEUE_LENGTH = 6
SMALL_AT_ONCE = 64
REPORT_EVERY_BYTES = 8 << 20


class Watcher(Protocol):
    """Sees a member's data go by."""

    def update(self, data: bytes) -> None:
        """Take the next bytes of the member; they come in order and whole."""


class Piece(NamedTuple):
    """Some data of a large member, for its watcher."""

    watcher: Watcher
    data: bytes


@dataclass(slots=True, kw_only=True)
class Passed:
    """What one pass has seen: a digest of every member that is whole, and what is wrong with the others."""

    digests: dict[str, bytes] = field(default_factory=dict)
    damage: dict[str, str] = field(default_factory=dict)
    heads: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What to look for.

    Args:
        watchers: who sees the data, by member.
        algorithms: the hash that RECORD uses, where it is not sha256.
        heads: first four bytes that are worth telling (`Passed.heads`), whatever the member's name.
    """

    watchers: Mapping[str, Watcher]
    algorithms: Mapping[str, str]
    heads: frozenset[bytes]


def pass_over(source: Source, members: Sequence[Member], wish: Wish, *, advanced: Callable[[int], None]) -> Passed:
    """Return the digests of all members; `advanced` is called with the number of bytes done."""
    _keep_memory()
    passed = Passed()
    large = [member for member in members if max(member.size, member.packed) > LARGE_BYTES]
    waiting = deque(member for member in members if max(member.size, member.packed) <= LARGE_BYTES)
    inflating = _Inflating(source, large, wish, passed)
    done = reported = 0
    with inflating:
        while waiting or not inflating.is_over:
            piece = inflating.take(wait=not waiting)
            if piece is not None:
                piece.watcher.update(piece.data)
            elif waiting:
                few = [waiting.popleft() for _ in range(min(SMALL_AT_ONCE, len(waiting)))]
                done += _see_small(source, few, wish, passed)
            if done + inflating.done - reported >= REPORT_EVERY_BYTES:
                reported = done + inflating.done
                advanced(reported)
    return passed


def _keep_memory() -> None:
    """Have glibc reuse the memory of pieces, where it would give each back and fault it in anew (7 % of the whole).

    It takes the largest block that was ever freed for the size from which on blocks are mapped one by one
    (mallopt(3), M_MMAP_THRESHOLD); this one is never touched. Elsewhere it does nothing.
    """
    bytes(31 << 20)


def _see_small(source: Source, members: Sequence[Member], wish: Wish, passed: Passed) -> int:
    """Look at members whole; return their bytes."""
    done, watchers, algorithms, heads, sha256 = 0, wish.watchers, wish.algorithms, wish.heads, hashlib.sha256
    for member, data in source.few(members):
        name = member.name
        if isinstance(data, Damaged):
            passed.damage[name] = str(data)
            continue
        if name in watchers:
            watchers[name].update(data)
        if data[:4] in heads:
            passed.heads.add(name)
        digest = sha256(data) if name not in algorithms else hashlib.new(algorithms[name], data)
        passed.digests[name] = digest.digest()
        done += len(data)
    return done


class _Inflating:
    """The thread that inflates and hashes the large members; as a context, it ends with the block."""

    def __init__(self, source: Source, members: Sequence[Member], wish: Wish, passed: Passed) -> None:
        self.is_over = False
        self.done = 0
        self._source, self._members, self._wish, self._passed = source, members, wish, passed
        self._handed: queue.Queue[Piece | BaseException | None] = queue.Queue(QUEUE_LENGTH)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="inflate", daemon=True)

    def __enter__(self) -> _Inflating:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        while self._thread.is_alive():
            with suppress(queue.Empty):
                while True:
                    self._handed.get_nowait()
            self._thread.join(timeout=0.02)

    def take(self, *, wait: bool) -> Piece | None:
        """Return the next piece; None if there is none yet, or none any more (`is_over`).

        Raises what the thread raised.
        """
        if self.is_over:
            return None
        try:
            item = self._handed.get(block=wait)
        except queue.Empty:
            return None
        if isinstance(item, BaseException):
            raise item
        self.is_over = item is None
        return item

    def _run(self) -> None:
        try:
            for member in self._members:
                self._see_large(member)
            self._handed.put(None)
        except BaseException as error:
            self._handed.put(error)

    def _see_large(self, member: Member) -> None:
        watcher = self._wish.watchers.get(member.name)
        hasher = hashlib.new(self._wish.algorithms.get(member.name, "sha256"))
        is_first = True
        try:
            for data in self._source.pieces(member):
                if is_first and data[:4] in self._wish.heads:
                    self._passed.heads.add(member.name)
                is_first = False
                if watcher is not None:
                    self._handed.put(Piece(watcher, data))
                hasher.update(data)
                self.done += len(data)
                if self._stopped.is_set():
                    return
        except Damaged as error:
            self._passed.damage[member.name] = str(error)
        else:
            self._passed.digests[member.name] = hasher.digest()
