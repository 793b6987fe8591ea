"""The tree that a rehearsal works on, patched: Debian's in a Debian root, or the pinned commit where git reaches it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError, SourceError
from mps_build.common.git import git, mirror_of
from mps_build.common.interpreters import find_interpreter
from mps_build.common.process import capture
from mps_build.common.receipts import Ledger, StepResult, fingerprint
from mps_build.common.recipe.catalogue import data_root, patches_root
from mps_build.common.recipe.model import Recipe
from mps_build.common.workspace import Workspace, cache_folder

from ..artifacts import SourceTree
from ..build_request import SourceRequest
from ..patches.apply import apply_patches
from ..steps.prepare_source import prepare_source
from .chroot import Chroot, check_host, find_mirror, make_root
from .debian_source import SOURCES, debian_source, unpack_source
from .session import Place, Rehearsal, rehearsal_folder

Origin = Literal["debian", "git"]


def choose_origin(recipe: Recipe, *, needs_root: bool, wanted: Origin | None) -> Origin:
    """Return where the tree comes from: the pinned commit where git reaches it, else Debian's package.

    Args:
        needs_root: --wheel and --darwin stand on Debian's libraries, so they take Debian's tree.

    Raises:
        SourceError: neither is to be had.
    """
    if wanted == "debian" or needs_root:
        debian_source(recipe.version)
        return "debian"
    if wanted == "git" or git_reaches(recipe):
        return "git"
    if recipe.version in SOURCES:
        return "debian"
    raise SourceError(
        f"no tree of {recipe.name} is available: {recipe.source.repository} does not answer, "
        f"and Debian's packages known here are {', '.join(SOURCES)}",
        hint="check the network; a recipe file of your own can name another `source.repository`",
    )


def git_reaches(recipe: Recipe) -> bool:
    """True where the recipe's commit is in the mirror, or its repository answers."""
    repository, commit = recipe.source.repository, recipe.commit
    if repository is None or commit is None:
        return False
    environ = fetch_environ(os.environ)
    if mirror_of(repository, cache=cache_folder(), environ=environ, log=Path(os.devnull)).has(commit):
        return True
    return capture(git("ls-remote", "-q", "--", repository, "HEAD", environ=environ), timeout_seconds=20).ok


def debian_root(rehearsal: Rehearsal, *, mirror: str | None) -> Chroot:
    """Return the Debian root, made where it is not there yet; sees our folders and the data files."""
    package = debian_source(rehearsal.recipe.version)
    home = rehearsal_folder() / "roots" / package.suite
    check_host(home)
    with Workspace(root=home).held():
        made = make_root(
            root=home / "root",
            suite=package.suite,
            mirror=lambda: find_mirror(mirror),
            ledger=Ledger(home / "receipts"),
            log=home / "root.log",
            reporter=rehearsal.console,
        )
    rehearsal.console.done()
    rehearsal.workspace.root.mkdir(parents=True, exist_ok=True)
    cache_folder().mkdir(parents=True, exist_ok=True)
    return replace(made, binds=(*made.binds, rehearsal.workspace.root, cache_folder(), data_root()))


def debian_place(rehearsal: Rehearsal, chroot: Chroot) -> Place:
    """Return the root as a place to work in."""
    package = debian_source(rehearsal.recipe.version)
    interpreter = Path(f"/usr/bin/python{package.python}")
    return Place(name=f"Debian {package.suite}", python=package.python, interpreter=interpreter, wrap=chroot.inside)


def debian_tree(rehearsal: Rehearsal, chroot: Chroot) -> tuple[SourceTree, str]:
    """Return Debian's tree with the recipe's patches on it, and its digest; other patches, another unpacking."""
    names = (*rehearsal.recipe.patches, *rehearsal.recipe.rehearsal_patches)
    digests = {name: fingerprint(patches_root() / name)["sha256"] for name in names}
    tree = unpack_source(
        rehearsal.recipe.version,
        chroot=chroot,
        folder=rehearsal.workspace.root,
        ledger=rehearsal.ledger,
        log=rehearsal.log("unpack_source"),
        reporter=rehearsal.console,
        inputs={"patches": digests},
    )

    def patch() -> StepResult:
        done = apply_patches(tree.root, names, patches_root=patches_root())
        return StepResult(trees=(tree.root,), facts={"files": sorted(done.files)})

    inputs = {"source": rehearsal.ledger.receipts[-1].digest, "patches": digests}
    receipt = rehearsal.ledger.run("apply_patches", version=1, inputs=inputs, action=patch)
    rehearsal.console.done()
    rehearsal.note("patches", f"{len(names)} apply to {tree.origin}", "they fit a real tree of this release", receipt)
    return tree, receipt.digest


def git_tree(rehearsal: Rehearsal) -> tuple[SourceTree, str]:
    """Return the pinned commit, with submodules and patches as build_wheel makes it, and its digest."""
    recipe = rehearsal.recipe
    request = SourceRequest(
        recipe=recipe, origin="git", repository=recipe.source.repository or "", commit=recipe.commit
    )
    tree, digest = prepare_source(
        request,
        workspace=rehearsal.workspace,
        ledger=rehearsal.ledger,
        environ=fetch_environ(os.environ),
        reporter=rehearsal.console,
        unchanged=True,
    )
    commit = (recipe.commit or "")[:12]
    rehearsal.note("patches", f"{len(request.patches)} apply to {commit}", "they fit the commit that the recipe pins")
    return tree, digest


def host_place(rehearsal: Rehearsal) -> Place:
    """Return this host as a place to work in, with the recipe's Python or another one that it allows.

    Raises:
        BuildEnvironmentError: none of the recipe's Pythons is here.
    """
    recipe = rehearsal.recipe
    environ = fetch_environ(os.environ)
    others = [python for python in reversed(recipe.pythons) if python != recipe.default_python]
    for python in (recipe.default_python, *others):
        try:
            interpreter = find_interpreter(python, environ=environ)
        except BuildEnvironmentError:
            continue
        return Place(name="this host", python=python, interpreter=interpreter, wrap=lambda command: command)
    raise BuildEnvironmentError(
        f"none of {recipe.name}'s Pythons is here: {', '.join(recipe.pythons)}",
        hint=f"uv python install {recipe.default_python}",
    )
