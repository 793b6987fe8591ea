"""The command: exit codes, JSON, and bad input without a traceback."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mps_build import cli
from mps_build.inspection.audit import audit_wheel
from mps_build.inspection.audit.render import fact_rows, finding_lines, verdict_line
from processes import entry, environ
from small_wheels import torch_files, write_wheel


def run(*arguments: str, tmp_path: Path) -> tuple[int, dict[str, Any]]:
    document = tmp_path / "audit.json"
    status = cli.main("audit_wheel", [*arguments, "--json", str(document)])
    return status, json.loads(document.read_text())


def test_a_right_wheel_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, document = run(str(write_wheel(tmp_path, torch_files())), tmp_path=tmp_path)

    assert status == document["exit_code"] == 0
    assert (document["profile"], document["kind"], document["verdict"]) == ("strict", "aot", "accepted")
    assert document["findings"] == []
    assert document["facts"]["git_version"] == document["facts"]["torch"]["commit"]
    assert "accepted: 0 errors, 0 warnings (profile strict; Metal kernels precompiled)" in capsys.readouterr().out


def test_a_wrong_wheel_is_rejected_with_its_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {member: data for member, data in torch_files().items() if not member.endswith("libshm.dylib")}

    status, document = run(str(write_wheel(tmp_path, files)), tmp_path=tmp_path)

    assert status == document["exit_code"] == 9
    assert document["cause"] == "audit_rejected"
    assert {finding["rule"] for finding in document["findings"]} == {"F1", "P5"}
    assert all(set(finding) == {"rule", "level", "member", "evidence", "reason"} for finding in document["findings"])
    assert "torch/lib/libshm.dylib: is not in the wheel" in capsys.readouterr().out


@pytest.mark.parametrize("data", [b"", b"no zip", b"PK\5\6" + bytes(18)])
def test_a_file_that_is_no_archive_is_rejected(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl"
    path.write_bytes(data)

    status, document = run(str(path), tmp_path=tmp_path)

    assert status == 9
    assert {finding["rule"] for finding in document["findings"]} & {"Z1", "N2"}


def test_what_is_no_wheel_at_all_is_a_wrong_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("text")

    for argument in (f"{tmp_path}/gone.whl", str(tmp_path), f"{tmp_path}/notes.txt", "torch 2.15"):
        assert cli.main("audit_wheel", [argument]) == 2
    assert cli.main("audit_wheel", [str(write_wheel(tmp_path, torch_files())), "--python", "3.12"]) == 2
    assert cli.main("audit_wheel", [str(write_wheel(tmp_path, torch_files())), "--commit", "abc"]) == 2

    assert "no such file" in capsys.readouterr().err


def test_the_commit_requested_counts(tmp_path: Path) -> None:
    wheel = str(write_wheel(tmp_path, torch_files()))

    assert run(wheel, "--commit", "d" * 40, tmp_path=tmp_path)[0] == 9


def test_lines_keep_to_the_width_they_are_given(tmp_path: Path) -> None:
    files = {member: data for member, data in torch_files().items() if "lib/lib" not in member}
    audit = audit_wheel(write_wheel(tmp_path, files))

    for width in (60, 80, 100):
        assert all(len(text) <= width for text, _ in finding_lines(audit.findings, width=width))
    assert verdict_line(audit)[0].startswith("rejected: ")
    assert ("version", "torch 2.15.0") in fact_rows(audit.facts_document)


def test_the_command_runs_from_anywhere_and_passes_the_status_on(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, torch_files())
    wheel.write_bytes(wheel.read_bytes()[:-5])

    ended = subprocess.run(
        entry("audit_wheel", wheel.name), env=environ(), cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 9, ended.stderr
    assert "Z1" in ended.stdout
    assert "Traceback" not in ended.stderr


def test_escape_sequences_of_a_strangers_file_never_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "torch/lib/\x1b]0;owned\x07.py"
    metadata = b"Metadata-Version: 2.4\nName: torch\nVersion: 2.15.0\nRequires-Python: \x1b[31m>=3\n\n"
    files = {**torch_files(), evil: b"", "torch-2.15.0.dist-info/METADATA": metadata}

    assert cli.main("audit_wheel", [str(write_wheel(tmp_path, files))]) == 9

    out = capsys.readouterr().out
    assert "\x1b]" not in out
    assert "\x1b[31m>=" not in out
    assert "\\x1b]0;owned\\x07.py" in out
