"""What `--help` and `--help-all` show: few options first, each option somewhere, exit codes that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mps_build import cli
from mps_build.commands.shared.catalogue import COMMANDS
from mps_build.commands.shared.help import FEW, PURPOSES, RARE, codes
from mps_build.commands.shared.parser import Parser, module_of, parser_of

ROOT = Path(__file__).parents[3]
# What a user reads; the list of commands is made from the parsers.
PAGES = [page for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"] if page.name != "commands.md"]


@pytest.fixture(name="parsers", scope="module")
def _parsers() -> dict[str, Parser]:
    return {command: parser_of(command) for command in COMMANDS}


def _names(parser: Parser) -> set[str]:
    hidden = ("help", "help_all")
    return {one.option_strings[-1] for one in parser._actions if one.option_strings and one.dest not in hidden}


def test_help_explains_at_most_five_options_and_names_the_others(parsers: dict[str, Parser]) -> None:
    for command, parser in parsers.items():
        text = parser.format_help()
        explained = re.findall(r"^  (?:-\w[^,]*, )?(--[\w-]+)", text.partition("more options")[0], re.MULTILINE)
        shown = set(re.findall(r"--[a-z][\w-]*", text)) | RARE

        assert len(explained) <= FEW, command
        assert {name for name in _names(parser) if name not in shown} <= {"--plant"}, command


def test_help_all_explains_every_option(parsers: dict[str, Parser]) -> None:
    for command, parser in parsers.items():
        explained = re.findall(r"^  .*?(--[\w-]+)", parser.format_whole_help(), re.MULTILINE)
        assert {name for name in _names(parser) if name not in explained} <= {"--plant"}, command


def test_exit_codes_are_those_of_errors_and_stand_at_the_end(parsers: dict[str, Parser]) -> None:
    for command, parser in parsers.items():
        text = parser.format_help()
        shown = [int(code) for code in re.findall(r"^  (\d+) +\S", text[text.index("exit codes:") :], re.MULTILINE)]

        assert shown == [0, 2, *sorted(getattr(module_of(command), "EXITS", ()))]
        assert set(shown) <= codes().keys()
        assert text.index("examples:") < text.index("exit codes:")


def test_an_option_that_no_page_speaks_of_is_shown_by_help_all_alone(parsers: dict[str, Parser]) -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for command, parser in parsers.items():
        module = module_of(command)
        said = pages + (module.__doc__ or "") + " ".join(module.EXAMPLES)
        unsaid = {name for name in _names(parser) if not re.search(rf"{name}(?![\w-])", said)}

        # A workflow's options are no user's.
        assert command in ("adopt", "ci", "check_mm") or unsaid <= RARE, command


def test_each_option_has_one_purpose(parsers: dict[str, Parser]) -> None:
    listed = " ".join(PURPOSES.values()).split()
    used = {name for parser in parsers.values() for name in _names(parser)}

    assert len(listed) == len(set(listed))
    assert used - set(listed) <= {"--plant"}, "name its purpose in commands/shared/help.py"
    assert set(listed) >= RARE


@pytest.mark.parametrize("option", ["--help", "--help-all"])
def test_help_is_no_error(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main("verify_mps", [option]) == 0
    assert ("the shortest time limit" in capsys.readouterr().out) is (option == "--help-all")
