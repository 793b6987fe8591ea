"""Official wheels, fetched and read whole: their facts, their verdicts, and what spoiled copies fail by.

Needs the network once (200 MB for the five of the issue, 1.4 GB with MPS_BUILD_ALL_WHEELS=1); wheels stay in the cache.
The expected facts were read by other programs, not by the audit: tests/recorded/official_wheels/facts.json.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mps_build.common.reporting import SilentReporter
from mps_build.common.wheels.download import fetch_wheel
from mps_build.common.workspace import cache_folder
from mps_build.inspection.audit import Audit, audit_wheel
from mps_build.inspection.audit.archive import Member, read_archive
from mps_build.inspection.audit.stream import unpack
from small_wheels import record_of

pytestmark = pytest.mark.slow

EXPECTED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "recorded" / "official_wheels" / "facts.json").read_text(encoding="utf-8")
)
OF_THE_ISSUE = {"1.12.1", "2.0.1", "2.6.0", "2.10.0", "2.15.0"}
NEWEST = "torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl"
# The rules that the official wheel of each release breaks.
STRICT_ERRORS = {
    "1.12.1": "T2 P1 P6 A3 V1 S1",
    **dict.fromkeys(("1.13.1", "2.0.1", "2.1.2"), "T2 P1 P6"),
    **dict.fromkeys(("2.2.2", "2.3.1", "2.4.1", "2.5.1"), "T2 P1 P6 V3"),
    "2.6.0": "T2 P1 P6 V3 M10",
    **dict.fromkeys(("2.7.1", "2.8.0", "2.9.1"), "T2 P1 V3 M10"),
    "2.10.0": "V3 M10",
    "2.11.0": "M10",
    **dict.fromkeys(("2.12.1", "2.13.0", "2.14.1", "2.15.0"), ""),
}


def version_of(name: str) -> str:
    return name.split("-")[1]


WANTED = [name for name in EXPECTED if os.environ.get("MPS_BUILD_ALL_WHEELS") or version_of(name) in OF_THE_ISSUE]


def fetched(name: str) -> Path:
    python = name.split("-")[-3].removeprefix("cp3")
    cache = cache_folder()
    wheel = fetch_wheel(
        f"torch=={version_of(name)}",
        python=f"3.{python}",
        cache=cache / "wheels",
        log=cache / "logs" / "fetch_wheel.log",
        reporter=SilentReporter(),
    )
    assert wheel.path.name == name
    return wheel.path


def errors(audit: Audit) -> set[str]:
    return {finding.rule for finding in audit.findings if finding.level == "error"}


@pytest.mark.parametrize("name", WANTED)
def test_an_official_wheel_has_the_recorded_facts_and_the_right_verdicts(name: str) -> None:
    version, expected = version_of(name), EXPECTED[name]

    strict = audit_wheel(fetched(name))
    official = audit_wheel(fetched(name), profile="official")

    facts = strict.document()["facts"]
    for key in (
        "size",
        "generator",
        "wheel_tags",
        "build",
        "requires_python",
        "git_version",
        "members",
        "uncompressed",
    ):
        assert facts[key] == expected[key], key
    assert facts["record_rows"] == expected["record_rows"]
    assert facts["mps_dispatch_headers"] == expected["dispatch_headers"]
    for key in ("exported_at_mps", "imported_kmpc", "imported_omp", "metal_sources"):
        assert facts["torch"][key] == expected[key], key
    assert facts["torch"]["cxx_compiler"] == expected["cxx_compiler"][0]
    sections = facts["macho"]["torch/lib/libtorch_cpu.dylib"]["metal_sections"]
    assert {f"__TEXT,{section}": size for section, size in sections.items()} == expected["metal_sections"]
    assert facts["macho"].keys() == expected["macho"].keys()
    for member, wanted in expected["macho"].items():
        found = facts["macho"][member]
        signature = wanted.pop("signature", None)
        assert {key: found[key] for key in wanted} == wanted, member
        if signature:
            assert {key: found["signature"][key] for key in signature} == signature, member
    assert errors(strict) == set(STRICT_ERRORS[version].split())
    assert (official.verdict, errors(official)) == ("accepted", set())
    assert strict.kind == ("aot" if sections else "jit")


class Copy:
    """A wheel that is written anew from another, member by member, with what is spoiled in between."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.changed: dict[str, bytes | None] = {}
        self.added: dict[str, bytes] = {}
        self.has_new_record = True
        self.record_edit: tuple[bytes, bytes] = (b"", b"")
        with source.open("rb") as file:
            self.members = read_archive(source).members
            self._descriptor = os.dup(file.fileno())

    def data(self, name: str) -> bytes:
        (member,) = (each for each in self.members if each.name == name)
        return b"".join(unpack(self._descriptor, member))

    def patch(self, name: str, old: bytes, new: bytes, *, at: int = 0) -> None:
        data = self.data(name)
        where = data.index(old, at)
        self.changed[name] = data[:where] + new + data[where + len(new) :]
        assert len(old) == len(new)

    def write(self, folder: Path, name: str = NEWEST) -> Path:
        if self.has_new_record:
            self._redo_record()
        path = folder / name
        with path.open("wb") as file:
            entries = []
            for member, packed, data in self._parts():
                crc = zlib.crc32(data) if data is not None else member.crc
                size, method = (len(data), 0) if data is not None else (member.size, member.method)
                fields = struct.pack("<5H3L", 20, 0, method, 0, 0x5C21, crc, len(packed), size)
                raw = member.name.encode()
                entries.append((fields, raw, member.mode, file.tell()))
                file.write(b"PK\3\4" + fields + struct.pack("<2H", len(raw), 0) + raw + packed)
            begin = file.tell()
            for fields, raw, mode, offset in entries:
                tail = struct.pack("<5H2L", len(raw), 0, 0, 0, 0, mode << 16, offset)
                file.write(b"PK\1\2" + struct.pack("<H", 0x0314) + fields + tail + raw)
            size = file.tell() - begin
            file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(entries), len(entries), size, begin, 0))
        return path

    def _parts(self) -> Iterator[tuple[Member, bytes, bytes | None]]:
        """Yield each member, its packed data, and its plain data if that is new."""
        for member in self.members:
            new = self.changed.get(member.name, b"")
            if new is None:
                continue
            if member.name in self.changed:
                yield member, new, new
            else:
                yield member, os.pread(self._descriptor, member.packed, member.data_offset), None
        for name, data in self.added.items():
            yield self.members[0]._replace(name=name, mode=0o100644), data, data

    def _redo_record(self) -> None:
        info = f"torch-{version_of(self.source.name)}.dist-info"
        rows = self.data(f"{info}/RECORD").decode().splitlines(keepends=True)
        kept = []
        for row in rows:
            name = row.partition(",")[0]
            new = self.changed.get(name, b"")
            if name not in self.changed:
                kept.append(row)
            elif new is not None:
                kept.append(record_of({name: new}, info).decode().splitlines(keepends=True)[0])
        self.changed[f"{info}/RECORD"] = "".join(kept).encode().replace(*self.record_edit, 1)


