"""How pip is called where it asks a network: within limits, its files removed however it ends, its pauses told."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import UsageError
from ..process import FETCH_SECONDS, Command, run_logged
from .limited_pip import PAUSE

_CONSTRAINT = re.compile(r"The user requested \(constraint\) (\S.*)")
_PROGRAM = Path(__file__).with_name("limited_pip.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a package server may ask of us.

    Attributes:
        pause_seconds: the longest pause taken between two tries; a server that asks for more (Retry-After) is told of.
        window_seconds: over so long a wait for one answer, `least_rate` bytes a second must come.
        page_bytes: of one page of an index, or a file's metadata.
        body_bytes: of one file; torch for CUDA has 1 GB.
        total_seconds: of one call of pip.
    """

    pause_seconds: float = 60.0
    window_seconds: float = 60.0
    least_rate: float = 1000.0
    page_bytes: int = 64 << 20
    body_bytes: int = 8 << 30
    total_seconds: float = FETCH_SECONDS


LIMITS = Limits()
# Of a call whose output is read at its end: a longer pause could not be told while it is taken.
QUESTION = replace(LIMITS, pause_seconds=5.0)


def limited_pip(python: Path | str, *, limits: Limits = LIMITS, beside: Path | None = None) -> tuple[str, ...]:
    """Return how the pip of an interpreter is called where it asks a network; `python -m pip`, held to limits.

    Args:
        beside: a folder that the interpreter can read, where it cannot read ours (it runs in a root of its own).
    """
    program = _PROGRAM
    if beside is not None:
        program = Path(shutil.copy2(_PROGRAM, beside))
    numbers = (limits.pause_seconds, limits.window_seconds, limits.least_rate, limits.page_bytes, limits.body_bytes)
    return (str(python), str(program), ",".join(map(str, numbers)))


def run_pip(
    command: Command,
    *,
    log: Path,
    tell: Callable[[str], None],
    on_line: Callable[[str], None] | None = None,
    limits: Limits = LIMITS,
    wrap: Callable[[Command], Command] = lambda command: command,
) -> None:
    """Run a `limited_pip` for its work; `tell` hears of each pause that a server asks for.

    Raises:
        CommandFailed: pip failed, or a limit was passed: its last lines say which, and what the server did.
    """

    def watch(line: str) -> None:
        if line.startswith(PAUSE):
            tell(line.removeprefix(PAUSE))
        elif on_line is not None:
            on_line(line)

    environ: Mapping[str, str] = command.environ if command.environ is not None else os.environ
    # A pip that is killed leaves what it was fetching in its temporary folder.
    with tempfile.TemporaryDirectory(prefix="mps-build-pip-") as folder:
        held = replace(command, environ={**environ, "TMPDIR": folder})
        run_logged(wrap(held), log=log, on_line=watch, timeout_seconds=limits.total_seconds)


def forbidden_by_settings(text: str, *, wanted: object) -> UsageError | None:
    """Return the error if pip said that a constraint of the user's own settings forbids it; None if it did not.

    pip reads constraints from PIP_CONSTRAINT and its settings: https://pip.pypa.io/en/stable/topics/configuration/
    """
    if (found := _CONSTRAINT.search(text)) is None:
        return None
    return UsageError(
        f"pip's own settings do not allow {wanted}: a constraint says {found[1].strip()}",
        hint="`pip config list` names the file; PIP_CONSTRAINT=/dev/null before the command leaves it out once",
    )
