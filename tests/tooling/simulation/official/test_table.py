"""The one table of macOS' system: it has every import of the releases at hand, and the C files have what it names."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mps_build.inspection.audit.linked_names import Import
from mps_build.simulation.official.build import LOADER, loader_sources
from mps_build.simulation.official.inventory import take
from mps_build.simulation.official.table import SYSTEM, bindings_source, read_table, symbol_of, thunks_source
from mps_build.wheel_build.objc.stubs import imports_of, known_releases


def _imports(release: str) -> list[Import]:
    return [Import(name, library, False) for library, row in imports_of(release).items() for name in row["symbols"]]


def test_every_import_of_the_releases_on_record_is_in_the_table() -> None:
    rows = read_table()
    taken = {release: take(_imports(release), rows) for release in known_releases()}
    assert len(taken) >= 3
    assert {release: each.missing for release, each in taken.items()} == dict.fromkeys(taken, ())
    assert all(each.kinds["same"] > 150 and each.kinds["translated"] > 100 for each in taken.values())


def test_an_import_that_no_row_is_for_is_told_with_its_library() -> None:
    system = "/usr/lib/libSystem.B.dylib"
    imports = [Import("_malloc", system, False), Import("_new_call", system, False), Import("_perhaps", system, True)]
    imports += [Import("_own", "@rpath/libc10.dylib", False), Import("__Znwm", "/usr/lib/libc++.1.dylib", False)]
    taken = take(imports, read_table())
    assert (dict(taken.kinds), taken.missing) == ({"same": 1}, (("_new_call", system),))


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
