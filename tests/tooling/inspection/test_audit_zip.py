"""Archives that two programs could read differently, or none: every one is reported, and nothing is unpacked."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from mps_build.inspection.audit import audit_wheel
from mps_build.inspection.audit.archive import read_archive
from mps_build.inspection.audit.stream import Damaged, unpack, unpack_whole
from small_wheels import add_member, torch_files, write_wheel

FILES = {"a/one.py": b"one = 1\n" * 50, "a/two.bin": bytes(range(256)) * 8, "a/three.py": b"three = 3\n"}
CENTRAL = b"PK\1\2"


def plain(method: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for member, data in FILES.items():
            add_member(archive, member, data)
        archive.comment = comment
    return stream.getvalue()


def faults(folder: Path, data: bytes) -> list[tuple[str, str]]:
    path = folder / "x.whl"
    path.write_bytes(data)
    return [(fault.rule, f"{fault.member}: {fault.evidence}") for fault in read_archive(path).faults]


def with_member(member: str, data: bytes = b"x", *, mode: int = 0o100644) -> bytes:
    stream = io.BytesIO(plain())
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_DEFLATED) as archive:
        add_member(archive, member, data, mode=mode)
    return stream.getvalue()


def patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def central(data: bytes, index: int) -> int:
    """Return where the directory's entry number `index` begins."""
    at = struct.unpack_from("<L", data, data.rfind(b"PK\5\6") + 16)[0]
    for _ in range(index):
        at += 46 + sum(struct.unpack_from("<3H", data, at + 28))
    return int(at)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_plain_archive_has_no_fault_and_gives_its_data(method: int, tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    path.write_bytes(plain(method, comment=b"a comment harms nobody"))

    archive = read_archive(path)

    assert archive.faults == ()
    with path.open("rb") as file:
        assert {member.name: unpack_whole(file.fileno(), member) for member in archive.members} == FILES
        assert {member.name: b"".join(unpack(file.fileno(), member)) for member in archive.members} == FILES


def test_streamed_archives_with_data_descriptors_are_plain(tmp_path: Path) -> None:
    class Unseekable(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise io.UnsupportedOperation

        def tell(self) -> int:
            raise io.UnsupportedOperation

    stream = Unseekable()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in FILES.items():
            archive.writestr(member, data)

    assert faults(tmp_path, stream.getvalue()) == []


def test_a_zip64_field_that_nobody_needed_is_plain(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive, archive.open("a.py", "w", force_zip64=True) as member:
        member.write(b"x")

    data = stream.getvalue()
    assert faults(tmp_path, data) == []
    (said,) = faults(tmp_path, patched(data, data.index(b"\1\0\x10\0") + 4, b"\x09"))
    assert "does not repeat the directory" in said[1]


def _two_names(data: bytes) -> bytes:
    return data.replace(b"a/one.py", b"a/uno.py", 1)


def _zip64_contradiction(data: bytes) -> bytes:
    """Give a zip64 record that leads to another directory than the end record."""
    end = data.rfind(b"PK\5\6")
    count, size, offset = struct.unpack_from("<HLL", data, end + 10)
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count - 1, count - 1, size, offset)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, end, 1)
    return data[:end] + record + locator + data[end:]


def _bomb() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.bin", bytes(60_000_000))
    return stream.getvalue()


def _two_files_on_one_place(data: bytes) -> bytes:
    return patched(data, central(data, 1) + 42, data[central(data, 0) + 42 : central(data, 0) + 46])


AMBIGUOUS: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "the file is empty"),
    "text": (lambda: b"this is not a zip at all, whatever its name says\n", "no end record"),
    "cut_off": (lambda: plain()[:-30], "no end record"),
    "cut_in_front": (lambda: plain()[10:], "outside the file"),
    "prepended": (lambda: b"#!/bin/sh\n" + plain(), "prepended"),
    "appended": (lambda: plain() + b"more", "4 bytes follow the end record"),
    "hidden_end_record": (lambda: plain(comment=b"PK\5\6" + bytes(18)), ""),
    "duplicate": (lambda: with_member("a/uno.py").replace(b"a/uno.py", b"a/one.py"), "is there two times"),
    "same_but_for_case": (lambda: with_member("A/One.py"), "where case does not count"),
    "file_and_folder": (lambda: with_member("a"), "is a file and a folder"),
    "other_name_in_header": (lambda: _two_names(plain()), "in its own header"),
    "other_crc_in_header": (lambda: patched(plain(), 14, b"\0\0\0\0"), "CRC"),
    "other_size_in_header": (lambda: patched(plain(), 22, b"\1\0\0\0"), "has size"),
    "other_method_in_header": (lambda: patched(plain(), 8, b"\0\0"), "compression method"),
    "encrypted": (lambda: patched(plain(), central(plain(), 0) + 8, b"\1\0"), "encrypted"),
    "bzip2": (lambda: plain(zipfile.ZIP_BZIP2), "compression method 12"),
    "lzma": (lambda: plain(zipfile.ZIP_LZMA), "compression method 14"),
    "overlapping": (lambda: _two_files_on_one_place(plain()), "overlaps"),
    "unused_bytes": (lambda: patched(plain(), central(plain(), 1) + 42, b"\0\0\0\0"), ""),
    "count_too_small": (lambda: patched(plain(), plain().rfind(b"PK\5\6") + 8, b"\2\0\2\0"), "follow the last"),
    "count_too_large": (lambda: patched(plain(), plain().rfind(b"PK\5\6") + 8, b"\4\0\4\0"), "no directory entry"),
    "several_disks": (lambda: patched(plain(), plain().rfind(b"PK\5\6") + 4, b"\1\0"), "one part of several"),
    "zip64_contradiction": (lambda: _zip64_contradiction(plain()), "zip64 record says"),
    "zip64_missing": (lambda: patched(plain(), plain().rfind(b"PK\5\6") + 16, b"\xff" * 4), "zip64"),
    "nul_in_name": (lambda: plain().replace(b"a/one.py", b"a/one\0py"), "NUL"),
    "name_not_utf8": (lambda: plain().replace(b"a/one.py", b"a/\xff\xfee.py"), "not ASCII"),
    "bomb": (_bomb, "zip bomb"),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_an_ambiguous_archive_is_reported_and_not_read_on(case: str, tmp_path: Path) -> None:
    make, words = AMBIGUOUS[case]

    found = faults(tmp_path, make())

    assert any(rule == "Z1" and words in evidence for rule, evidence in found), found
    assert not read_archive(tmp_path / "x.whl").is_readable


