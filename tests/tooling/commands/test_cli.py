"""The way in and the way out: arguments, exit statuses, the JSON document."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from mps_build import cli
from mps_build.commands.shared.catalogue import COMMANDS
from mps_build.commands.shared.parser import parse_options
from mps_build.common.console import Console, as_called, hanging
from mps_build.common.errors import HostError, MpsBuildError, UsageError
from rich.console import Console as RichConsole

ROOT = Path(__file__).parents[3]


def test_every_command_has_examples_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        assert cli.main(command, ["--help"]) == 0
        assert "examples:" in capsys.readouterr().out


def test_wrong_arguments_are_exit_2_with_a_hint_and_still_a_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = cli.main("build_wheel", ["sample", "--nonsense", "--json", str(tmp_path / "answer.json")])

    document = json.loads((tmp_path / "answer.json").read_text())
    assert (status, document["exit_code"], document["cause"]) == (2, 2, "usage")
    assert "--nonsense" in document["error"]
    assert "--help" in capsys.readouterr().err


def test_a_json_file_that_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    status = cli.main("matrix", ["--json", str(tmp_path / "file" / "answer.json")])

    assert status == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_bug_of_ours_is_exit_1_with_a_traceback_and_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mps_build.commands.dev.matrix.all_recipes", lambda: 1 // 0)

    status = cli.main("matrix", ["--json", str(tmp_path / "answer.json")])

    assert (status, json.loads((tmp_path / "answer.json").read_text())["cause"]) == (1, "bug")
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_full_disk_is_exit_19(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mps_build.commands.dev.matrix.all_recipes", full)

    assert cli.main("matrix", []) == 19


@pytest.mark.parametrize("arguments", [[], ["nonsense"]])
def test_no_command_or_an_unknown_one_shows_the_commands(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(None, arguments) == 2
    output = capsys.readouterr()
    assert "build_wheel" in output.out + output.err


def test_the_version_needs_neither_network_nor_the_libraries() -> None:
    script = "import sys; from mps_build.cli import main; main(None, ['--version']); print(sorted(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert answer.stdout.startswith("mps-build ")
    assert not [name for name in ("pydantic", "rich", "yaml", "ssl") if f"'{name}'" in answer.stdout]


def test_commands_in_messages_are_what_this_user_types() -> None:
    text = "`nox -s clean` shows ours; nox -s doctor -- v2.6.0"

    assert as_called(text, checkout=False) == "`mps-build clean` shows ours; mps-build doctor v2.6.0"
    assert as_called(text, checkout=True) == text


def test_a_long_line_is_folded_under_its_own_beginning_and_a_command_is_not() -> None:
    assert hanging("ok   Disk    1 GiB free, forty wanted", 30) == "ok   Disk    1 GiB free, forty\n             wanted"

    out = io.StringIO()
    console = Console(rich=RichConsole(file=out, force_terminal=True, width=30, color_system=None))
    console.print("next: nox -s verify_mps -- '/a/rather/long/path/to/a/wheel.whl'")
    assert out.getvalue().count("\n") == 1


def test_a_wrong_option_names_the_one_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main("build_wheel", ["sample", "--profle", "develop"]) == 2
    assert "did you mean --profile?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "typed", "program"),
    [
        ("simulate", ["torch==2.15.0", "python", "train.py"], ["python", "train.py"]),
        ("simulate", ["--macos", "26", "sh", "-c", "echo 'a b'"], ["sh", "-c", "echo 'a b'"]),
        ("shell", ["v2.6.0", "ls", "-l", "/"], ["ls", "-l", "/"]),
    ],
)
def test_a_forgotten_double_dash_is_answered_with_the_command_that_has_it(
    command: str, typed: list[str], program: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(command, typed) == 2
    corrected = capsys.readouterr().err.partition("a program comes behind `--`: ")[2].replace("\n", " ")

    words = shlex.split(corrected.partition(f"nox -s {command} -- ")[2])
    assert list(parse_options(command, words).command) == program


@pytest.mark.parametrize(("error", "said"), [(UsageError("wrong"), "--help"), (HostError("wrong"), "nox -s support")])
def test_an_error_without_a_hint_of_its_own_still_names_the_next_command(
    error: MpsBuildError, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("mps_build.commands.dev.matrix.all_recipes", fail)

    status = cli.main("matrix", ["--json", str(tmp_path / "answer.json")])

    document = json.loads((tmp_path / "answer.json").read_text())
    assert status == error.exit_code
    assert said in document["hint"]


def test_a_json_into_a_folder_that_is_not_there_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main("matrix", ["--json", str(tmp_path / "none" / "plan.json")]) == 2

    printed = capsys.readouterr()
    assert "there is no folder" in printed.err
    assert printed.out == ""
    assert not (tmp_path / "none").exists()
