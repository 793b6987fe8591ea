"""An embedded code signature: the superblob, its code directories, and whether every page has its hash.

This proves that the bytes are those that were signed, not who signed them: official torch wheels, like
ours, are signed ad hoc. The layout is that of Apple's cs_blobs.h (XNU, bsd/sys/codesign.h).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass

from ..limits import Malformed

EMBEDDED_SIGNATURE, CODE_DIRECTORY = 0xFADE0CC0, 0xFADE0C02
MOST_BLOBS = 64
# x86_64 torch 1.11 has 89 545 pages of 4 KiB; 4 GiB of them are a million.
MOST_PAGES = 1 << 20
HASH_NAMES = {1: "sha1", 2: "sha256", 3: "sha256-20", 4: "sha384"}
_HASHES: dict[int, tuple[Callable[[bytes | memoryview], bytes], int]] = {
    1: (lambda data: hashlib.sha1(data, usedforsecurity=False).digest(), 20),
    2: (lambda data: hashlib.sha256(data).digest(), 32),
    3: (lambda data: hashlib.sha256(data).digest()[:20], 20),
    4: (lambda data: hashlib.sha384(data).digest(), 48),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeDirectory:
    """One list of page hashes, and what else it vouches for."""

    slot: int
    version: int
    flags: int
    identifier: str
    team: str | None
    hash_type: int
    page_size: int
    code_limit: int
    hashes: bytes
    special: tuple[tuple[int, bytes], ...]

    @property
    def hash_size(self) -> int:
        """Bytes of a page's digest."""
        return _HASHES[self.hash_type][1]

    @property
    def hash_name(self) -> str:
        """The hash's name, such as "sha256"."""
        return HASH_NAMES[self.hash_type]

    @property
    def page_count(self) -> int:
        """How many pages the directory has digests of."""
        return len(self.hashes) // self.hash_size

    def digest(self, data: bytes | memoryview) -> bytes:
        """Return the digest of a page by this directory's hash."""
        return _HASHES[self.hash_type][0](data)

    def bad_pages(self, digests: bytes) -> int:
        """Return how many of `digests`, joined in page order, are not the signed ones."""
        if digests == self.hashes:
            return 0
        size = self.hash_size
        pairs = range(0, max(len(digests), len(self.hashes)), size)
        return sum(digests[at : at + size] != self.hashes[at : at + size] for at in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """All code directories, and the other blobs by slot."""

    directories: tuple[CodeDirectory, ...]
    blobs: dict[int, bytes]

    @property
    def strongest(self) -> CodeDirectory:
        """The one the kernel uses: the last in this order of hash types."""
        order = (1, 3, 2, 4)
        return max(self.directories, key=lambda directory: order.index(directory.hash_type))

    @property
    def is_ad_hoc(self) -> bool:
        """No certificate: the CMS slot is absent or empty."""
        return len(self.blobs.get(0x10000, b"")) <= 8

    def bad_blobs(self) -> tuple[int, ...]:
        """Return the slots whose blob is not the one that the directories hashed."""
        return tuple(
            slot
            for directory in self.directories
            for slot, wanted in directory.special
            if slot in self.blobs and any(wanted) and directory.digest(self.blobs[slot]) != wanted
        )


def parse_signature(data: bytes) -> Signature:
    """Return the signature that fills LC_CODE_SIGNATURE's range (padding may follow it).

    Raises:
        Malformed: with what does not fit.
    """
    if len(data) < 12:
        raise Malformed(f"{len(data)} bytes hold no signature")
    magic, length, count = struct.unpack_from(">3I", data)
    if magic != EMBEDDED_SIGNATURE:
        raise Malformed(f"begins with {magic:08x}, not {EMBEDDED_SIGNATURE:08x}")
    if length > len(data) or count > MOST_BLOBS or 12 + 8 * count > length:
        raise Malformed(f"says {count} blobs in {length} bytes; there are {len(data)}")
    directories: list[CodeDirectory] = []
    blobs: dict[int, bytes] = {}
    left = length
    for index in range(count):
        slot, offset = struct.unpack_from(">2I", data, 12 + 8 * index)
        if offset + 8 > length:
            raise Malformed(f"blob {index} begins at byte {offset} of {length}")
        blob_magic, blob_length = struct.unpack_from(">2I", data, offset)
        if blob_length < 8 or offset + blob_length > length:
            raise Malformed(f"blob {index} has {blob_length} bytes at byte {offset} of {length}")
        blob = data[offset : offset + blob_length]
        left -= blob_length
        if left < 0:
            raise Malformed(f"its blobs have more than the {length} bytes around them: they overlap")
        if slot in blobs:
            raise Malformed(f"two blobs in slot {slot:#x}")
        blobs[slot] = blob
        if slot == 0 or 0x1000 <= slot < 0x1006:
            if blob_magic != CODE_DIRECTORY:
                raise Malformed(f"slot {slot:#x} holds {blob_magic:08x}, no code directory")
            directories.append(_parse_directory(slot, blob))
            if directories[-1].hash_type in {each.hash_type for each in directories[:-1]}:
                raise Malformed(f"two code directories with {directories[-1].hash_name}")
    if not directories:
        raise Malformed("has no code directory")
    return Signature(directories=tuple(directories), blobs=blobs)


def _parse_directory(slot: int, blob: bytes) -> CodeDirectory:
    if len(blob) < 44:
        raise Malformed(f"a code directory of {len(blob)} bytes")
    version, flags, hash_offset, identifier_offset, special_count, count, limit = struct.unpack_from(">7I", blob, 8)
    hash_size, hash_type, _, page_bits = struct.unpack_from(">4B", blob, 36)
    if hash_type not in _HASHES or _HASHES[hash_type][1] != hash_size:
        raise Malformed(f"hash type {hash_type} with {hash_size} bytes")
    if count > MOST_PAGES or special_count > 64 or not 12 <= page_bits <= 16:
        raise Malformed(f"{count} pages of 2**{page_bits} bytes, {special_count} special slots")
    if hash_offset < 44 + special_count * hash_size or hash_offset + count * hash_size > len(blob):
        raise Malformed(f"{count} hashes at byte {hash_offset} of {len(blob)}")
    if version >= 0x20300 and len(blob) >= 64:
        (wide_limit,) = struct.unpack_from(">Q", blob, 56)
        limit = wide_limit or limit
    page_size = 1 << page_bits
    if -(-limit // page_size) != count:
        raise Malformed(f"{count} hashes for {limit} bytes in pages of {page_size}")
    team_offset = struct.unpack_from(">I", blob, 48)[0] if version >= 0x20200 and len(blob) >= 52 else 0
    return CodeDirectory(
        slot=slot,
        version=version,
        flags=flags,
        identifier=_string(blob, identifier_offset) or "",
        team=_string(blob, team_offset),
        hash_type=hash_type,
        page_size=page_size,
        code_limit=limit,
        hashes=blob[hash_offset : hash_offset + count * hash_size],
        special=tuple(
            (number, blob[hash_offset - number * hash_size : hash_offset - (number - 1) * hash_size])
            for number in range(1, special_count + 1)
        ),
    )


def _string(blob: bytes, offset: int) -> str | None:
    if not offset:
        return None
    if offset >= len(blob):
        raise Malformed(f"a string at byte {offset} of a code directory of {len(blob)}")
    return blob[offset:].partition(b"\0")[0].decode("utf-8", "backslashreplace")
