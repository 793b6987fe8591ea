"""A wheel's members, each read up to a bound, and the directory that names them looked at before zipfile reads it."""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..opening import open_regular

_END, _END64 = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q")
MOST_MEMBERS, MOST_DIRECTORY_BYTES = 65_000, 8_000_000
# METADATA has some 34 kB, torch/version.py 290 bytes, our bill of materials some 100 kB.
MOST_BYTES = 8 << 20


class UnsoundWheel(Exception):
    """The file is not a zip, or holds more than is read of one."""


class Members:
    """The members of one open wheel."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.names = tuple(archive.namelist())

    def read(self, name: str, *, most_bytes: int = MOST_BYTES) -> bytes:
        """Return a member's data.

        Raises:
            UnsoundWheel: it is damaged, encrypted, or larger than `most_bytes`, whatever its header says.
        """
        try:
            with self._archive.open(name) as member:
                data = member.read(most_bytes + 1)
        except (OSError, ValueError, RuntimeError, NotImplementedError, EOFError, KeyError) as error:
            raise UnsoundWheel(f"{name} cannot be read: {error}") from error
        except (zipfile.BadZipFile, zlib.error, struct.error) as error:
            raise UnsoundWheel(f"{name} is damaged: {error}") from error
        if len(data) > most_bytes:
            raise UnsoundWheel(f"{name} has more than {most_bytes} bytes")
        return data

    def read_all(self, names: Iterable[str], *, most_bytes: int) -> Iterator[tuple[str, bytes]]:
        """Yield the name and data of each of several members.

        Raises:
            UnsoundWheel: one of them cannot be read, or they have more than `most_bytes` together.
        """
        left = most_bytes
        for name in names:
            data = self.read(name, most_bytes=left)
            left -= len(data)
            yield name, data


@contextmanager
def open_wheel(path: Path) -> Iterator[Members]:
    """Give the wheel's members.

    Raises:
        UnsoundWheel: as for `members_of`; OSError: the file cannot be opened, or is not a file.
    """
    with open_regular(path) as file, members_of(file) as members:
        yield members


@contextmanager
def members_of(file: IO[bytes]) -> Iterator[Members]:
    """Give the members of a wheel that is open already.

    Raises:
        UnsoundWheel: the file is not a zip, or its directory is larger than any wheel's.
    """
    try:
        _check_directory(file)
        archive = zipfile.ZipFile(file)
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile, struct.error) as error:
        raise UnsoundWheel(f"is not a zip file: {error}") from error
    with archive:
        yield Members(archive)


def _check_directory(file: IO[bytes]) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 0xFFFF - _END.size - _END64.size - 20, 0))
    tail = file.read()
    at = tail.rfind(b"PK\5\6")
    if at < 0 or at + _END.size > len(tail):
        raise UnsoundWheel("is not a zip file: it has no end record")
    count, length = _END.unpack_from(tail, at)[4:6]
    wide = tail.rfind(b"PK\6\6", 0, at)
    if wide >= 0 and wide + _END64.size <= len(tail):
        wide_count, wide_length = _END64.unpack_from(tail, wide)[7:9]
        # The narrow fields are all ones where the wide ones count.
        count, length = max(count % 0xFFFF, wide_count), max(length % 0xFFFFFFFF, wide_length)
    if count > MOST_MEMBERS or length > MOST_DIRECTORY_BYTES:
        raise UnsoundWheel(f"its directory has {count} members in {length} bytes, more than is read")
