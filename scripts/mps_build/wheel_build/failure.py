"""A build that failed: explained by what triage makes of its log, or tried again where that can help.

Triage is imported late: its tables of causes are read only for a build that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from packaging.version import Version

from mps_build.common.console import Console
from mps_build.common.errors import CompileError, DiskFull
from mps_build.common.process import Command

from .wide_headers import exclude

T = TypeVar("T")
OUT_OF_MEMORY = "B59"


def explained(
    error: CompileError,
    log: Path,
    *,
    release: Version | None,
    hint: str | None = None,
    document: Mapping[str, Any] | None = None,
) -> CompileError | DiskFull:
    """Return the error with the last lines of its log and the cause, if it is known."""
    from mps_build.host.triage import explain, render

    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return error
    found = explain(text, release=release)
    tail = "\n".join(text.splitlines()[-12:])
    lines = "\n".join(render(found))
    # A compiler met the full disk, not we: N4 of the known causes.
    kind = DiskFull if found.cause == "N4" else CompileError
    whole = {**(document or {}), **error.document, "triage": found.document()}
    return kind(f"{error}\n{tail}\n\n{lines}", hint=hint or error.hint, document=whole)


def with_retries(
    attempt: Callable[[Command], T],
    command: Command,
    *,
    build: Path,
    log: Path,
    jobs: int,
    release: Version | None,
    console: Console,
) -> T:
    """Return what `attempt(command)` makes, tried again where that can help; ninja goes on where it stopped.

    A compiler that was killed (memory) is tried once with half the jobs. A file that breaks with a wide precompiled
    header is compiled without it; it fails the build only if it fails so too.

    Raises:
        CompileError: of the last try.
    """
    halved = False
    while True:
        try:
            return attempt(command)
        except CompileError:
            from mps_build.host.triage import explain

            text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
            cause = explain(text, release=release).cause
            if cause == OUT_OF_MEMORY and not halved and jobs > 1:
                halved, fewer = True, str(jobs // 2)
                console.warn(f"a compiler was killed, most likely for lack of memory: retrying with {fewer} jobs")
                environ = {**(command.environ or {}), "MAX_JOBS": fewer, "CMAKE_BUILD_PARALLEL_LEVEL": fewer}
                command = replace(command, environ=environ)
                continue
            left = exclude(build, text) if cause is None else ()
            if not left:
                raise
            names = ", ".join(name.rsplit("/", 1)[-1] for name in left)
            console.warn(f"failed with the wide header, retrying without it: {names}")
