"""A command's arguments: its parser with examples, and the frozen options made of what was typed."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from mps_build.common.console import as_called
from mps_build.common.errors import UsageError

from .catalogue import MAINTAINERS, command_line
from .help import short_help, whole_help
from .options import check_digits


class Parser(argparse.ArgumentParser):
    """Reports wrong arguments as every other error is reported."""

    program: tuple[str, ...] | None = None  # of a command that runs a program: what was typed without a `--`
    first: tuple[str, ...] = ()
    exits: tuple[int, ...] = ()
    examples = ""

    def format_help(self) -> str:
        """Return what `--help` prints."""
        return short_help(self, first=self.first, exits=self.exits, examples=self.examples)

    def format_whole_help(self) -> str:
        """Return what `--help-all` prints."""
        return whole_help(self, exits=self.exits, examples=self.examples)

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError that names the nearest option, or the same command with the `--` before a program."""
        hint = f"`{self.prog} --help-all` shows every option"
        if message.startswith("unrecognized arguments: ") and (corrected := self._with_dashes(message)):
            raise UsageError(message, hint=f"a program comes behind `--`: {corrected}")
        wrong = re.search(r"unrecognized arguments:.*?(--[\w-]+)", message)
        if wrong:
            near = get_close_matches(wrong[1], self._option_string_actions, n=1)
            hint = f"did you mean {near[0]}? {hint}" if near else hint
        raise UsageError(message, hint=hint)

    def _with_dashes(self, message: str) -> str | None:
        unknown = message.partition(": ")[2]
        words = self.program or ()
        place = next((at for at, word in enumerate(words) if word and unknown.startswith(word)), None)
        if place is None:
            return None
        if place and shutil.which(words[place - 1]):  # it was taken for a release or a recipe
            place -= 1
        elif words[place].startswith("-"):
            return None
        return " ".join([self.prog, shlex.join(words[:place]), "--", shlex.join(words[place:])]).replace("  ", " ")


class _HelpAll(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        assert isinstance(parser, Parser)
        print(parser.format_whole_help())
        parser.exit()


def module_of(command: str) -> ModuleType:
    """Return the module of a command."""
    folder = "mps_build.commands.dev" if command in MAINTAINERS else "mps_build.commands"
    return importlib.import_module(f"{folder}.{command}")


def parser_of(command: str) -> Parser:
    """Return the parser of a command's arguments, as --help shows it."""
    module = module_of(command)
    examples = "\n".join(as_called(f"  {command_line(command, example)}") for example in module.EXAMPLES)
    parser = Parser(
        prog=as_called(command_line(command, "ARGUMENTS")).removesuffix(" ARGUMENTS"),
        description=as_called(module.__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.first, parser.exits = getattr(module, "FIRST", ()), getattr(module, "EXITS", ())
    parser.examples = f"examples:\n{examples}"
    parser.add_argument("--help-all", action=_HelpAll, nargs=0, help="explain every option, and exit")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result as JSON")
    module.add_arguments(parser)
    return parser


def parse_options(command: str, arguments: Sequence[str]) -> Any:
    """Return the command's frozen `Options`; what follows a `--` is a command, for those that run one.

    Raises:
        UsageError: an argument is wrong.
        SystemExit: --help was printed.
    """
    module = module_of(command)
    own, behind = list(arguments), []
    if hasattr(module, "TAKES_COMMAND") and "--" in own:
        place = own.index("--")
        own, behind = own[:place], own[place + 1 :]
    for each in own:
        check_digits(each)
    parser = parser_of(command)
    parser.program = tuple(own) if hasattr(module, "TAKES_COMMAND") and not behind else None
    parsed = vars(parser.parse_args(own)) | {"command": behind, "given": own}
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in parsed.items()}
    return module.Options(**{each.name: values[each.name] for each in fields(module.Options)})
