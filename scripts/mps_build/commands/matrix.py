"""The recipes and their Pythons: JSON for a workflow's matrix, or the README's support table.

Without --readme the matrix is printed as one line of JSON, to be appended to $GITHUB_OUTPUT.
--readme writes the table between the file's markers; with --check it changes nothing and fails
if the table there is not the one that the recipes give.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.files import write_whole
from mps_build.common.recipe.catalogue import all_recipes, find_recipe
from mps_build.common.recipe.support_table import matrix, support_table, with_table
from mps_build.common.result import Result

EXAMPLES = ("", "v2.14.1 v2.15.0 --per-recipe", "--default-python", "--readme README.md", "--readme README.md --check")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    recipes: tuple[str, ...]
    per_recipe: bool
    default_python: bool
    readme: Path | None
    check: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipes", nargs="*", metavar="RECIPE", help="default: every release")
    parser.add_argument("--per-recipe", action="store_true", help="one entry per recipe, all Pythons in one tree")
    parser.add_argument("--default-python", action="store_true", help="only each recipe's default Python")
    parser.add_argument("--readme", type=Path, metavar="FILE", help="write the support table into FILE")
    parser.add_argument("--check", action="store_true", help="with --readme: change nothing, fail if it differs")


def run(options: Options, console: Console) -> Result:
    chosen = tuple(find_recipe(name) for name in options.recipes)
    releases = chosen or tuple(recipe for recipe in all_recipes() if recipe.release is not None)
    if options.readme:
        return _readme(options.readme, support_table(releases), check=options.check, console=console)
    if options.check:
        raise UsageError("--check goes with --readme FILE")
    document = matrix(releases, per_recipe=options.per_recipe, only_default=options.default_python)
    console.print(json.dumps(document, separators=(",", ":")))
    return Result(document=document)


def _readme(path: Path, table: str, *, check: bool, console: Console) -> Result:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    wanted = with_table(text, table, name=str(path))
    if text == wanted:
        console.print(f"{path}: the support table is as the recipes say")
        return Result(document={"changed": False})
    if check:
        raise UsageError(
            f"{path}: the support table is not what the recipes say", hint=f"run `nox -s matrix -- --readme {path}`"
        )
    write_whole(path, wanted)
    console.print(f"{path}: the support table was written")
    return Result(document={"changed": True})
