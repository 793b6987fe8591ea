"""One pass over all members: inflated in one thread, hashed and looked at in another.

Inflating and hashing both leave the interpreter's lock, so that two threads take little more time than the
longer of the two. Only pieces are held: libtorch_cpu.dylib of torch 2.15 has 422 MB.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from .archive import Member
from .inflate import Damaged
from .sources import Source

WHOLE_BYTES = 1 << 18
BATCH_BYTES = 1 << 20
QUEUE_LENGTH = 8


class Watcher(Protocol):
    """Sees a member's data go by."""

    def update(self, data: bytes) -> None: ...


class Piece(NamedTuple):
    """Some data of a member; a member ends with its piece that `is_last`."""

    member: Member
    data: bytes
    is_last: bool
    damage: str | None = None


@dataclass(slots=True, kw_only=True)
class Passed:
    """What one pass has seen: a digest of every member that is whole, and what is wrong with the others."""

    digests: dict[str, bytes] = field(default_factory=dict)
    damage: dict[str, str] = field(default_factory=dict)
    heads: dict[str, bytes] = field(default_factory=dict)


def pass_over(
    source: Source,
    members: Sequence[Member],
    *,
    watchers: Mapping[str, Watcher],
    algorithms: Mapping[str, str],
    interesting_heads: frozenset[bytes],
    advanced: Callable[[int], None],
) -> Passed:
    """Return the digests of all members.

    Args:
        watchers: who sees the data, by member.
        algorithms: the hash that RECORD uses, where it is not sha256.
        interesting_heads: first four bytes that are worth telling (`heads`), whatever the member's name.
        advanced: is told the bytes unpacked so far.
    """
    passed = Passed()
    done = 0
    sha256 = hashlib.sha256
    hasher = sha256()
    is_first = True
    for batch in _in_a_thread(_batches(source, members)):
        for member, data, is_last, damage in batch:
            name = member.name
            watcher = watchers.get(name)
            if watcher is not None and data:
                watcher.update(data)
            if is_first and data[:4] in interesting_heads:
                passed.heads[name] = data[:4]
            done += len(data)
            if is_first and is_last and damage is None and name not in algorithms:
                passed.digests[name] = sha256(data).digest()
                continue
            if is_first:
                hasher = hashlib.new(algorithms.get(name, "sha256"))
            hasher.update(data)
            is_first = is_last
            if is_last and damage is None:
                passed.digests[name] = hasher.digest()
            elif is_last:
                passed.damage[name] = str(damage)
        advanced(done)
    return passed


def _batches(source: Source, members: Sequence[Member]) -> Iterator[list[Piece]]:
    """Yield pieces; small members together, so that the two threads meet some hundred times and not 13 000."""
    batch: list[Piece] = []
    batched = 0
    for member in members:
        if member.size <= WHOLE_BYTES and member.packed <= 2 * WHOLE_BYTES:
            try:
                batch.append(Piece(member, source.whole(member), True))
            except Damaged as damage:
                batch.append(Piece(member, b"", True, str(damage)))
            batched += member.size
            if batched >= BATCH_BYTES:
                yield batch
                batch, batched = [], 0
            continue
        if batch:
            yield batch
            batch, batched = [], 0
        damage_text = None
        try:
            for data in source.pieces(member):
                yield [Piece(member, data, False)]
        except Damaged as damage:
            damage_text = str(damage)
        yield [Piece(member, b"", True, damage_text)]
    if batch:
        yield batch


def _in_a_thread(batches: Iterator[list[Piece]]) -> Iterator[list[Piece]]:
    """Yield what another thread makes; its exceptions are raised here, and it ends when this does."""
    handed: queue.Queue[list[Piece] | BaseException | None] = queue.Queue(QUEUE_LENGTH)
    stopped = threading.Event()

    def make() -> None:
        try:
            for batch in batches:
                handed.put(batch)
                if stopped.is_set():
                    return
            handed.put(None)
        except BaseException as error:
            handed.put(error)

    thread = threading.Thread(target=make, name="inflate", daemon=True)
    thread.start()
    try:
        while (item := handed.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        while thread.is_alive():
            try:
                handed.get(timeout=0.05)
            except queue.Empty:
                continue
        thread.join()
