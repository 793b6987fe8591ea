"""One pass over all members, in two threads that meet seldom.

Inflating and hashing both leave the interpreter's lock, but taking it up again costs more than a small
member does. So one thread inflates and hashes the large members (libtorch_cpu.dylib of torch 2.15 has 422 MB)
and hands on what somebody wants to look at, in large pieces; the other looks at those, and takes the 13 000
small members whole while there are none. Only pieces are held.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from .archive import Member
from .inflate import Damaged
from .sources import Source

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
