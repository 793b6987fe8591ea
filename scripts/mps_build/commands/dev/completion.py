"""Print a completion script for your shell.

bash, zsh, fish, tcsh and powershell are supported.

It holds all words itself, so that the shell starts nothing of ours at a tab; print it again after an update.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass

from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.interpreters import line_that_adds
from mps_build.common.recipe.catalogue import all_recipes
from mps_build.common.reporting import Result

from ..shared.catalogue import COMMANDS
from ..shared.parser import parser_of

TASK = ("repository", 8)
EXTRA = "completion"
DOCUMENT = "shell:string commands:array"
EXAMPLES = (
    "bash >> ~/.bash_completion",
    "zsh > ~/.zfunc/_mps-build",
    "fish > ~/.config/fish/completions/mps-build.fish",
)
SHELLS = ("bash", "zsh", "tcsh", "fish", "powershell")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    shell: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("shell", nargs="?", choices=SHELLS, help="default: the one in $SHELL")


def run(options: Options, console: Console) -> Result:
    """Print the script for the caller's shell.

    Raises:
        UsageError: $SHELL names no shell that is supported, or `shtab` is not installed.
    """
    shell = options.shell or os.path.basename(os.environ.get("SHELL", ""))  # noqa: PTH119 (a name, not a path of ours)
    if shell not in SHELLS:
        raise UsageError(
            f"$SHELL is {shell or 'not set'}; supported: {', '.join(SHELLS)}",
            hint="name a shell: mps-build completion bash",
        )
    try:
        import shtab
    except ImportError as error:
        hint = line_that_adds("shtab>=1.13", session="dev -- completion")
        raise UsageError("shtab is not installed here: it writes the script", hint=hint) from error
    sys.stdout.write(shtab.complete(whole_parser(), shell=shell))
    return Result(document={"shell": shell, "commands": list(COMMANDS)})


def whole_parser() -> argparse.ArgumentParser:
    """Return one parser of all commands, each RECIPE with the recipes as its choices."""
    recipes = [recipe.name for recipe in all_recipes()]
    whole = argparse.ArgumentParser(prog="mps-build", description="Build PyTorch for Apple silicon, and verify it")
    commands = whole.add_subparsers()
    for name, summary in COMMANDS.items():
        parser = parser_of(name)
        for action in parser._actions:
            if action.metavar == "RECIPE" and action.choices is None:
                action.choices = recipes
        commands.add_parser(name, help=summary, parents=[parser], add_help=False)
    return whole
