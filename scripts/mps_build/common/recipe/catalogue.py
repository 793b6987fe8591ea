"""Where recipes lie, and which one an argument names."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from packaging.version import Version

from .. import strict_yaml
from ..errors import UsageError
from ..strict_yaml import Fault
from ..workspace import CHECKOUT, PACKAGE, expanded
from .consistency import cross_faults
from .defaults import DEFAULTS, resolve
from .model import Recipe


def data_root() -> Path:
    """Return the folder that holds build_recipes/ and patches/: the checkout, else the installed package's data."""
    return CHECKOUT if (CHECKOUT / "build_recipes").is_dir() else PACKAGE / "data"


def recipes_root() -> Path:
    """Return the folder of the recipes: the checkout's, else the installed package's."""
    return data_root() / "build_recipes"


def locks_root() -> Path:
    """Return the folder of the lock files, one for each recipe and Python."""
    return recipes_root() / "locks"


def patches_root() -> Path:
    """Return the folder of the patches that recipes name."""
    return data_root() / "patches"


def defaults_file() -> Path:
    """Return the file of what releases have in common: ours, also for a recipe that lies elsewhere."""
    return recipes_root() / DEFAULTS


def load_recipe(path: Path, *, defaults: Path | None = None) -> Recipe:
    """Return the recipe in `path`, or raise a UsageError that lists every fault with file, line and key.

    Args:
        defaults: another file in the place of ours.
    """
    shared = defaults or defaults_file()
    recipe = _recipe(
        path,
        strict_yaml.text_of(path),
        shared,
        strict_yaml.text_of(shared) if shared.is_file() else None,
        tuple(sorted(each.name for each in patches_root().glob("*.patch"))),
    )
    if path.resolve().parent == recipes_root() and path.stem != recipe.name:
        raise UsageError(f"{path}: declares {recipe.version}, so its name must be {recipe.name}.yaml")
    return recipe


# `doctor --all`, the fleet's plan and the generated pages each read every recipe, and each of them the defaults anew.
@lru_cache(maxsize=64)
def _recipe(path: Path, text: str, shared: Path, shared_text: str | None, patches: tuple[str, ...]) -> Recipe:
    """Return the recipe of these texts; it is frozen, so that all who ask may have the same one."""

    def defaults() -> strict_yaml.Document:
        return strict_yaml.read(shared) if shared_text is None else strict_yaml.document_of(shared_text, str(shared))

    resolved = resolve(strict_yaml.document_of(text, str(path)), defaults)
    return strict_yaml.validated(
        resolved.data,
        Recipe,
        documents=resolved.documents,
        origin=resolved.origin,
        checks=[cross_faults, partial(_missing_patches, patches)],
        faults=resolved.faults,
    )


def find_recipe(argument: str) -> Recipe:
    """Return the recipe that `v2.6.0`, `2.6.0`, `2.6`, `sample`, `nightly` or a path names."""
    return load_recipe(recipe_file(argument))


def recipe_file(argument: str) -> Path:
    """Return the file of the recipe that an argument of `find_recipe` names.

    Raises:
        UsageError: there is no such recipe.
    """
    if argument.endswith((".yaml", ".yml")) or "/" in argument:
        return expanded(argument)
    known = {path.stem: path for path in _recipe_files()}
    wanted = argument.strip().lower()
    wanted = f"v{wanted}" if wanted[:1].isdecimal() else wanted
    if wanted in known:
        return known[wanted]
    if re.fullmatch(r"v\d+\.\d+", wanted) and (of_minor := [stem for stem in known if stem.startswith(f"{wanted}.")]):
        return known[max(of_minor, key=_order)]
    if meant := re.fullmatch(r"v?torch\s*={0,2}\s*v?(\d[\w.]*)", wanted):
        wanted = f"v{meant[1]}"
        if wanted in known:
            raise UsageError(
                f"no recipe {argument!r}: a recipe is named by its release", hint=f"did you mean {wanted}?"
            )
    raise UsageError(f"no recipe {argument!r}", hint=f"{_near(wanted, list(known))}; or give a path to a recipe file")


def all_recipes() -> tuple[Recipe, ...]:
    """Return every recipe, by version and not by name; those without a version come last."""
    return tuple(load_recipe(path) for path in sorted(_recipe_files(), key=lambda path: _order(path.stem)))


def newest_stable() -> Recipe:
    """Return the recipe of the newest release."""
    releases = [path for path in _recipe_files() if _is_release(path.stem)]
    if not releases:
        raise UsageError(f"{recipes_root()} holds no recipe of a release")
    return load_recipe(max(releases, key=lambda path: _order(path.stem)))


def _recipe_files() -> Iterator[Path]:
    root = recipes_root()
    if not root.is_dir():
        raise UsageError(f"{root} is missing", hint="install mps-build again, or run it from a whole clone")
    return (path for path in root.glob("*.yaml") if path.name != DEFAULTS)


def _missing_patches(known: Sequence[str], data: Any) -> Iterator[Fault]:
    for key in ("patches", "rehearsal_patches"):
        names = data.get(key) if isinstance(data, dict) else None
        for index, name in enumerate(names if isinstance(names, list) else ()):
            if isinstance(name, str) and name not in known:
                near = difflib.get_close_matches(name[:200], known, n=1)
                shown = name if len(name) <= 200 else f"{name[:200]}…"
                yield (key, index), f"{shown!r} is not in patches/" + (f"; is {near[0]} meant?" if near else "")


def _is_release(stem: str) -> bool:
    try:
        return not Version(stem).is_prerelease
    except ValueError:
        return False


def _order(stem: str) -> tuple[bool, Version, str]:
    try:
        return False, Version(stem), stem
    except ValueError:
        return True, Version("0"), stem


def _near(wanted: str, known: list[str]) -> str:
    ordered = sorted(known, key=_order)
    try:
        number = Version(wanted)
    except ValueError:
        close = sorted(difflib.get_close_matches(wanted, known, n=3, cutoff=0.6), key=_order)
    else:
        releases = [stem for stem in ordered if _is_release(stem)]
        of_minor = [stem for stem in releases if Version(stem).release[:2] == number.release[:2]]
        older = [stem for stem in releases if Version(stem) < number]
        alike = difflib.get_close_matches(wanted, releases, n=1, cutoff=0.7)  # 2.66 is a slip for 2.6
        close = of_minor or list(dict.fromkeys([*alike, *older[-1:], *releases[len(older) : len(older) + 1]]))
    return f"near: {', '.join(close)}; all: {', '.join(ordered)}" if close else f"there are: {', '.join(ordered)}"


def build_python(recipe: Recipe) -> str:
    """Return the Python that a build makes a wheel for unless another is requested."""
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    # The embedded source tries a toolchain: any Python will do, and ours is there.
    return ours if recipe.source.kind == "embedded" and ours in recipe.pythons else recipe.default_python
