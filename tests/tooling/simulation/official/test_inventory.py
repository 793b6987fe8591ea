"""What a wheel takes from macOS: the one table has every import of the releases at hand, the C files what it names."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from mps_build.inspection.audit.symbols import Import
from mps_build.simulation.builder.ninja_file import NATIVE
from mps_build.simulation.official.build import LOADER, loader_sources
from mps_build.simulation.official.inventory import lacking, method_names, names_of, take
from mps_build.simulation.official.metal_build import read_with
from mps_build.simulation.official.table import SYSTEM, bindings_source, read_table, symbol_of, thunks_source
from mps_build.wheel_build.objc.stubs import imports_of, known_releases

_METAL = "/System/Library/Frameworks/Metal.framework/Versions/A/Metal"
_FOUNDATION = "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation"
_SYSTEM = "/usr/lib/libSystem.B.dylib"
_DEFINED, _UNDEFINED, _LOCAL = 0x0F, 0x01, 0x0E


def _imports(release: str) -> list[Import]:
    return [Import(name, library, False) for library, row in imports_of(release).items() for name in row["symbols"]]


def test_every_import_of_the_releases_on_record_is_in_the_table() -> None:
    rows = read_table()
    taken = {release: take(_imports(release), rows) for release in known_releases()}
    assert len(taken) >= 3
    assert {release: each.missing for release, each in taken.items()} == dict.fromkeys(taken, ())
    assert all(each.kinds["same"] > 150 and each.kinds["translated"] > 100 for each in taken.values())


def test_an_import_is_named_with_its_library_and_how_it_is_bound() -> None:
    system = "/usr/lib/libSystem.B.dylib"
    imports = [Import("_malloc", system, False), Import("_new_call", system, False), Import("_perhaps", system, True)]
    imports += [Import("_kqueue", system, False)]
    imports += [Import("_own", "@rpath/libc10.dylib", False), Import("__Znwm", "/usr/lib/libc++.1.dylib", False)]
    taken = take(imports, read_table())
    assert (dict(taken.kinds), taken.missing) == ({"same": 1, "refused": 1}, (("_new_call", system),))
    (kqueue, malloc) = taken.bound
    assert malloc == ("_malloc", system, "same", "")
    assert kqueue[:3] == ("_kqueue", system, "refused") and kqueue[3]


def test_the_c_files_have_what_the_table_names_and_nothing_else() -> None:
    wanted = {
        row.target.replace("variadic_", "darwin_", 1)
        for row in read_table().values()
        if row.kind not in ("same", "refused")
    }
    text = "\n".join(path.read_text(encoding="utf-8") for path in loader_sources())
    # A function or an object begins its line; in assembly it is a label.
    defined = set(re.findall(r"^[a-z_][\w *]*?\b(darwin_\w+)(?: ?\(| ?=|;|\[|,)", text, re.M))
    defined |= set(re.findall(r"\*(darwin_\w+) = &", text)) | set(re.findall(r"^(darwin_\w+):", text, re.M))
    internal = {
        "darwin_error_number",
        "darwin_lookup_error",
        "darwin_signal_number",
        "darwin_open_flags",
        "darwin_family",
    }
    assert wanted - defined == set()
    assert defined - wanted - internal == set()


def test_rows_are_in_the_order_in_which_they_are_searched() -> None:
    rows = read_table()
    names = re.findall(r'^    \{"([^"]+)", SYSTEM', bindings_source(rows), re.M)
    exact = [symbol_of(row) for row in rows.values() if not row.name.endswith("*")]
    assert names[: len(exact)] == sorted(exact, key=str.encode)
    assert "variadic_printf:\n    mov x1, sp\n    b darwin_printf\n" in thunks_source(rows)


def test_a_name_stands_in_the_table_once(tmp_path: Path) -> None:
    text = (SYSTEM / "table.yaml").read_text(encoding="utf-8").replace("renamed:\n", "renamed:\n  malloc: calloc\n")
    (tmp_path / "table.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="malloc stands there as same and as same"):
        read_table(tmp_path / "table.yaml")


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler for this machine")
def test_the_pure_parser_is_compiled_without_a_warning_and_calls_no_system() -> None:
    for name in ("parse.c", "fixups.c"):
        argv = [
            "cc",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Wconversion",
            "-Wno-sign-conversion",
            "-Werror",
            "-fsyntax-only",
            str(LOADER / name),
        ]
        answer = subprocess.run(argv, check=False, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        text = (LOADER / name).read_text(encoding="utf-8")
        assert set(re.findall(r"#include <(\S+)>", text)) <= {"stdarg.h", "stdio.h", "string.h"}


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


def test_what_a_wheel_takes_from_metal_and_the_library_does_not_have_is_named(tmp_path: Path) -> None:
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
                ("-[OfTheWheel inverse]", _LOCAL, 0),
                ("-[MTLKnown(OfTheWheel) greaterThan:name:]", _LOCAL, 0),
            ],
            # The last four are of classes and categories that the wheel defines itself.
            selectors="length\0setBytes:length:atIndex:\0newThing:\0"
            "inverse\0_inverse\0TB,N,V_inverse\0greaterThan:name:\0",
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
    assert found.sent_selectors == 3
    assert method_names(ours) == ("-[SimBuffer length]", "-[SimEncoder setBytes:length:atIndex:]")


@pytest.mark.parametrize("release", ["2.6.0", "2.13.0", "2.15.0"])
def test_each_class_that_a_release_takes_from_a_framework_is_in_the_sources(release: str) -> None:
    taken = {each.name.removeprefix("_OBJC_CLASS_$_") for each in _imports(release) if "_CLASS_" in each.name}
    text = "\n".join(path.read_text(encoding="utf-8") for path in NATIVE.rglob("*.mm"))
    ours = set(re.findall(r"^@implementation (\w+)", text, re.MULTILINE))

    assert len(taken) > 20
    assert sorted(taken - ours) == []


def test_an_object_is_made_anew_when_a_header_that_it_reads_changes() -> None:
    names = {path.name for path in read_with(NATIVE / "graph/matrices.mm")}

    assert {"matrices.mm", "graph.h", "metal.h", "availability.h", "objects.h", "linux_prefix.h"} <= names
    assert "queue.h" not in names
