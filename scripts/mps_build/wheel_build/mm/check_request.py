"""What is asked for, as a checker and files: tree, headers, deployment target, the changed files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ...common.environment import fetch_environ
from ...common.errors import SourceError, UsageError
from ...common.git import git
from ...common.process import capture
from ...common.recipe.catalogue import all_recipes
from ...common.recipe.model import Recipe
from ...common.reporter import Reporter
from ...common.wheels.naming import release_of
from ..objc import write_frameworks
from ..objc.model import version
from .compiler import Checker, find_zig
from .headers import prepared_headers
from .tree import MPS_FOLDERS, MpsTree

SUFFIXES = (".mm", ".m", ".h")


def make_checker(tree: MpsTree, *, target: str, folder: Path, reporter: Reporter) -> Checker:
    """Return a checker for a tree: declarations written, generated headers made.

    Args:
        target: the oldest macOS that the wheel is for, as 13.0.
        folder: where all this lies, and stays for the next time.

    Raises:
        BuildEnvironmentError: there is no zig.
        SourceError: the tree's own generator failed.
    """
    zig = find_zig()
    scratch = folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    return Checker(
        zig=zig,
        tree=tree,
        generated=prepared_headers(tree, folder / "headers", reporter),
        frameworks=write_frameworks(folder / "frameworks"),
        target=target,
        scratch=scratch,
    )


def recipe_of(tree: MpsTree) -> Recipe | None:
    """Return the recipe whose rules hold for a tree: its release's, or the newest one that is older."""
    release = release_of(tree.release)
    known = [each for each in all_recipes() if each.source.kind != "embedded" and release_of(each.version)]
    older = [each for each in known if release_of(each.version)[:2] <= release[:2]]
    return max(older, key=lambda each: release_of(each.version), default=None)


def oldest_macos(recipe: Recipe | None) -> str:
    """Return the oldest macOS that MPS code of a release runs on: below its floor PyTorch refuses MPS."""
    if recipe is None:
        return "13.0"
    return max(recipe.deployment_target, recipe.mps_floor, key=version)


def existing_files(names: Sequence[Path]) -> tuple[Path, ...]:
    """Return the files as absolute paths.

    Raises:
        UsageError: one is missing, or is not Objective-C++.
    """
    for name in names:
        if not name.is_file():
            raise UsageError(f"{name} is not a file", hint="name .mm files; without any, the changed ones are checked")
        if name.suffix not in SUFFIXES:
            raise UsageError(f"{name} is not Objective-C++", hint="check_mm takes .mm, .m and .h files")
    return tuple(dict.fromkeys(name.resolve() for name in names))


def changed_files(root: Path, *, base: str | None) -> tuple[tuple[Path, ...], str]:
    """Return the MPS files of a tree that differ from the base commit, committed or not, and what that base is.

    Args:
        base: a commit or branch; None: where the branch left upstream's, or HEAD where that is not known.

    Raises:
        UsageError: not a git repository, or no such commit.
    """
    if not _git(root, "rev-parse", "--git-dir"):
        raise UsageError(
            f"{root} is not a git repository: which files were changed cannot be known", hint="name the files"
        )
    commit = _base(root, base)
    listed = _git(root, "diff", "--name-only", "--diff-filter=d", "-z", commit, "--")
    new = _git(root, "ls-files", "--others", "--exclude-per-directory=.gitignore", "-z")
    names = [name for name in f"{listed or ''}\0{new or ''}".split("\0") if name]
    chosen = [root / name for name in names if name.endswith((".mm", ".h")) and is_mps(name)]
    return tuple(path.resolve() for path in sorted(set(chosen)) if path.is_file()), commit


def is_mps(name: str) -> bool:
    """Tell MPS's files from iOS's and the old Metal backend's, which a Mac with MPS does not compile.

    >>> is_mps("aten/src/ATen/native/mps/operations/Pad.mm"), is_mps("aten/src/ATen/native/metal/MetalAten.mm")
    (True, False)
    """
    return name.startswith(tuple(f"{each}/" for each in MPS_FOLDERS)) and "/kernels/" not in name


def _base(root: Path, base: str | None) -> str:
    if base is not None:
        commit = _git(root, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}")
        if not commit:
            raise UsageError(
                f"--base {base}: no such commit in {root}", hint="a branch, a tag or a commit of that tree"
            )
        return commit
    for upstream in ("upstream/main", "origin/main", "origin/HEAD", "main"):
        commit = _git(root, "merge-base", "HEAD", upstream)
        if commit:
            return commit
    head = _git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    if not head:
        raise SourceError(f"{root} has no commit yet", hint="name the files")
    return head


def _git(root: Path, *arguments: str) -> str | None:
    answer = capture(git(*arguments, cwd=root, environ=fetch_environ(os.environ)), timeout_seconds=60)
    return answer.stdout.strip() if answer.ok else None
