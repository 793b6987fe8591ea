"""Where members' data comes from: a wheel file, or the folder that a wheel was installed to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .archive import Member
from .inflate import OUT_BYTES, Damaged, unpack, unpack_head, unpack_whole


class Source(Protocol):
    """Gives members' data; each method raises Damaged where it cannot."""

    def head(self, member: Member, size: int) -> bytes: ...
    def whole(self, member: Member) -> bytes: ...
    def pieces(self, member: Member) -> Iterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class ZipSource:
    """The open file of a wheel."""

    descriptor: int

    def head(self, member: Member, size: int) -> bytes:
        return unpack_head(self.descriptor, member, size)

    def whole(self, member: Member) -> bytes:
        return unpack_whole(self.descriptor, member)

    def pieces(self, member: Member) -> Iterator[bytes]:
        return unpack(self.descriptor, member)


@dataclass(frozen=True, slots=True)
class FolderSource:
    """The folder (site-packages) that members' names are relative to."""

    root: Path

    def head(self, member: Member, size: int) -> bytes:
        return self._read(member, size)

    def whole(self, member: Member) -> bytes:
        return self._read(member, -1)

    def pieces(self, member: Member) -> Iterator[bytes]:
        try:
            with (self.root / member.name).open("rb") as file:
                while piece := file.read(OUT_BYTES):
                    yield piece
        except OSError as error:
            raise Damaged(f"cannot be read: {error.strerror}") from error

    def _read(self, member: Member, size: int) -> bytes:
        try:
            with (self.root / member.name).open("rb") as file:
                return file.read(size)
        except OSError as error:
            raise Damaged(f"cannot be read: {error.strerror}") from error
