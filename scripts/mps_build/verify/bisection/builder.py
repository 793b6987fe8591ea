"""Commit -> wheel or interpreter: the user's own builder in the commit's tree, else our build_wheel."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.json_text import read_json
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.workspace import PACKAGE

from .runner import CannotTest


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
