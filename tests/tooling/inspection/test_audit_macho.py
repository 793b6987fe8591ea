"""The readers of Mach-O, signatures, metallibs and symbols: right on what is right, unshaken by anything else."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mps_build.inspection.audit.contents import Contents, ContentsWatcher, PageHasher, hashers_for
from mps_build.inspection.audit.macho import head_size, name_kind, parse_macho
from mps_build.inspection.audit.metallib import FunctionList, parse_header
from mps_build.inspection.audit.signature import parse_signature
from mps_build.inspection.audit.symbols import Exports, uleb128
from mps_build.inspection.limits import Malformed
from small_wheels import COMMIT, Image, macho, metallib, signature, torch_cpu

CPU = macho(torch_cpu())


def contents(data: bytes, *, piece: int = 1 << 20) -> Contents:
    """Read a whole file as the stream does, in pieces."""
    watcher = ContentsWatcher(parse_macho(data[: head_size(data)]), size=len(data))
    for at in range(0, len(data), piece):
        watcher.update(data[at : at + piece])
    return watcher.finish()


def test_a_header_is_read_as_it_was_written() -> None:
    read = parse_macho(CPU)

    assert (read.cpu_name, read.file_type, read.platform, read.minos, read.sdk) == ("arm64", 6, 1, (14, 0), (26, 5))
    assert read.install_name == "@rpath/libtorch_cpu.dylib"
    assert read.rpaths == ("@loader_path",)
    assert [(each.path, each.kind) for each in read.dependencies] == list(torch_cpu().dependencies)
    assert {section.full_name for section in read.sections} == {
        "__TEXT,__cstring",
        "__TEXT,metal_basic",
        "__TEXT,metal_40",
    }
    assert read.tools == ((3, "1267.0"),)
    assert read.end == len(CPU) == read.linkedit["signature"].end


@pytest.mark.parametrize("piece", [1, 7, 4096, 1 << 20])
def test_contents_do_not_depend_on_how_the_data_comes(piece: int) -> None:
    found = contents(CPU, piece=piece)

    assert found.faults == {}
    assert found.signature is not None
    assert (found.bad_pages, found.unhashed) == (0, ())
    assert set(found.exports.names()) == set(torch_cpu().exports)
    assert found.undefined == set(torch_cpu().undefined)
    assert found.commit == COMMIT
    assert {name: metallib.header and metallib.header.os_version for name, metallib in found.metallibs.items()} == {
        "metal_basic": (14, 0),
        "metal_40": (26, 2),
    }
    assert [len(metallib.functions or ()) for metallib in found.metallibs.values()] == [120, 120]


@pytest.mark.parametrize("page_size", [4096, 16384])
def test_every_flipped_byte_before_the_signature_is_a_bad_page(page_size: int) -> None:
    data = macho(replace(torch_cpu(), page_size=page_size))
    limit = parse_macho(data).linkedit["signature"].offset
    dice = random.Random(1)
    for at in [4096 + dice.randrange(limit - 4096) for _ in range(20)]:
        flipped = data[:at] + bytes((data[at] ^ 0x10,)) + data[at + 1 :]

        assert contents(flipped).bad_pages == 1


def test_a_signature_of_another_hash_is_checked_by_a_second_pass() -> None:
    unsigned = macho(Image(is_signed=False)) + bytes(4096)
    signed = signature(unsigned, page_size=4096, room=2048, hash_type=1)
    (directory,) = parse_signature(signed).directories
    (hasher,) = hashers_for((directory,))
    for at in range(0, len(unsigned), 1000):
        hasher.update(unsigned[at : at + 1000])

    assert directory.hash_name == "sha1"
    assert directory.bad_pages(hasher.digests()) == 0


def test_pages_are_hashed_up_to_the_limit_and_no_further() -> None:
    one, other = (PageHasher(limit=5000, page_size=4096) for _ in range(2))
    one.update(bytes(9000))
    other.update(bytes(4999))
    other.update(bytes(2))

    assert one.digests() == other.digests()


def test_what_is_no_thin_64_bit_macho_is_named() -> None:
    for head, kind in {
        b"\x7fELF\2": "ELF",
        b"\xca\xfe\xba\xbe": "fat Mach-O",
        b"\xce\xfa\xed\xfe": "32-bit Mach-O",
        b"\xfe\xed\xfa\xcf": "big-endian Mach-O",
        b"MZ\x90\0": "Windows PE",
        b"#!/bin/sh\n": "text",
        b"": "an empty file",
        b"\0\1\2\3": "bytes 00 01 02 03",
    }.items():
        assert name_kind(head) == kind
        with pytest.raises(Malformed):
            parse_macho(head)


def absurd(at: int, value: int) -> bytes:
    return CPU[:at] + struct.pack("<I", value) + CPU[at + 4 :]


@pytest.mark.parametrize(
    "data",
    [
        CPU[:20],
        CPU[:100],
        absurd(16, 0xFFFFFFFF),  # load commands
        absurd(20, 0xFFFFFFFF),  # their bytes
        absurd(20, 8),
        absurd(36, 0xFFFFFFF8),  # the first command's size
        absurd(36, 0),
        absurd(32 + 64, 0xFFFFFFFF),  # its sections
    ],
)
def test_absurd_counts_are_refused_at_once(data: bytes) -> None:
    with pytest.raises(Malformed):
        parse_macho(data)


def mutants(data: bytes, *, count: int, seed: int, upto: int) -> list[bytes]:
    """Return copies of `data` with some of the first `upto` bytes changed, mostly to telling values, or cut off."""
    dice = random.Random(seed)
    words = [struct.pack("<I", value) for value in (0, 1, 7, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFF8, 1 << 24)]
    made = []
    for _ in range(count):
        changed = bytearray(data)
        for _ in range(dice.choice((1, 1, 2, 4, 16))):
            at = dice.randrange(upto)
            if dice.random() < 0.5:
                changed[at & ~3 : (at & ~3) + 4] = dice.choice(words)
            else:
                changed[at] = dice.randrange(256)
        if dice.random() < 0.1:
            del changed[dice.randrange(len(changed)) :]
        made.append(bytes(changed))
    return made


def holds(read: Callable[[], object]) -> bool:
    """Tell whether `read` took the bytes; anything but Malformed is a failure of the test."""
    try:
        read()
    except Malformed:
        return False
    return True


@pytest.mark.parametrize("count", [2000, pytest.param(12_000, marks=pytest.mark.slow)])
def test_thousands_of_mutated_headers_neither_crash_nor_fill_the_memory(count: int) -> None:
    head = CPU[: head_size(CPU)]
    made = mutants(head, count=count, seed=2, upto=len(head))
    taken = sum(holds(lambda data=data: parse_macho(data)) for data in made)  # type: ignore[misc]

    assert count / 12 < taken < 11 * count / 12
    assert peak_of(parse_macho, made[:1000]) < 5_000_000


def test_mutated_files_are_read_to_their_end() -> None:
    few = {**torch_cpu().sections, "metal_40": metallib(os=(26, 2), functions=3)}
    small = macho(replace(torch_cpu(), sections=few))
    made = mutants(small, count=600, seed=3, upto=head_size(small))

    assert peak_of(contents, made) < 50_000_000


def peak_of(read: Callable[[bytes], object], made: list[bytes]) -> int:
    """Return the most bytes that reading all of these took at one time."""
    tracemalloc.start()
    for data in made:
        holds(lambda data=data: read(data))  # type: ignore[misc]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_mutated_signatures_are_read_or_refused() -> None:
    data = signature(bytes(100_000), page_size=4096, room=2048, extra_slots=2)
    taken = [holds(lambda each=each: parse_signature(each)) for each in mutants(data, count=6000, seed=4, upto=200)]  # type: ignore[misc]

    assert any(taken)
    assert not all(taken)


def test_mutated_metallibs_are_read_or_refused() -> None:
    data = metallib(os=(14, 0), functions=5)

    def read(each: bytes) -> None:
        header = parse_header(each)
        FunctionList(each[header.list_offset : header.list_offset + header.list_size + 4]).names()

    taken = [holds(lambda each=each: read(each)) for each in mutants(data, count=6000, seed=5, upto=len(data) - 64)]  # type: ignore[misc]

    assert any(taken)
    assert not all(taken)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.binary(min_size=1, max_size=5))
def test_any_bytes_are_a_trie_or_refused(trie: bytes, name: bytes) -> None:
    exports = Exports(trie)
    holds(lambda: list(exports.names()))
    holds(lambda: uleb128(trie, 0))

    assert isinstance(name in exports, bool)


def test_a_trie_that_turns_in_a_circle_ends() -> None:
    circle = b"\0\1a\0\0"

    assert b"aaaa" not in Exports(circle)
    with pytest.raises(Malformed, match="is a second one"):
        list(Exports(circle).names())


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    holds(lambda: parse_macho(b"\xcf\xfa\xed\xfe" + data))
    holds(lambda: parse_signature(bytes.fromhex("fade0cc0") + data))
    holds(lambda: parse_header(b"MTLB" + data))
    holds(lambda: FunctionList(data).names())

    assert name_kind(data)
