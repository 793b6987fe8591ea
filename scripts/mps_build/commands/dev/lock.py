"""Pin the versions and hashes of each recipe's build requirements.

There is one file per recipe, for all its Pythons, in build_recipes/locks/.

Only missing and stale locks are made; --upgrade makes all of them anew, with the newest
versions that the recipes allow. --check asks nothing of the network: it says which lock is
missing, stale, edited by hand, or left over, and fails if one is.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.files import write_whole
from mps_build.common.recipe.catalogue import all_recipes, find_recipe, locks_root
from mps_build.common.recipe.locking import check_uv, lock_fault, make_lock
from mps_build.common.recipe.model import Recipe
from mps_build.common.reporting import Result

TASK = ("repository", 2)
EXTRA = "lock"
DOCUMENT = "?made:array ?removed:array ?faults:object"
EXAMPLES = ("", "v2.6.0", "--check", "--upgrade v2.15.0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    recipes: tuple[str, ...]
    check: bool
    upgrade: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("recipes", nargs="*", metavar="RECIPE", help="default: all")
    parser.add_argument("--check", action="store_true", help="change nothing; list the locks that are out of date")
    parser.add_argument("--upgrade", action="store_true", help="also make locks again that are up to date")


def run(options: Options, console: Console) -> Result:
    """Make the locks that are out of date, or with `--check` only name them.

    Raises:
        UsageError: with `--check`, a lock does not match its recipe.
    """
    recipes = tuple(find_recipe(name) for name in options.recipes) or all_recipes()
    faults = dict(_faults(recipes))
    left_over = () if options.recipes else _left_over(recipes)
    if options.check:
        return _report(faults, left_over, console)
    wanted = [recipe for recipe in recipes if recipe.build_requirements]
    wanted = [recipe for recipe in wanted if options.upgrade or recipe.lock_name in faults]
    if wanted:
        check_uv()
    console.started("Make locks", total=len(wanted), unit="locks")
    for done, recipe in enumerate(wanted, 1):
        write_whole(locks_root() / recipe.lock_name, make_lock(recipe.build_requirements, recipe.pythons))
        console.advanced(done, note=recipe.lock_name)
    console.done()
    for path in left_over:
        path.unlink()
    console.print(f"{len(wanted)} locks made, {len(left_over)} unused ones removed, the rest were up to date")
    return Result(
        document={"made": [recipe.lock_name for recipe in wanted], "removed": [path.name for path in left_over]}
    )


def _faults(recipes: tuple[Recipe, ...]) -> Iterator[tuple[str, str]]:
    for recipe in recipes:
        path = locks_root() / recipe.lock_name
        text = path.read_text(encoding="utf-8") if path.is_file() else None
        if recipe.build_requirements and (fault := lock_fault(text, recipe.build_requirements, recipe.pythons)):
            yield path.name, fault


def _left_over(recipes: tuple[Recipe, ...]) -> tuple[Path, ...]:
    known = {recipe.lock_name for recipe in recipes if recipe.build_requirements}
    return tuple(path for path in sorted(locks_root().glob("*.txt")) if path.name not in known)


def _report(faults: dict[str, str], left_over: tuple[Path, ...], console: Console) -> Result:
    rows = [*faults.items(), *((path.name, "is left over: no recipe names it") for path in left_over)]
    document = {"faults": dict(rows)}
    if not rows:
        console.print("every lock is up to date")
        return Result(document=document)
    console.table(("lock", "fault"), rows)
    raise UsageError(
        f"{len(rows)} locks do not match their recipes", hint="run `nox -s dev -- lock`", document=document
    )
