"""Members of a zip carried over as they are compressed: what did not change is not deflated again."""

from __future__ import annotations

import csv
import io
import struct
import zipfile
from collections.abc import Mapping


def compressed(source: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a member as they lie in the file."""
    assert source.fp is not None
    source.fp.seek(info.header_offset)
    header = source.fp.read(30)
    name, extra = struct.unpack("<HH", header[26:30])
    source.fp.seek(info.header_offset + 30 + name + extra)
    return source.fp.read(info.compress_size)


def carry(target: zipfile.ZipFile, new: zipfile.ZipInfo, data: bytes, *, like: zipfile.ZipInfo) -> None:
    """Write `data`, compressed already, as a member; its sizes and its sum are those of `like`.

    zipfile has no call for this; the three attributes are what its own `_ZipWriteFile.close` sets.
    """
    assert target.fp is not None
    new.CRC, new.file_size, new.compress_size = like.CRC, like.file_size, like.compress_size
    new.compress_type = like.compress_type
    target.fp.seek(target.start_dir)
    new.header_offset = target.fp.tell()
    target.fp.write(new.FileHeader(zip64=False))
    target.fp.write(data)
    target.filelist.append(new)
    target.NameToInfo[new.filename] = new
    target.start_dir = target.fp.tell()


def recorded(wheel: zipfile.ZipFile) -> Mapping[str, tuple[str, str]]:
    """Return member -> (hash, size) as the wheel's RECORD tells them."""
    name = next(each for each in wheel.namelist() if each.endswith(".dist-info/RECORD") and each.count("/") == 1)
    rows = csv.reader(io.StringIO(wheel.read(name).decode("utf-8")))
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3 and row[1]}
