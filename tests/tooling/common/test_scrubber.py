"""Whatever leaves this machine goes through one function: a password given to the tool is nowhere in what it writes."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from mps_build import cli
from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.plain_text import in_code, in_html, in_markdown
from mps_build.common.process import Captured
from mps_build.common.records.device_record import write_record
from mps_build.common.reporting import job_summary
from mps_build.common.standard_streams import guarded_streams
from mps_build.host.adoption import left_over
from mps_build.host.probes.probers import recorded
from small_records import case, record

SECRET = "hunter2pass"
ARGV = ["pip", "--token", SECRET, "-i", f"https://deploy:{SECRET}@index.example.org/simple"]
SOURCES = Path(__file__).parents[3] / "scripts" / "mps_build"


def fail(options: object, console: Console) -> Any:
    raise UsageError(f"cannot be run: {' '.join(ARGV)}", hint=f"API_TOKEN={SECRET} ...", document={"argv": ARGV})


def test_no_document_of_json_holds_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mps_build.commands.clean.run", fail)

    assert cli.main("clean", ["--json", str(tmp_path / "a.json")]) == 2

    text = (tmp_path / "a.json").read_text()
    assert SECRET not in text
    assert json.loads(text)["argv"] == ["pip", "--token", "removed", "-i", "https://user@index.example.org/simple"]


def test_no_log_of_a_workflow_holds_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setattr("mps_build.commands.clean.run", fail)

    cli.main("clean", [])
    with guarded_streams():
        console = Console()
        console.print(" ".join(ARGV))
        console.table(("a",), [(" ".join(ARGV),)])
        console.workflow_command(f"::error::{' '.join(ARGV)}")

    said = "".join(capsys.readouterr())
    assert "cannot be run" in said and "::error::pip" in said
    assert SECRET not in said


def test_a_terminal_shows_a_command_that_can_be_copied(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("GITHUB_ACTIONS", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("mps_build.commands.clean.run", fail)

    cli.main("clean", [])

    assert f"--token {SECRET}" in capsys.readouterr().err


def test_no_summary_of_a_job_holds_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    job_summary(f"ran {' '.join(ARGV)}\n")
    assert (tmp_path / "summary.md").read_text() == "ran pip --token removed -i https://user@index.example.org/simple\n"


def test_no_record_holds_one(tmp_path: Path) -> None:
    made = record(case("a", "failed").model_copy(update={"reason": f"password={SECRET}"}))
    write_record(made.model_copy(update={"target": {"argv": ARGV}}), tmp_path / "record.json")
    assert SECRET not in (tmp_path / "record.json").read_text()


def test_no_cell_of_a_report_holds_one() -> None:
    text = " ".join(ARGV)
    for written in (in_markdown(text), in_code(text), in_html(text)):
        assert SECRET not in written and "removed" in written


def test_no_recording_of_a_host_holds_one() -> None:
    class Prober:
        def answers(self) -> Any:
            return [(Captured(argv=("env",), stdout=f"UPLOAD_TOKEN={SECRET}\n", stderr="", exit=0), {})]

    document, removed = recorded(Prober())  # type: ignore[arg-type]

    assert SECRET not in json.dumps(document)
    assert removed["password"] == 1
    assert left_over(document) == ()
    dirty = {"probes": [{"argv": ["env"], "stdout": f"UPLOAD_TOKEN={SECRET}\n"}]}
    assert [each.kind for each in left_over(dirty)] == ["password"]


def test_no_result_of_a_build_on_a_fleet_holds_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    for name, text in (("logs/a.log", f"+ pip --token {SECRET}\n"), ("receipts/b.json", json.dumps({"argv": ARGV}))):
        (work / "v2.6.0" / name).parent.mkdir(parents=True, exist_ok=True)
        (work / "v2.6.0" / name).write_text(text)
    monkeypatch.setenv("MPS_BUILD_WORK", str(work))

    assert cli.main("ci", ["collect", "--recipe", "v2.6.0", "--results", str(tmp_path / "results")]) == 0

    texts = {path.name: path.read_text() for path in (tmp_path / "results").rglob("*") if path.is_file()}
    assert {"a.log", "b.json"} <= texts.keys()
    assert SECRET not in "".join(texts.values())


def test_one_module_escapes_for_a_browser() -> None:
    """A report that escapes by itself is one that the rules for secrets and invisible characters do not reach."""
    found = [
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "html"
    ]
    assert found == ["common/plain_text.py"]
