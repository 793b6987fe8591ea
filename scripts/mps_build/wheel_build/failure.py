"""A build that failed, with what triage makes of its log: the known cause and the fix, or the first error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.version import Version

from mps_build.common.errors import CompileError, DiskFull


def explained(
    error: CompileError,
    log: Path,
    *,
    release: Version | None,
    hint: str | None = None,
    document: Mapping[str, Any] | None = None,
) -> CompileError | DiskFull:
    """Return the error with the last lines of its log and the cause, if it is known."""
    from mps_build.host.triage import explain, render  # its tables of causes are read only for a build that failed

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
