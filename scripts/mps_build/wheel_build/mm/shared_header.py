"""The header that nearly every MPS file includes, read once for all files of a run (a precompiled header).

OperationUtils.h is nine tenths of a file's time. It is shared only with files that include it themselves and
define what they define before it, so that no file sees a declaration that it would not see on a Mac.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from mps_build.common.process import Command, capture

from .compiler import Checker, zig_environ

_COMMON = "ATen/native/mps/OperationUtils.h"
_MACRO = "TORCH_ASSERT_ONLY_METHOD_OPERATORS"
_LEAST = 3  # files, in one run or several, from which on it pays
_DEFINES = re.compile(rf"^\s*#\s*define\s+{_MACRO}\b", re.MULTILINE)
_INCLUDES = re.compile(rf"^\s*#\s*(?:include|import)\s*[<\"]{re.escape(_COMMON)}[>\"]", re.MULTILINE)


def may_share(file: Path) -> bool:
    """Tell whether a file defines and includes what the shared header is made of."""
    text = file.read_text(encoding="utf-8", errors="replace")
    defined, included = _DEFINES.search(text), _INCLUDES.search(text)
    return bool(defined and included and defined.start() < included.start())


def shared_header(checker: Checker, files: Sequence[Path]) -> Path | None:
    """Return the precompiled header for `files`, made now if that pays; None where it does not, or does not compile."""
    folder = checker.scratch / "shared"
    made = folder / f"{_digest(checker)}.pch"
    if made.is_file():
        return made
    if _wanted(folder / f"{made.stem}.files", sum(may_share(file) for file in files)) < _LEAST:
        return None
    for old in folder.glob("*.pch"):
        old.unlink(missing_ok=True)
    source = folder / "shared.h"
    source.write_text(f"#include <{_COMMON}>\n", encoding="utf-8")
    beside = made.with_name(f".{made.name}.{os.getpid()}")
    flags = [flag for flag in checker.flags(kind="objective-c++-header") if flag not in ("-c", "-fsyntax-only")]
    argv = (str(checker.zig), "c++", *flags, f"-D{_MACRO}=", str(source), "-o", str(beside))
    answer = capture(Command(argv=argv, cwd=checker.scratch, environ=zig_environ(checker)), timeout_seconds=600)
    if not answer.ok or not beside.is_file():
        beside.unlink(missing_ok=True)
        return None  # each file then says itself what is wrong with it
    beside.rename(made)
    return made


def _wanted(counter: Path, now: int) -> int:
    """Return how many files would have used the header, in this run and before: an author checks one at a time."""
    counter.parent.mkdir(parents=True, exist_ok=True)
    try:
        before = int(counter.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = 0
    counter.write_text(str(before + now), encoding="utf-8")
    return before + now


def flags_with(header: Path) -> tuple[str, ...]:
    """Return the arguments that make a file use the shared header."""
    return (f"-D{_MACRO}=", "-include-pch", str(header))


def _digest(checker: Checker) -> str:
    """Name it by what it is made from; for all else that it includes the compiler itself compares sizes and times."""
    digest = hashlib.sha256(os.fsencode("\0".join(checker.flags())))
    for folder in checker.tree.folders:
        for path in sorted(folder.glob("*.h")):
            digest.update(os.fsencode(f"{path}\0{path.stat().st_mtime_ns}\0"))
    return digest.hexdigest()[:16]