@pytest.mark.parametrize(
    "name",
    ["../evil.py", "a/../../evil.py", "/etc/evil", "a\\evil.py", "C:/evil.py", "a//evil.py", "./evil.py", "a/\x07.py"],
)
def test_a_name_that_leads_outside_is_reported(name: str, tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        with_member("a/safe.py".ljust(len(name), "x")).replace(b"a/safe.py".ljust(len(name), b"x"), name.encode()),
    )
    if len(name) < len("a/safe.py"):
        found = faults(tmp_path, with_member("q" * len(name)).replace(b"q" * len(name), name.encode()))

    assert ("Z2", f"{name}: is not a plain path inside the wheel") in found


@pytest.mark.parametrize(("mode", "kind"), [(0o120777, "symbolic link"), (0o010644, "pipe"), (0o020644, "device")])
def test_a_member_that_is_no_file_is_reported(mode: int, kind: str, tmp_path: Path) -> None:
    found = faults(tmp_path, with_member("a/link", b"/etc/passwd", mode=mode))

    assert [rule for rule, _ in found] == ["Z3"]
    assert kind in found[0][1]


def test_damaged_data_is_reported_by_member(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, torch_files())
    data = bytearray(wheel.read_bytes())
    victim = next(member for member in read_archive(wheel).members if member.name.endswith("libshm.dylib"))
    data[victim.data_offset + victim.packed // 2] ^= 0xFF
    wheel.write_bytes(data)

    audit = audit_wheel(wheel)

    assert audit.verdict == "rejected"
    assert {(finding.rule, finding.member) for finding in audit.findings if finding.rule == "Z1"} == {
        ("Z1", victim.name)
    }


def test_a_member_that_holds_more_than_it_says_is_never_unpacked_whole(tmp_path: Path) -> None:
    """The directory and the header say 10 bytes; the data inflates to 60 MB."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.bin", bytes(60_000_000))
    data = stream.getvalue()
    for at in (22, central(data, 0) + 24):
        data = patched(data, at, struct.pack("<L", 10))
    path = tmp_path / "x.whl"
    path.write_bytes(data)
    (member,) = read_archive(path).members

    with path.open("rb") as file, pytest.raises(Damaged, match="ends elsewhere"):
        unpack_whole(file.fileno(), member)
    with path.open("rb") as file, pytest.raises(Damaged, match="holds more than the 10 bytes"):
        for piece in unpack(file.fileno(), member):
            assert len(piece) <= 1 << 23


def test_a_thousand_mutations_of_a_wheel_end_in_a_verdict(tmp_path: Path) -> None:
    files = {member: data for member, data in torch_files().items() if "dispatch" not in member}
    whole = write_wheel(tmp_path, files)
    data = whole.read_bytes()
    structure = [at for at in range(len(data)) if at < 200 or at > len(data) - 2500]
    dice = random.Random(20261121)
    mutant = tmp_path / "mutant" / whole.name
    mutant.parent.mkdir()
    seen = set()
    for round_number in range(1000):
        changed = bytearray(data)
        for _ in range(dice.choice((1, 1, 2, 8))):
            changed[dice.choice(structure)] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        if dice.random() < 0.1:
            del changed[dice.randrange(len(changed)) :]
        mutant.write_bytes(changed)
        archive = read_archive(mutant)
        seen.add(archive.is_readable)
        assert archive.is_readable or archive.faults
        if round_number % 20 == 0:
            assert audit_wheel(mutant).verdict == "rejected"  # it has no dispatch headers

    assert seen == {True, False}
