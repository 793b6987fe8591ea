"""Unpacks members piece by piece, never more than they say they hold.

isal inflates at twice zlib's speed and checks CRCs almost for nothing; where it has no wheel, zlib does.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Any

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
