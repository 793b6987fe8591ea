"""Which releases a change touches: those whose recipe, locks or patches it changes, or what they take from defaults."""

from __future__ import annotations

import tempfile
from pathlib import Path

from mps_build.common.errors import SourceError, UsageError
from mps_build.common.git import git
from mps_build.common.process import Captured, capture, neutral_environ
from mps_build.common.recipe.catalogue import all_recipes, data_root, defaults_file, load_recipe, recipe_file
from mps_build.common.recipe.defaults import DEFAULTS
from mps_build.common.recipe.model import Recipe


def changed_recipes(base: str) -> list[str]:
    """Return the names of the releases that differ from where this branch left `base`.

    Raises:
        SourceError: git does not know the base, or not enough of its history.
    """
    found = _git("diff", "--name-only", "--end-of-options", f"{base}...HEAD", "--", "build_recipes", "patches")
    if not found.ok:
        raise SourceError(f"git diff since {base}: {found.stderr.strip()}", hint="fetch with fetch-depth: 0")
    files = {Path(line).name for line in found.stdout.splitlines()}
    releases = [recipe for recipe in all_recipes() if recipe.release is not None]
    changed = _changed_by_defaults(releases, base) if DEFAULTS in files else frozenset()
    return [
        recipe.name
        for recipe in releases
        if recipe.name in changed or f"{recipe.name}.yaml" in files or files & {*recipe.patches, recipe.lock_name}
    ]


def _changed_by_defaults(releases: list[Recipe], base: str) -> frozenset[str]:
    """Return the names of the recipes that would be others with the defaults of the base."""
    left = _git("merge-base", base, "HEAD").stdout.strip()
    old = _git("show", f"{left}:./{defaults_file().relative_to(data_root())}")
    if not old.ok:  # the base had none
        return frozenset(recipe.name for recipe in releases)
    with tempfile.TemporaryDirectory(prefix="mps-build-defaults-") as folder:
        path = Path(folder) / DEFAULTS
        path.write_text(old.stdout, encoding="utf-8")
        return frozenset(recipe.name for recipe in releases if _with_defaults(recipe, path) != recipe)


def _with_defaults(recipe: Recipe, defaults: Path) -> Recipe | None:
    """Return what a recipe would be with other defaults; None: no recipe at all."""
    try:
        return load_recipe(recipe_file(recipe.name), defaults=defaults)
    except UsageError:
        return None


def _git(*arguments: str) -> Captured:
    return capture(git(*arguments, cwd=data_root(), environ=neutral_environ()))
