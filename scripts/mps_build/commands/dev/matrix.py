"""List the recipes and their Pythons as JSON, for a workflow.

It is one line, for the matrix of a workflow ($GITHUB_OUTPUT). With --show the whole of one recipe is printed, with all
that it takes from defaults.yaml: a recipe that stands alone.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass

from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.recipe.catalogue import all_recipes, find_recipe
from mps_build.common.recipe.forms import as_yaml, matrix
from mps_build.common.reporting import Result

TASK = ("repository", 3)
DOCUMENT = "?include:array ?recipe:object"
EXAMPLES = ("", "v2.14.1 v2.15.0 --per-recipe", "--default-python", "v2.13.0 --show")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    recipes: tuple[str, ...]
    per_recipe: bool
    default_python: bool
    show: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("recipes", nargs="*", metavar="RECIPE", help="default: every release")
    parser.add_argument("--per-recipe", action="store_true", help="one entry per recipe, all Pythons in one tree")
    parser.add_argument("--default-python", action="store_true", help="only each recipe's default Python")
    parser.add_argument("--show", action="store_true", help="print the whole of one recipe instead, as YAML")


def run(options: Options, console: Console) -> Result:
    """Print the matrix, or with `--show` a recipe.

    Raises:
        UsageError: --show with no recipe, or with several.
    """
    chosen = tuple(find_recipe(name) for name in options.recipes)
    if options.show:
        if len(chosen) != 1:
            raise UsageError("--show takes one recipe", hint="nox -s dev -- matrix v2.13.0 --show")
        console.verbatim(as_yaml(chosen[0]).rstrip("\n"))
        return Result(document={"recipe": chosen[0].model_dump(mode="json")})
    releases = chosen or tuple(recipe for recipe in all_recipes() if recipe.release is not None)
    document = matrix(releases, per_recipe=options.per_recipe, only_default=options.default_python)
    console.print(json.dumps(document, separators=(",", ":")))
    return Result(document=document)