SHM, CPU, C10 = "torch/lib/libshm.dylib", "torch/lib/libtorch_cpu.dylib", "torch/lib/libc10.dylib"
WHEEL = "torch-2.15.0.dist-info/WHEEL"


def _renamed_tag(copy: Copy) -> None:
    copy.patch(WHEEL, b"macosx_14_0", b"macosx_13_0")


def _without_libshm(copy: Copy) -> None:
    copy.changed[SHM], copy.has_new_record = None, False


def _unlisted(copy: Copy) -> None:
    copy.added["torch/lib/libextra.dylib"] = copy.data(C10)


def _unsigned(copy: Copy) -> None:
    data = copy.data(SHM)
    at = data.index(struct.pack("<II", 0x1D, 16))
    copy.changed[SHM] = data[:at] + struct.pack("<II", 0x26, 16) + data[at + 8 :]


def _flipped_bit(copy: Copy) -> None:
    data = bytearray(copy.data(C10))
    data[len(data) // 3] ^= 1
    copy.changed[C10] = bytes(data)


def _wiped_metallib(copy: Copy) -> None:
    data = bytearray(copy.data(CPU))
    at = data.index(b"MTLB\1\x80")
    data[at : at + 4096] = bytes(4096)
    copy.changed[CPU] = bytes(data)


def _wrong_record(copy: Copy) -> None:
    copy.record_edit = (b"torch/__init__.py,sha256=", b"torch/__init__.py,sha256=A")


SPOILED: Mapping[str, tuple[Any, str, set[str]]] = {
    "control": (lambda copy: None, NEWEST, set()),
    "renamed_cp313": (lambda copy: None, NEWEST.replace("cp312-cp312", "cp313-cp313"), {"T2", "T5"}),
    "renamed_11_0": (lambda copy: None, NEWEST.replace("14_0", "11_0"), {"T2", "V3", "M10"}),
    "retagged_13_0": (_renamed_tag, NEWEST.replace("14_0", "13_0"), {"V3", "M10"}),
    "without_libomp": (lambda copy: copy.changed.update({"torch/lib/libomp.dylib": None}), NEWEST, {"P5", "O1"}),
    "without_libshm": (_without_libshm, NEWEST, {"R3", "P5", "F1"}),
    "other_cpu": (lambda copy: copy.patch(SHM, b"\x0c\0\0\1", b"\7\0\0\1"), NEWEST, {"A3", "S3"}),
    "minos_15": (
        lambda copy: copy.patch(SHM, struct.pack("<3I", 32, 1, 14 << 16), struct.pack("<3I", 32, 1, 15 << 16)),
        NEWEST,
        {"V3", "S3"},
    ),
    "absolute_rpath": (lambda copy: copy.patch(SHM, b"@loader_path\0", b"/opt/x/y/lib\0"), NEWEST, {"P1", "S3"}),
    "absolute_libomp": (
        lambda copy: copy.patch(
            "torch/lib/libtorch_python.dylib", b"@loader_path/libc10.dylib", b"/opt/homebrew/libc10.dyli"
        ),
        NEWEST,
        {"P4", "S3"},
    ),
    "cut_off": (lambda copy: copy.changed.update({SHM: copy.data(SHM)[:-5000]}), NEWEST, {"A2", "S1"}),
    "unsigned": (_unsigned, NEWEST, {"S1"}),
    "unlisted": (_unlisted, NEWEST, {"R2", "P3"}),
    "wrong_record": (_wrong_record, NEWEST, {"R4"}),
    "flipped_bit": (_flipped_bit, NEWEST, {"S3"}),
    "wiped_metallib": (_wiped_metallib, NEWEST, {"M5", "S3"}),
    "other_commit": (
        lambda copy: copy.patch("torch/version.py", b"d0f2af8b66b20da4", b"0000000000000000"),
        NEWEST,
        {"G2"},
    ),
    "manager_not_executable": (
        lambda copy: setattr(
            copy,
            "members",
            tuple(each._replace(mode=0o100644) if each.name.endswith("shm_manager") else each for each in copy.members),
        ),
        NEWEST,
        {"F1"},
    ),
}


@pytest.mark.parametrize("case", SPOILED)
def test_a_spoiled_copy_of_an_official_wheel_fails_by_the_right_rule(case: str, tmp_path: Path) -> None:
    spoil, name, expected = SPOILED[case]
    copy = Copy(fetched(NEWEST))
    spoil(copy)

    audit = audit_wheel(copy.write(tmp_path, name))
    (tmp_path / name).unlink()

    assert errors(audit) == expected
    assert audit.verdict == ("rejected" if expected else "accepted")
