"""Show which patches apply to a tree or a tag, are upstream already, or conflict.

A patch may also find that its file is missing.

The source is an unpacked tree, a recipe, or any tag, branch or commit of PyTorch (only the files that
patches touch are read). Patches that the recipe lists are tried one upon the other, the rest by themselves.
Exit 5 if one that the recipe lists does not apply and is not upstream either.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import PatchError, SourceError, UsageError
from mps_build.common.git import git, mirror_of
from mps_build.common.process import capture
from mps_build.common.recipe.catalogue import all_recipes, find_recipe, patches_root
from mps_build.common.recipe.model import Recipe
from mps_build.common.reporting import Result
from mps_build.common.workspace import cache_folder, work_folder
from mps_build.wheel_build.mm.check import Report, check_patches, oldest_macos
from mps_build.wheel_build.patches.file import Patch, read_patch
from mps_build.wheel_build.patches.trial import Standing, survey
from mps_build.wheel_build.steps.prepare_source import resolve_ref

from ..shared.options import add_offline

TASK = ("repository", 4)
EXITS = (5,)
DOCUMENT = "source:string recipe:string|null patches:array objective_c:array|string"
EXAMPLES = ("v2.6.0", "main", "work/v2.6.0/source --recipe v2.6.0", "v2.16.0 --recipe v2.15.0")
REPOSITORY = "https://github.com/pytorch/pytorch.git"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    source: str
    recipe: str | None
    repository: str | None
    offline: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("source", metavar="TAG|TREE", help="a recipe, tag, branch, commit, or an unpacked tree")
    parser.add_argument("--recipe", metavar="RECIPE", help="the recipe whose patches are tried (default: the tag's)")
    parser.add_argument("--repository", metavar="URL", help="the repository of the tag (default: PyTorch's)")
    add_offline(parser)


def run(options: Options, console: Console) -> Result:
    """Try every patch; the exit status is 5 if one that the recipe lists does not apply."""
    recipe = _recipe(options)
    listed = recipe.patches + recipe.rehearsal_patches if recipe else ()
    series = [read_patch(patches_root() / name) for name in listed]
    others = [read_patch(path) for path in sorted(patches_root().glob("*.patch")) if path.name not in listed]
    with _tree(options, recipe, [*series, *others], console) as (root, named):
        standings = survey(root, series, others)
        report = _check_mm(root, recipe, series, console)
    rows = [
        (standing.patch.name, standing.state, "yes" if standing.patch.name in listed else "", _note(standing))
        for standing in standings
    ]
    console.table(("patch", "state", "listed", "note"), rows, title=f"patches against {named}")
    broken = [one for one in standings if one.patch.name in listed and one.state in ("conflicts", "absent")]
    document = {
        "source": named,
        "recipe": recipe.name if recipe else None,
        "patches": [{**one.document(), "listed": one.patch.name in listed} for one in standings],
    }
    wrong = () if isinstance(report, str) else report.diagnostics
    document["objective_c"] = report if isinstance(report, str) else [each.document() for each in wrong]
    if any(file.suffix == ".mm" for patch in series for file in patch.files):
        console.print(f"Objective-C++: {report if isinstance(report, str) else f'{len(report.files)} files checked'}")
    for each in wrong:
        console.print(f"{each.file}:{each.line}:{each.column}: {each.severity}: {each.text}")
    for standing in standings:
        if standing.misfit and standing.patch.name in listed:
            console.print(str(standing.misfit))
    if broken:
        names = ", ".join(one.patch.name for one in broken)
        raise PatchError(
            f"of the patches that {recipe.name if recipe else 'the recipe'} lists, these do not apply: {names}",
            hint="update them for this source, or remove them from the recipe",
            document=document,
        )
    if wrong:
        raise PatchError(
            f"{len(wrong)} diagnostics in the Objective-C++ of patches",
            hint="docs/build/check_mm.md says what each means",
            document=document,
        )
    return Result(document=document)


def _check_mm(root: Path, recipe: Recipe | None, series: Sequence[Patch], console: Console) -> Report | str:
    """Return what check_mm says of the patches' `.mm` files, or why it was not run."""
    target = oldest_macos(recipe)
    return check_patches(root, series, target=target, folder=work_folder() / "check_mm", reporter=console)


def _recipe(options: Options) -> Recipe | None:
    if options.recipe:
        return find_recipe(options.recipe)
    if Path(options.source).is_dir():
        return None
    return next((recipe for recipe in all_recipes() if options.source in (recipe.name, recipe.tag)), None)


def _note(standing: Standing) -> str:
    if standing.misfit and standing.misfit.hunk:
        return f"hunk {standing.misfit.hunk.number} of {standing.misfit.hunk.path}, line {standing.misfit.hunk.line}"
    if standing.misfit:
        return standing.misfit.git_says
    if standing.state == "upstream":
        return "can be dropped here"
    return ", ".join(standing.patch.fixes)


@contextmanager
def _tree(
    options: Options, recipe: Recipe | None, patches: Sequence[Patch], console: Console
) -> Iterator[tuple[Path, str]]:
    given = Path(options.source)
    if given.is_dir():
        yield given, str(given)
        return
    if recipe and recipe.source.kind == "embedded":
        raise UsageError(f"{recipe.name} has no upstream to try patches on")
    environ = fetch_environ(os.environ)
    url = options.repository or (recipe and recipe.source.repository) or REPOSITORY
    pinned = recipe.commit if recipe and options.source in (recipe.name, recipe.tag) else None
    commit = pinned or resolve_ref(url, options.source, environ=environ)
    mirror = mirror_of(url, cache=cache_folder(), environ=environ, log=work_folder() / "refresh_patches.log")
    console.started(f"Fetch {commit[:12]}", unit="bytes")
    mirror.fetch(commit, offline=options.offline, on_bytes=console.advanced)
    console.done()
    with tempfile.TemporaryDirectory(prefix="mps-build-tree-") as name:
        root = Path(name).resolve()
        for file in dict.fromkeys(file for patch in patches for file in patch.files):
            shown = capture(git("cat-file", "blob", f"{commit}:{file}", cwd=mirror.path, environ=environ))
            if shown.ok:
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(shown.stdout, encoding="utf-8")
            elif "does not exist" not in shown.stderr and "exists on disk, but not in" not in shown.stderr:
                raise SourceError(f"{file} at {commit[:12]} cannot be read: {shown.stderr.strip()}")
        yield root, f"{options.source} ({commit[:12]})"
