"""A script that completes verbs, options and recipes in your shell: for bash, zsh or fish.

It holds all words itself, so that the shell starts nothing of ours at a tab; write it anew after an update.
"""

from __future__ import annotations

import argparse
import os
import sys

from mps_build.cli import VERBS, Result, parser_of
from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.recipe.catalogue import all_recipes

from .completion_script import SHELLS, script, verb_of

EXAMPLES = (
    "bash >> ~/.bash_completion",
    "zsh > ~/.zfunc/_mps-build",
    "fish > ~/.config/fish/completions/mps-build.fish",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", nargs="?", choices=SHELLS, help="default: the one in $SHELL")


def run(arguments: argparse.Namespace, console: Console) -> Result:
    shell = arguments.shell or os.path.basename(os.environ.get("SHELL", ""))  # noqa: PTH119 (a name, not a path of ours)
    if shell not in SHELLS:
        raise UsageError(
            f"$SHELL is {shell or 'not set'}: for bash, zsh and fish only", hint="say which: mps-build completion bash"
        )
    recipes = [recipe.name for recipe in all_recipes()]
    verbs = [verb_of(name, text, parser_of(name), known={"RECIPE": recipes}) for name, text in VERBS.items()]
    sys.stdout.write(script(shell, verbs))
    return Result(document={"shell": shell, "verbs": list(VERBS)})
