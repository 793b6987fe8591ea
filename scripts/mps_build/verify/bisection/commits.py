"""The commits between two, along the first parents: each in a tree of ours, and built there."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import SourceError, UsageError
from mps_build.common.git import answer, check_machine, git, succeeds
from mps_build.common.json_text import read_json
from mps_build.common.process import FETCH_SECONDS, Command, CommandFailed, run_logged
from mps_build.common.workspace import PACKAGE

from .runner import CannotTest

# Where the MPS back end lies, in every release since 1.12.
MPS_PATHS = (
    "aten/src/ATen/mps",
    "aten/src/ATen/native/mps",
    "aten/src/ATen/native/native_functions.yaml",
    "aten/src/ATen/native/metal",
    "c10/metal",
    "torch/mps",
    "torch/csrc/mps",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """The commits strictly between two, oldest first, and those that touch the given paths first."""

    between: tuple[str, ...]
    favoured: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A repository of the user's, and a tree of ours beside the state."""

    repository: Path
    tree: Path
    log: Path
    environ: Mapping[str, str]

    def resolve(self, name: str) -> str:
        """Return the commit that a name means.

        Raises:
            UsageError: no repository, or no such commit in it.
        """
        if not (self.repository / ".git").exists() and not (self.repository / "HEAD").is_file():
            raise UsageError(f"--repo {self.repository}: is not a git repository", hint="give a clone of PyTorch")
        try:
            return self._ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        except SourceError as error:
            raise UsageError(
                f"{self.repository} has no commit {name}", hint=f"fetch it: git -C '{self.repository}' fetch --tags"
            ) from error

    def between(self, old: str, new: str, paths: tuple[str, ...] = MPS_PATHS) -> Commits:
        """Return the commits that may be the cause.

        Raises:
            UsageError: the two share no history, or there is none from the one to the other.
        """
        note = ""
        begin = old
        if not self.is_ancestor(old, new):
            if self.is_ancestor(new, old):
                raise UsageError(f"{new[:12]} lies before {old[:12]}", hint="swap the ends")
            try:
                begin = self._ask("merge-base", old, new)
            except SourceError as error:
                raise UsageError(f"{old[:12]} and {new[:12]} share no history") from error
            note = (
                f"{old[:12]} is on a branch of its own: searched from where the two part, {begin[:12]}, itself included"
            )
        log = ("rev-list", "--first-parent", "--reverse", f"{begin}..{new}")
        whole = self._ask(*log).split()
        favoured = self._ask(*log, "--", *paths).split()
        first = [begin] if note else []
        return Commits(between=(*first, *whole[:-1]), favoured=tuple(favoured), note=note)

    def check_out(self, commit: str) -> Path:
        """Return our tree at a commit; what a build left in it stays, so that the next one has less to do.

        Raises:
            CannotTest: it cannot be checked out, or its submodules cannot be had.
        """
        try:
            if not (self.tree / ".git").exists():
                self._run(
                    "clone", "--quiet", "--shared", "--no-checkout", "--", str(self.repository), str(self.tree), at=None
                )
            self._run("checkout", "--quiet", "--force", "--detach", commit, at=self.tree)
            if (self.tree / ".gitmodules").is_file():
                self._run("submodule", "--quiet", "sync", "--recursive", at=self.tree)
                self._run("submodule", "--quiet", "update", "--init", "--recursive", "--force", at=self.tree)
        except CommandFailed as failure:
            check_machine("\n".join(failure.tail), during="while git checks out")
            raise CannotTest(f"git: {' '.join(failure.tail[-1:]) or failure}") from failure
        return self.tree

    def subject(self, commit: str) -> str:
        """Return the first line of a commit's message; empty if it cannot be read."""
        try:
            return self._ask("log", "-1", "--format=%s", commit)
        except SourceError:
            return ""

    def remote(self) -> str:
        """Return the address that the repository was cloned from; empty if it tells none."""
        try:
            return self._ask("remote", "get-url", "origin")
        except SourceError:
            return ""

    def is_ancestor(self, old: str, new: str) -> bool:
        """True if the one leads to the other."""
        return succeeds(git("merge-base", "--is-ancestor", old, new, cwd=self.repository, environ=self.environ))

    def _ask(self, *arguments: str) -> str:
        return answer(git(*arguments, cwd=self.repository, environ=self.environ), timeout_seconds=300.0)

    def _run(self, *arguments: str, at: Path | None) -> None:
        self.tree.parent.mkdir(parents=True, exist_ok=True)
        run_logged(git(*arguments, cwd=at, environ=self.environ), log=self.log, timeout_seconds=FETCH_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """A command run in the commit's tree; what it made is its last line, or stands in build_wheel's document."""

    argv: tuple[str, ...]
    result: Path | None
    log: Path
    environ: Mapping[str, str]

    def build(self, tree: Path, commit: str) -> Path:
        """Return the wheel, or the interpreter.

        Raises:
            CannotTest: it does not build, or made nothing.
        """
        said: list[str] = []
        if self.result is not None:
            self.result.unlink(missing_ok=True)
        environ = {**self.environ, "MPS_BUILD_SUBJECT": commit}
        try:
            run_logged(Command(argv=self.argv, cwd=tree, environ=environ), log=self.log, on_line=said.append)
        except CommandFailed as failure:
            reason = self._stated() or " ".join(failure.tail[-1:]) or str(failure)
            raise CannotTest(f"does not build: {reason} (log: {self.log})") from failure
        named = self._made() if self.result is not None else next((line for line in reversed(said) if line.strip()), "")
        made = tree / named.strip()
        if not named or not made.is_file():
            raise CannotTest(f"the builder's last line names no wheel and no interpreter: {named!r}")
        return made

    def _stated(self) -> str:
        """Return the first line of the error in build_wheel's document; empty without one."""
        try:
            return str(read_json(self.result)["error"]).partition("\n")[0] if self.result is not None else ""
        except (OSError, ValueError, KeyError):
            return ""

    def _made(self) -> str:
        assert self.result is not None
        try:
            return str(read_json(self.result)["wheels"][0]["path"])
        except (OSError, ValueError, KeyError, IndexError) as error:
            raise CannotTest(f"build_wheel left no document: {error!r}") from error


def own_builder(recipe: str, tree: Path, commit: str, *, result: Path, log: Path) -> Builder:
    """Return the builder that calls this tool's build_wheel for a commit, in a process of its own.

    The process runs in the commit's tree. It finds this package by PYTHONPATH, and (from Python 3.11 on) no module
    of the tree by its folder.
    """
    safe = ("-P",) if sys.version_info >= (3, 11) else ()
    source = ("--repo", str(tree), "--ref", commit, "--profile", "develop", "--json", str(result))
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join(filter(None, (str(PACKAGE.parent), inherited)))
    return Builder(
        argv=(sys.executable, *safe, "-m", "mps_build", "build_wheel", recipe, *source),
        result=result,
        log=log,
        environ={**os.environ, "PYTHONPATH": path},
    )
