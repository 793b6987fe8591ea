"""Wrong input: the message says what is wrong and how to fix it, and shows nothing of a file or of our own code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mps_build.cli import main
from mps_build.commands.shared.parser import parse_options


@pytest.mark.parametrize("command", ["verify_mps", "audit_wheel"])
def test_a_program_that_is_not_a_python_is_called_that(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path))
    device = ["--device", "cpu"] if command == "verify_mps" else []

    assert main(command, ["--python", "/bin/ls", *device]) == 2

    said = capsys.readouterr().err
    assert "does not answer as a Python" in said
    assert "import" not in said
    assert "sysconfig" not in said


def test_a_file_that_is_not_a_recipe_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "passwd"
    file.write_text("root:x:0:0:root:/root:/bin/bash\n" * 40, encoding="utf-8")

    assert main("doctor", [str(file)]) == 2

    said = capsys.readouterr().err
    assert "must be a mapping" in said
    assert "bash" not in said


def test_a_duplicate_cause_is_one_short_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mps_build.common.errors import UsageError
    from mps_build.host.triage.rules import CAUSES, load_catalogue

    text = CAUSES.read_text(encoding="utf-8")
    first = text.index("  - id: ", text.index("\ncauses:"))
    second = text.index("  - id: ", first + 1)
    copy = tmp_path / "causes.yaml"
    copy.write_text(text[:second] + text[first:second] + text[second:], encoding="utf-8")

    with pytest.raises(UsageError, match="two rows of one id") as caught:
        load_catalogue(copy)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("number", ["0", "-3", "many"])
def test_jobs_is_a_number_from_1_on(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("build_wheel", ["sample", f"--jobs={number}"]) == 2
    assert "is not a number from 1 on" in capsys.readouterr().err


def test_a_version_without_quotes_is_answered_with_what_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("version: 2.10\n", encoding="utf-8")

    assert main("doctor", [str(recipe)]) == 2
    assert 'write it in quotes, "2.10"' in capsys.readouterr().err


@pytest.mark.parametrize("text", ["torch==2.6.0", "torch 2.6.0", "torch2.6.0"])
def test_a_requirement_in_the_place_of_a_recipe_gets_the_recipes_name(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("doctor", [text]) == 2
    assert "did you mean v2.6.0?" in capsys.readouterr().err


def test_json_to_standard_output_is_the_document_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("matrix", ["v2.6.0", "--json", "-"]) == 0

    said = capsys.readouterr()
    assert json.loads(said.out)["exit_code"] == 0
    assert said.err
    assert not Path("-").exists()


def test_options_before_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(None, ["--wrong", "matrix"]) == 2
    assert "no command '--wrong'" in capsys.readouterr().err
    assert main(None, ["-q", "matrix", "v2.6.0"]) == 0
    assert capsys.readouterr().out == ""
    assert main(None, ["-v", "audit_wheel", "--python", "/bin/true"]) == 2
    assert "+ /bin/true" in capsys.readouterr().err


HUGE = "9" * 5000


@pytest.mark.parametrize(
    "arguments",
    [
        ("doctor", f"v{HUGE}"),
        ("matrix", f"v2.{HUGE}"),
        ("triage", "-", "--macos", HUGE),
        ("triage", "-", "--torch", f"2.{HUGE}"),
        ("build_report", "--run", HUGE),
        ("bisect_mps", "x", "--good", f"2.{HUGE}", "--bad", "2.6.0"),
        ("verify_mps", "--python", "/bin/false", "--memory-limit", HUGE),
        ("verify_mps", "--python", "/bin/false", "--memory-limit", "nan"),
        ("verify_mps", "--python", "/bin/false", "--memory-limit", "1e300"),
        ("verify_mps", "--python", "/bin/false", "--case-timeout", "inf"),
        ("bisect_mps", "x", "--good", "2.5.0", "--bad", "2.6.0", "--timeout", "nan"),
        ("clean", "--older-than", "inf"),
    ],
    ids=lambda value: f"{value[0]} {value[-2]}",
)
def test_a_number_that_nobody_can_read_is_refused(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments[0], arguments[1:]) == 2

    assert len(capsys.readouterr().err) < 400


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file here whose reading fails")
@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("doctor", ("--host", "{}")),
        ("doctor", ("{}.yaml",)),
        ("adopt", ("{}",)),
        ("triage", ("{}",)),
        ("compare", ("{}", "{}")),
        ("op_coverage", ("{}",)),
        ("repro", ("{}", "a")),
        ("ci", ("outputs", "--build", "{}")),
    ],
)
def test_a_file_on_a_failing_disk_is_named_with_the_systems_words(
    command: str, arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    for each in (path, tmp_path / "a.json.yaml"):
        each.symlink_to("/proc/self/mem")  # reading its first page is EIO

    assert main(command, [one.format(path) for one in arguments]) == 3

    said = capsys.readouterr().err
    assert "a.json" in said and "Input/output error" in said


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no file here without an end")
@pytest.mark.parametrize("command", [("doctor", "--host"), ("adopt",), ("compare", "/dev/zero"), ("op_coverage",)])
def test_a_file_without_an_end_is_too_long(command: tuple[str, ...], tmp_path: Path) -> None:
    for name in ("zero.json", "zero.yaml"):
        (tmp_path / name).symlink_to("/dev/zero")

    assert main(command[0], [*command[1:], str(tmp_path / "zero.json")]) == 2
    assert main("doctor", [str(tmp_path / "zero.yaml")]) == 2


@pytest.mark.parametrize("command", ["verify_mps", "verify_training", "benchmark_mps"])
def test_a_list_that_is_given_again_is_longer(command: str) -> None:
    given = ["torch==2.13.0", "--only", "a,b", "--only=c"]

    assert parse_options(command, given).only == "a,b,c"
