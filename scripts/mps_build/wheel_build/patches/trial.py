"""Patches tried on copies of the files they touch: does each fit, is it there already, which hunk does not fit.

`git apply` does the work, outside any repository, so that it judges alike in a clone and in
an unpacked archive; the tree itself is only read.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from mps_build.common.errors import HostError, PatchError, SourceError
from mps_build.common.git import check_machine, git, mirror_of, run_git
from mps_build.common.process import Captured, Command, capture, neutral_environ

from .file import Hunk, Patch

State = Literal["applies", "upstream", "absent", "conflicts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """Why a patch does not fit: the hunk, or a file that is missing, and git's own words."""

    patch: str
    hunk: Hunk | None
    git_says: str

    def __str__(self) -> str:
        if self.hunk is None:
            return f"{self.patch} does not fit: {self.git_says}"
        shown = "\n".join(f"    {line}" for line in self.hunk.lines[:14])
        cut = "\n    ..." if len(self.hunk.lines) > 14 else ""
        return (
            f"{self.patch} does not fit: hunk {self.hunk.number} of {self.hunk.path}, at line {self.hunk.line}"
            f" ({self.git_says}):\n{shown}{cut}"
        )


class Scratch:
    """Copies of the files that patches touch, in a folder of their own."""

    def __init__(self, folder: Path, tree_root: Path, files: Sequence[PurePosixPath]) -> None:
        self.folder = folder
        for file in files:
            source = tree_root / file
            if source.is_file():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, folder / file)

    def apply(self, patch: Patch) -> None:
        """Apply `patch` to the copies, all of it or nothing; the caller has called `fits`."""
        answer = self._git(patch)
        if answer.exit != 0:
            raise PatchError(f"{patch.name}: git apply failed after its check passed: {answer.stderr.strip()}")

    def unapply(self, patch: Patch) -> None:
        """Revert a patch that was applied here.

        Raises:
            PatchError: git cannot revert it.
        """
        answer = self._git(patch, "--reverse")
        if answer.exit != 0:
            raise PatchError(f"{patch.name}: cannot be reverted: {answer.stderr.strip()}")

    def fits(self, patch: Patch) -> bool:
        """Return whether the patch applies to the tree as it is now; nothing is changed."""
        return self._git(patch, "--check").exit == 0

    def holds(self, patch: Patch) -> bool:
        """True where every hunk of `patch` is in the files already."""
        return self._git(patch, "--check", "--reverse").exit == 0

    def misfit(self, patch: Patch) -> Misfit:
        """Return the first hunk that does not fit."""
        check = self._git(patch, "--check")
        words = _first_error(check.stderr)
        with tempfile.TemporaryDirectory(prefix="mps-build-reject-") as name:
            trial = Scratch(Path(name), self.folder, patch.files)
            answer = trial._git(patch, "--reject", "--verbose")
        return Misfit(patch=patch.name, hunk=_first_rejected(answer.stderr, patch), git_says=words)

    def _git(self, patch: Patch, *options: str) -> Captured:
        answer = capture(_git_apply(self.folder, patch.path, *options), timeout_seconds=120)
        if answer.exit is None:
            raise HostError(f"git apply could not be run: {answer.stderr}", hint="install git")
        check_machine(answer.stderr, during=f"while {patch.name} is tried")
        return answer


@contextmanager
def scratch(tree_root: Path, patches: Sequence[Patch]) -> Iterator[Scratch]:
    """Give a scratch with the files of `patches`; every path is held to lie inside the tree."""
    files = tuple(dict.fromkeys(file for patch in patches for file in patch.files))
    for file in files:
        _refuse_escape(tree_root, file)
    with tempfile.TemporaryDirectory(prefix="mps-build-patches-") as name:
        yield Scratch(Path(name).resolve(), tree_root, files)


def _refuse_escape(tree_root: Path, file: PurePosixPath) -> None:
    """A symbolic link in the tree could lead a patch to a file anywhere; a folder is not a file, nor the other way."""
    path = tree_root
    for depth, part in enumerate(file.parts, 1):
        path = path / part
        last = depth == len(file.parts)
        if path.is_symlink():
            raise PatchError(
                f"{path} is a symbolic link to {path.readlink()}: nothing is written through it",
                hint="fetch the source again; a real tree has a plain file there",
            )
        if path.exists() and path.is_dir() == last:
            raise PatchError(f"{path} is a {'folder' if last else 'file'}: the patch expects the other kind")


def _git_apply(folder: Path, patch: Path, *options: str) -> Command:
    # No repository is looked for: inside one, git apply passes over files outside the current
    # folder and still says success.
    words = ("apply", "--whitespace=nowarn", *options, "--", str(patch.resolve()))
    command = git(*words, cwd=folder, environ=neutral_environ())
    return replace(command, environ={**(command.environ or {}), "GIT_CEILING_DIRECTORIES": str(folder.parent)})


def _first_error(stderr: str) -> str:
    errors = [line.removeprefix("error: ") for line in stderr.splitlines() if line.startswith("error: ")]
    return next((line for line in errors if "patch failed" not in line), errors[0] if errors else stderr.strip())


def _first_rejected(verbose: str, patch: Patch) -> Hunk | None:
    """Return the hunk that `git apply --reject --verbose` names first.

    It says `Checking patch FILE...` for each file, then `Applying patch FILE with N rejects...`
    and `Rejected hunk #N.` below it.
    """
    current = None
    for line in verbose.splitlines():
        if match := re.match(r"Applying patch (.+?) with \d+ rejects?\.\.\.$", line):
            current = PurePosixPath(match[1])
        elif (match := re.match(r"Rejected hunk #(\d+)\.", line)) and current:
            number = int(match[1])
            return next((hunk for hunk in patch.hunks if hunk.path == current and hunk.number == number), None)
    return None


