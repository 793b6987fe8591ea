"""List the recipes and their Pythons as JSON, for a workflow.

It is one line, for the matrix of a workflow ($GITHUB_OUTPUT).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass

from mps_build.common.console import Console
from mps_build.common.recipe.catalogue import all_recipes, find_recipe
from mps_build.common.recipe.support_table import matrix
from mps_build.common.result import Result

TASK = ("build", 7)
EXAMPLES = ("", "v2.14.1 v2.15.0 --per-recipe", "--default-python")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    recipes: tuple[str, ...]
    per_recipe: bool
    default_python: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("recipes", nargs="*", metavar="RECIPE", help="default: every release")
    parser.add_argument("--per-recipe", action="store_true", help="one entry per recipe, all Pythons in one tree")
    parser.add_argument("--default-python", action="store_true", help="only each recipe's default Python")


def run(options: Options, console: Console) -> Result:
    """Print the matrix, and append it to the step's outputs on GitHub."""
    chosen = tuple(find_recipe(name) for name in options.recipes)
    releases = chosen or tuple(recipe for recipe in all_recipes() if recipe.release is not None)
    document = matrix(releases, per_recipe=options.per_recipe, only_default=options.default_python)
    console.print(json.dumps(document, separators=(",", ":")))
    return Result(document=document)
