"""Configure and gate as one: shared by the pipeline, the editable build and the rehearsals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mps_build.common.process import Command
from mps_build.common.recipe.model import Gate
from mps_build.common.reporter import Reporter
from mps_build.common.workspace import remove_tree

from .backend import Backend
from .steps.check_gate import check_gate
from .steps.configure import configure, configure_command, write_overrides


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuring:
    """One configure call that is ready to run.

    Attributes:
        overrides: the CMake file that enters it; an input of the receipt.
        gate: what it must come to.
    """

    command: Command
    build: Path
    overrides: Path
    gate: Gate

    def run(self, *, fresh: bool, log: Path, reporter: Reporter) -> dict[str, Any]:
        """Configure, hold the result against the gate, and return the facts for the receipt.

        Args:
            fresh: start from an empty build folder; otherwise only what CMake remembers of the Python is dropped.

        Raises:
            GateError: configure failed, or came to something else than the recipe says.
        """
        if fresh:
            remove_tree(self.build)
        ran = configure(self.command, build=self.build, log=log, reporter=reporter, new_python=not fresh)
        facts = check_gate(ran, self.gate, fresh=fresh)
        return {"configure": asdict(facts), "cmake": dict(ran.facts or {})}


def configuring(
    backend: Backend,
    *,
    python: Path,
    source: Path,
    build: Path,
    environ: Mapping[str, str],
    root: Path,
    gate: Gate,
    profile_lines: str,
    wrap: Callable[[Command], Command] = lambda command: command,
) -> Configuring:
    """Write overrides.cmake into `root` and return the call that reads it.

    Args:
        wrap: turns the command into the one that is run: the rehearsal's run inside a Debian root.
    """
    overrides = write_overrides(root / "overrides.cmake", expect_mps=gate.use_mps, profile_lines=profile_lines)
    command = configure_command(
        backend, python=python, source=source, build=build, environ=environ, overrides=overrides
    )
    return Configuring(command=wrap(command), build=build, overrides=overrides, gate=gate)
