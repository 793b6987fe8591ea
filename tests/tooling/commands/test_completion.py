"""Completion scripts: each is tried by its own shell, where that shell is there."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import shtab
from mps_build import cli
from mps_build.commands.dev.completion import SHELLS, whole_parser
from mps_build.commands.shared.catalogue import COMMANDS
from mps_build.commands.shared.parser import parser_of

ROOT = Path(__file__).parents[3]
LISTS = "import sys; from mps_build.cli import main; status = main(None, sys.argv[1:]); print(sorted(sys.modules))"


@pytest.fixture(name="texts", scope="module")
def _texts() -> dict[str, str]:
    return {shell: shtab.complete(whole_parser(), shell=shell) for shell in SHELLS}


def _run(argv: list[str]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["build_w"], ["build_wheel"]),
        (["build_wheel", "--pro"], ["--profile"]),
        (["build_wheel", "--profile", "d"], ["develop"]),
        (["build_wheel", "v2.6"], ["v2.6.0"]),
        (["audit_wheel", "--profile", ""], ["strict", "official"]),
        (["no_command", "--x"], []),
    ],
)
def test_bash_completes_commands_options_their_values_and_recipes(
    texts: dict[str, str], tmp_path: Path, words: list[str], wanted: list[str]
) -> None:
    file = tmp_path / "completion.bash"
    file.write_text(texts["bash"], encoding="utf-8")
    line = " ".join(["mps-build", *words[:-1], f"'{words[-1]}'"])
    at = f"COMP_WORDS=({line}); COMP_CWORD={len(words)}"
    ask = f"source {file}; {at}; _shtab_mps_build mps-build; echo ${{COMPREPLY[@]}}"

    assert _run(["bash", "-c", ask]).split() == wanted


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish here")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("build_w", "build_wheel"),
        ("build_wheel --pro", "--profile"),
        ("build_wheel --profile d", "develop"),
        ("build_wheel v2.6", "v2.6.0"),
    ],
)
def test_fish_completes_the_same(texts: dict[str, str], tmp_path: Path, line: str, wanted: str) -> None:
    file = tmp_path / "completion.fish"
    file.write_text(texts["fish"], encoding="utf-8")
    answer = _run(["fish", "--no-config", "-c", f"source {file}; complete -C 'mps-build {line}'"])

    assert [row.split("\t")[0] for row in answer.splitlines()] == [wanted]


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here")
def test_zsh_reads_its_script_and_registers_it(texts: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "_mps-build"
    file.write_text(texts["zsh"], encoding="utf-8")
    ask = f"autoload -U compinit; compinit -D; source {file}; echo $_comps[mps-build]"

    assert _run(["zsh", "-f", "-c", ask]).strip() == "_shtab_mps_build"


def test_the_scripts_name_every_command_and_option(texts: dict[str, str]) -> None:
    for command in COMMANDS:
        for action in parser_of(command)._actions:
            for name in action.option_strings if action.help != argparse.SUPPRESS else ():
                assert name in texts["bash"], (command, name)
                assert name in texts["zsh"], (command, name)


def test_an_unknown_shell_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SHELL", "/bin/ksh")

    assert cli.main("completion", []) == 2
    assert "supported: bash, zsh" in capsys.readouterr().err


def test_the_shells_are_those_of_the_library() -> None:
    assert list(SHELLS) == shtab.SUPPORTED_SHELLS


def test_without_the_library_the_hint_says_how_to_have_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)

    assert cli.main("completion", ["bash"]) == 2
    assert "nox -s dev -- completion" in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_a_question_about_the_tool_imports_none_of_its_libraries_and_is_quick(argument: str) -> None:
    """At most 0.3 s, in CPU seconds: neighbours on the machine do not lengthen those."""
    before = os.times()
    answer = subprocess.run(
        [sys.executable, "-c", LISTS, argument],
        env={"PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    after = os.times()

    heavy = ["pydantic", "rich", "yaml", "packaging", "ssl", "asyncio", "importlib.metadata"]
    heavy += ["subprocess"] if sys.version_info >= (3, 11) else []  # platform of 3.10 imports it
    assert not [name for name in heavy if f"'{name}'" in answer.stdout]
    assert (after.children_user - before.children_user) + (after.children_system - before.children_system) < 0.3


def test_a_command_may_be_written_with_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(None, ["build-wheel", "--help"]) == 0
    assert "RECIPE" in capsys.readouterr().out


@pytest.mark.parametrize(("wrong", "meant"), [("biuld_wheel", "build_wheel"), ("verify", "verify_mps")])
def test_a_wrong_command_names_the_one_that_was_meant(
    wrong: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(None, [wrong]) == 2
    assert meant in capsys.readouterr().err
