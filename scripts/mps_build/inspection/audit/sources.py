"""Where members' data comes from: a wheel file, or the folder that a wheel was installed to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mps_build.common.files import is_machines, named, open_regular

from .archive import Member
from .inflate import OUT_BYTES, Damaged, unpack, unpack_head, unpack_packed, unpack_whole

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
