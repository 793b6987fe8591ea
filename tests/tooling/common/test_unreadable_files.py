"""A file that a command is given and cannot read: named once, with the reason in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.cli import main


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("repro", ("{path}", "a-case")),
        ("triage", ("{path}",)),
        ("compare", ("{path}", "{path}")),
        ("adopt", ("{path}", "--name", "x", "--into", ".")),
        ("doctor", ("--host", "{path}")),
        ("op_coverage", ("{path}",)),
    ],
)
def test_a_missing_file_is_named_without_an_error_number(
    command: str, arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "absent.json"

    status = main(command, [one.format(path=path) for one in arguments])

    said = capsys.readouterr().err
    assert status == 2
    assert "absent.json" in said
    assert "Errno" not in said
