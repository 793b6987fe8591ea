"""What a wheel asks of Metal's frameworks, and what the software Metal does not have of it."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import pytest
from mps_build.build import objc
from mps_build.simulation.builder.ninja_file import NATIVE
from mps_build.simulation.official.metal_build import read_with
from mps_build.simulation.official.metal_names import lacking, method_names, names_of

_METAL = "/System/Library/Frameworks/Metal.framework/Versions/A/Metal"
_FOUNDATION = "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation"
_SYSTEM = "/usr/lib/libSystem.B.dylib"
_DEFINED, _UNDEFINED, _LOCAL = 0x0F, 0x01, 0x0E


def _dylib(symbols: list[tuple[str, int, int]], *, selectors: str = "") -> bytes:
    """Return a dylib that loads three libraries; symbols are (name, type, number of the library)."""
    names, entries = b"\0", b""
    for name, kind, library in symbols:
        value = 0 if kind == _UNDEFINED else 0x1000
        entries += struct.pack("<IBBHQ", len(names), kind, 1, library << 8, value)
        names += name.encode() + b"\0"
    commands = []
    for path in (_METAL, _FOUNDATION, _SYSTEM):
        packed = path.encode() + b"\0" * (8 - len(path) % 8)
        commands.append(struct.pack("<6I", 0x0C, 24 + len(packed), 24, 0, 0, 0) + packed)
    size = sum(map(len, commands)) + 152 + 24
    at, text = 32 + size, selectors.encode()
    commands.append(
        struct.pack("<II16sQQQQIIII", 0x19, 152, b"__TEXT", 0, at + len(text), 0, at + len(text), 5, 5, 1, 0)
        + struct.pack("<16s16sQQ8I", b"__objc_methname", b"__TEXT", at, len(text), at, 0, 0, 0, 0, 0, 0, 0)
    )
    table = at + len(text)
    commands.append(struct.pack("<6I", 0x02, 24, table, len(symbols), table + len(entries), len(names)))
    return struct.pack("<8I", 0xFEEDFACF, 0x0100000C, 0, 6, 5, size, 0, 0) + b"".join(commands) + text + entries + names


def test_what_a_wheel_asks_for_and_the_library_does_not_have_is_named(tmp_path: Path) -> None:
    wheel = tmp_path / "libtorch_cpu.dylib"
    wheel.write_bytes(
        _dylib(
            [
                ("_OBJC_CLASS_$_MTLKnown", _UNDEFINED, 1),
                ("_OBJC_CLASS_$_MTLNew", _UNDEFINED, 1),
                ("_MTLNewErrorDomain", _UNDEFINED, 1),
                ("___NSArray0__struct", _UNDEFINED, 2),
                ("_CFRelease", _UNDEFINED, 2),  # of the system, as what follows
                ("_malloc", _UNDEFINED, 3),
                ("__ZN2at3addEv", _DEFINED, 0),
            ],
            selectors="length\0setBytes:length:atIndex:\0newThing:\0",
        )
    )
    ours = _dylib(
        [
            ("_OBJC_CLASS_$_MTLKnown", _DEFINED, 0),
            ("-[SimBuffer length]", _LOCAL, 0),
            ("-[SimEncoder setBytes:length:atIndex:]", _LOCAL, 0),
        ]
    )

    found = lacking(names_of([wheel]), ours)

    assert found.classes == ("MTLNew",)
    assert found.symbols == ("_MTLNewErrorDomain", "___NSArray0__struct")
    assert found.selectors == ("newThing:",)
    assert found.share == pytest.approx(2 / 3)
    assert method_names(ours) == ("-[SimBuffer length]", "-[SimEncoder setBytes:length:atIndex:]")


@pytest.mark.parametrize("release", ["2.6.0", "2.13.0", "2.15.0"])
def test_each_class_that_a_release_takes_from_a_framework_is_in_the_sources(release: str) -> None:
    imports = Path(objc.__file__).parent / "imports" / f"{release}.json"
    libraries = json.loads(imports.read_text(encoding="utf-8"))
    asked = {
        name.removeprefix("_OBJC_CLASS_$_")
        for each in libraries.values()
        for name in each["symbols"]
        if "_CLASS_" in name
    }
    text = "\n".join(path.read_text(encoding="utf-8") for path in NATIVE.rglob("*.mm"))
    ours = set(re.findall(r"^@implementation (\w+)", text, re.MULTILINE))

    assert len(asked) > 20
    assert sorted(asked - ours) == []


def test_an_object_is_made_anew_when_a_header_that_it_reads_changes() -> None:
    names = {path.name for path in read_with(NATIVE / "graph/matrices.mm")}

    assert {"matrices.mm", "graph.h", "metal.h", "availability.h", "objects.h", "linux_prefix.h"} <= names
    assert "queue.h" not in names