# How each patch stands to a tree: it applies, is there already, its file is not there, or it conflicts.


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One patch against one tree; `misfit` is there only where it conflicts."""

    patch: Patch
    state: State
    misfit: Misfit | None = None

    def document(self) -> dict[str, Any]:
        """Return the row of `refresh_patches --json`; `hunk` is null where the patch applies."""
        hunk = self.misfit.hunk if self.misfit else None
        return {
            "name": self.patch.name,
            "state": self.state,
            "fixes": list(self.patch.fixes),
            "reason": self.misfit.git_says if self.misfit else None,
            "hunk": hunk and {"file": str(hunk.path), "line": hunk.line, "lines": list(hunk.lines)},
        }


def survey(tree_root: Path, series: Sequence[Patch], others: Iterable[Patch] = ()) -> tuple[Standing, ...]:
    """Return how patches stand to the tree: `series` one upon the other, each of `others` by itself."""
    standings: list[Standing] = []
    with scratch(tree_root, series) as copies:
        for patch in series:
            standing = _standing(copies.folder, patch)
            if standing.state == "applies":
                copies.apply(patch)
            standings.append(standing)
    for patch in others:
        with scratch(tree_root, [patch]) as copies:
            standings.append(_standing(copies.folder, patch))
    return tuple(standings)


def _standing(folder: Path, patch: Patch) -> Standing:
    changed = {hunk.path for hunk in patch.hunks if hunk.before}
    if any(not (folder / file).is_file() for file in changed):
        return Standing(patch=patch, state="absent")
    with scratch(folder, [patch]) as copies:
        if copies.fits(patch):
            return Standing(patch=patch, state="applies")
        if copies.holds(patch):
            return Standing(patch=patch, state="upstream")
        return Standing(patch=patch, state="conflicts", misfit=copies.misfit(patch))


# A series of patches tried at a commit, before its source is fetched: only the files that they name are read.


def try_at_commit(
    patches: Sequence[Patch], *, repository: str, commit: str, cache: Path, environ: Mapping[str, str], offline: bool
) -> None:
    """Try the series on the files of `commit`; nothing is kept.

    They come from the build's mirror or a local repository where that has the commit, else from the repository itself,
    without its blobs: some seconds for PyTorch.

    Raises:
        PatchError: one does not fit, with the hunk; or its file is not there.
        SourceError: the files cannot be had.
    """
    files = tuple(dict.fromkeys(file for patch in patches for file in patch.files))
    with tempfile.TemporaryDirectory(prefix="mps-build-patched-files-") as name:
        folder = Path(name).resolve()
        with _holding(commit, repository=repository, cache=cache, environ=environ, offline=offline) as holder:
            for file in files:
                _copy(holder, commit, file, folder / file, environ=environ)
        standings = survey(folder, patches)
    wrong = next((standing for standing in standings if standing.state != "applies"), None)
    if wrong is None:
        return
    said = {
        "upstream": f"{wrong.patch.name} does not fit: {commit[:12]} holds it already",
        "absent": f"{wrong.patch.name} does not fit: {commit[:12]} lacks a file that it changes",
    }
    raise PatchError(
        said.get(wrong.state, str(wrong.misfit)), hint="give the source that the recipe pins, or leave the patch out"
    )


@contextmanager
def _holding(commit: str, *, repository: str, cache: Path, environ: Mapping[str, str], offline: bool) -> Iterator[Path]:
    """Give a repository that has the commit's tree, and its files at least by a fetch of each."""
    mirror = mirror_of(repository, cache=cache, environ=environ, log=cache / "unused.log")
    local = Path(repository)
    if mirror.has(commit):
        yield mirror.path
    elif local.is_dir():
        yield local
    elif offline:
        raise SourceError("the source is not in the cache, and --offline fetches nothing")
    else:
        with tempfile.TemporaryDirectory(prefix="mps-build-tree-") as name:
            folder = Path(name)
            log = folder / "git.log"
            run_git(git("init", "-q", "--bare", "--template=", "--", str(folder / "bare"), environ=environ), log=log)
            remote = {"url": repository, "promisor": "true", "partialclonefilter": "blob:none"}
            for key, value in remote.items():
                run_git(git("config", f"remote.origin.{key}", value, cwd=folder / "bare", environ=environ), log=log)
            fetch = ("fetch", "-q", "--no-tags", "--depth=1", "--filter=blob:none", "origin", commit)
            run_git(git(*fetch, cwd=folder / "bare", environ=environ), log=log, timeout_seconds=300.0)
            yield folder / "bare"


def _copy(holder: Path, commit: str, file: PurePosixPath, destination: Path, *, environ: Mapping[str, str]) -> None:
    """Write one file of the commit as it is stored; nothing where the commit lacks it."""
    row = capture(git("ls-tree", "-z", commit, "--", str(file), cwd=holder, environ=environ), timeout_seconds=120)
    if not row.ok:
        raise SourceError(f"{commit[:12]} cannot be read: {row.stderr.strip()}")
    mode, _, rest = row.stdout.partition(" ")
    if not rest:
        return
    if mode not in ("100644", "100755"):
        raise PatchError(f"{file} of {commit[:12]} is not a file: nothing is patched there")
    # By `git archive` nothing would be converted either, but for files with export-subst.
    found = capture(git("cat-file", "blob", f"{commit}:{file}", cwd=holder, environ=environ), timeout_seconds=120)
    if not found.ok:
        raise SourceError(f"{file} of {commit[:12]} cannot be read: {found.stderr.strip()}")
    destination.parent.mkdir(parents=True, exist_ok=True)
    destination.write_text(found.stdout, encoding="utf-8", newline="")
