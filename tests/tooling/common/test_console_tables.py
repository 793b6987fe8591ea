"""A table in a narrow terminal: names and hashes fold, and none is cut."""

from __future__ import annotations

import io

from mps_build.common.console import Console
from rich.console import Console as RichConsole


def test_a_long_name_is_there_whole_in_80_columns() -> None:
    name = "torch-2.15.0+mps.gd0f2af8.patched-cp312-cp312-macosx_14_0_arm64.whl"
    digest = "0123456789abcdef" * 4
    out = io.StringIO()

    Console(rich=RichConsole(file=out, width=80, force_terminal=True, color_system=None)).table(
        ("wheel", "size", "sha256"), [(name, "138.6 MB", digest)]
    )

    assert "…" not in out.getvalue()
    columns = [line.split() for line in out.getvalue().splitlines()[1:]]
    assert name in "".join(line[0] for line in columns if line)
