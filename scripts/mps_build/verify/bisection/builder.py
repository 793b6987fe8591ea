"""Commit -> wheel or interpreter: the user's own builder in the commit's tree, else our build_wheel."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.json_text import read_json
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.workspace import PACKAGE

from .runner import CannotTest

_ENTRY = "import sys; sys.path.insert(0, sys.argv.pop(1)); from mps_build.cli import main; sys.exit(main())"


def own_builder(recipe: str, tree: Path, commit: str, result: Path) -> tuple[str, ...]:
    """Return the call of our own build_wheel for a commit, in a process of its own."""
    package = PACKAGE.parent
    source = ("--repo", str(tree), "--ref", commit, "--profile", "develop", "--json", str(result))
    return (sys.executable, "-c", _ENTRY, str(package), "build_wheel", recipe, *source)


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
            raise CannotTest(f"does not build: {' '.join(failure.tail[-1:]) or failure} (log: {self.log})") from failure
        named = self._made() if self.result is not None else next((line for line in reversed(said) if line.strip()), "")
        made = tree / named.strip()
        if not named or not made.is_file():
            raise CannotTest(f"the builder's last line names no wheel and no interpreter: {named!r}")
        return made

    def _made(self) -> str:
        assert self.result is not None
        try:
            return str(read_json(self.result)["wheels"][0]["path"])
        except (OSError, ValueError, KeyError, IndexError) as error:
            raise CannotTest(f"build_wheel left no document: {error!r}") from error
