"""Files that break with a wide header: found in a failed build, left out of it, and the build goes on.

No list can know the files of every release that break (a name that becomes ambiguous, a template specialised after it
was used). ninja compiles only those anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from mps_build.common.files import write_whole
from mps_build.common.json_text import read_json

from ..compile_commands import object_of

LIST = "mps-build-without-wide-header.txt"
_FAILED = re.compile(r"^\s*FAILED: (?:\[[^\]]*\] )?(.+)$", re.MULTILINE)
_HEADER = re.compile(r"CMakeFiles/(?P<target>[^/]+)\.dir/cmake_pch\.hxx\.(?:pch|gch)$")


def exclude(build: Path, log_text: str) -> tuple[str, ...]:
    """Add the failed files that were compiled with a wide header to the build folder's list; return them.

    A header that cannot be compiled itself (this release has no such file) leaves its whole target out. CMake reads
    the list again by itself, because every configure depends on it. Nothing is returned for a file that is on the
    list already: it fails for another reason.
    """
    path = build / LIST
    known = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
    failed = {output for outputs in _FAILED.findall(log_text) for output in outputs.split()}
    targets = {f"target:{match['target']}" for output in failed if (match := _HEADER.search(output))}
    new = tuple(sorted((targets | set(_sources(build, failed))) - set(known)))
    if new:
        write_whole(path, "\n".join([*filter(None, known), *new]) + "\n")
    return new


def _sources(build: Path, failed: Iterable[str]) -> Iterable[str]:
    """Yield the sources of failed objects whose compiler was given a precompiled header."""
    try:
        entries = read_json(build / "compile_commands.json", most_bytes=1 << 30)
    except (OSError, ValueError):
        return
    wanted = set(failed)
    for entry in entries:
        output = object_of(entry)
        if output in wanted and "cmake_pch.hxx" in entry["command"] and not _HEADER.search(output):
            yield entry["file"]
