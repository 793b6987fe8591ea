"""SourceTree -> PatchedTree: the recipe's patches, applied in order, all of them or none."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mps_build.common.errors import PatchError
from mps_build.common.json_text import read_json

from .file import Patch, read_patch
from .trial import Scratch, scratch

_STAGE = ".mps-build-patching"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedPatch:
    """One patch of the series, by its content."""

    name: str
    sha256: str
    fixes: tuple[str, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedTree:
    """A tree that holds every patch of the series; `files` maps what they touch to its sha256 (None: removed)."""

    root: Path
    patches: tuple[AppliedPatch, ...]
    files: dict[str, str | None]
    already: bool


def apply_patches(
    tree_root: Path, names: Sequence[str], *, patches_root: Path, extra: Sequence[Path] = ()
) -> PatchedTree:
    """Apply the patches `names` of `patches_root`, then the user's own `extra`, in order, to the tree.

    The whole series is tried on copies first; only if it fits are the files replaced, through
    a staging folder, so that a run that was killed in the middle is finished by the next one.
    A tree that holds the whole series already is left as it is.

    Raises:
        PatchError: a patch is malformed, reaches outside the tree, does not fit (with the
            hunk), or the tree holds only a part of the series.
    """
    if not tree_root.is_dir():
        raise PatchError(f"{tree_root} is not a folder: there is nothing to patch", hint="fetch the source first")
    patches = tuple(read_patch(patches_root / name) for name in names)
    patches += tuple(read_patch(path, bare=True) for path in extra)
    _finish_interrupted(tree_root)
    files = tuple(dict.fromkeys(file for patch in patches for file in patch.files))
    with scratch(tree_root, patches) as copies:
        already = bool(patches) and _holds_all(copies, patches, tree_root)
        if not already:
            _apply_all(copies, patches)
            _replace(tree_root, copies.folder, files)
    return PatchedTree(
        root=tree_root,
        patches=tuple(_applied(patch) for patch in patches),
        files={str(file): _digest(tree_root / file) for file in files},
        already=already,
    )


def _holds_all(copies: Scratch, patches: Sequence[Patch], tree_root: Path) -> bool:
    """True where the series is in the tree already: taken off from the last to the first, every patch fits."""
    with scratch(tree_root, patches) as trial:
        for patch in reversed(patches):
            if not trial.holds(patch):
                return False
            trial.unapply(patch)
        # What came out must be a tree that the series fits; else a hunk was found in a wrong place.
        for patch in patches:
            if not trial.fits(patch):
                return False
            trial.apply(patch)
        return all(
            _digest(trial.folder / file) == _digest(copies.folder / file) for patch in patches for file in patch.files
        )


def _apply_all(copies: Scratch, patches: Sequence[Patch]) -> None:
    done: list[str] = []
    for patch in patches:
        if not copies.fits(patch):
            there = [other.name for other in patches if other.name not in done and copies.holds(other)]
            if there:
                missing = [other.name for other in patches if other.name not in there]
                raise PatchError(
                    f"the tree has only some of the patches: {', '.join(there)} yes, {', '.join(missing) or '-'} no",
                    hint="restore the source: `git checkout -- .` in the tree, or fetch it again",
                )
            misfit = copies.misfit(patch)
            raise PatchError(
                f"{misfit}\n  nothing was changed",
                hint="see what changed: `nox -s dev -- refresh_patches TREE`; or give the source that the recipe pins",
                document={
                    "patch": patch.name,
                    "hunk": misfit.hunk and {"file": str(misfit.hunk.path), "line": misfit.hunk.line},
                },
            )
        copies.apply(patch)
        done.append(patch.name)


def _replace(tree_root: Path, copies: Path, files: Sequence[PurePosixPath]) -> None:
    """Bring the patched copies into the tree: staged beside, named by a plan, then moved file by file."""
    stage = tree_root / _STAGE
    plan: dict[str, dict[str, str | None]] = {}
    for file in files:
        before, after = _state(tree_root / file), _state(copies / file)
        if before == after:
            continue
        plan[str(file)] = {"before": before, "after": after}
        if after is not None:
            (stage / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(copies / file, stage / file)
    if not plan:
        return
    stage.mkdir(exist_ok=True)
    beside = stage / "plan.json.part"
    with beside.open("w", encoding="utf-8") as stream:
        json.dump(plan, stream)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(stage / "plan.json")
    _finish_interrupted(tree_root)


def _finish_interrupted(tree_root: Path) -> None:
    """Carry out the plan in the staging folder, if there is one; every file is the old or the new one already."""
    stage = tree_root / _STAGE
    plan_file = stage / "plan.json"
    if not plan_file.is_file():
        if stage.exists():  # it was never whole, or all of it was carried out
            shutil.rmtree(stage)
        return
    plan: dict[str, dict[str, str | None]] = read_json(plan_file)
    for name, digests in plan.items():
        found = _state(tree_root / name)
        if found == digests["after"]:
            continue
        if found != digests["before"]:
            raise PatchError(
                f"{tree_root / name} was changed while patches were being applied",
                hint=f"restore the source, remove {stage}, then run the same command again",
            )
        if digests["after"] is None:
            (tree_root / name).unlink()
        else:
            (tree_root / name).parent.mkdir(parents=True, exist_ok=True)
            (stage / name).replace(tree_root / name)
    plan_file.unlink()
    shutil.rmtree(stage)


def _applied(patch: Patch) -> AppliedPatch:
    return AppliedPatch(
        name=patch.name, sha256=patch.sha256, fixes=patch.fixes, files=tuple(str(file) for file in patch.files)
    )


def _state(path: Path) -> str | None:
    """Return what tells a file's old form from its new one: a patch may change no more than its mode."""
    digest = _digest(path)
    return digest and digest + ("+x" if path.stat().st_mode & 0o100 else "")


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
