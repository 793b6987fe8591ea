"""Patches tried on copies of the files they touch: does each fit, is it there already, which hunk does not fit.

`git apply` does the work, outside any repository, so that it judges alike in a clone and in
an unpacked archive; the tree itself is only read.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from mps_build.common.errors import HostError, PatchError
from mps_build.common.git import check_machine, git
from mps_build.common.process import Captured, Command, capture, neutral_environ

from .file import Hunk, Patch


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
        """Apply `patch` to the copies, all of it or nothing; the caller has asked `fits`."""
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
