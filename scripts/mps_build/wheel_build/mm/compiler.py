"""zig as a checker of Objective-C++ for macOS arm64: where it is, and one file's words of it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.files import read_text
from mps_build.common.interpreters import line_that_adds
from mps_build.common.process import Captured, Command, capture
from mps_build.common.workspace import cache_folder

from ..objc.headers import Frameworks
from .diagnostics import Said, read_output
from .text import with_questions
from .tree import MpsTree

FAKES = Path(__file__).parent / "fakes"
# Of clang's own warnings these say nothing of a file's Objective-C, and PyTorch's headers are full of them.
_QUIET = (
    "deprecated-declarations",
    "unused-command-line-argument",
    "nullability-completeness",
    "pragma-once-outside-header",
    "invalid-specialization",  # c10 of 1.13 specialises std::is_arithmetic, which the libc++ of an older Xcode let pass
)
# A header of the tree was changed after the precompiled one was made.
_STALE = ("precompiled header", "precompiled file", "PCH file", "AST file")
_HALF_SIMD = "MPS_BUILD_SIMD_TYPES_ONLY"
_CHECKED = "MPS_BUILD_CHECKED"  # the declarations then hold what a loop is checked with (text.py)
# `zig c++ -c -fsyntax-only` ends like this where the file is right: it looks for an object that nobody requested.
# Without -c it builds its libc++ first, a minute and a half of CPU.
_NO_OBJECT = "failed to rename"
_COMMON = "ATen/native/mps/OperationUtils.h"
_MACRO = "TORCH_ASSERT_ONLY_METHOD_OPERATORS"
_LEAST = 3  # files, in one run or several, from which on it pays
_DEFINES = re.compile(rf"^\s*#\s*define\s+{_MACRO}\b", re.MULTILINE)
_INCLUDES = re.compile(rf"^\s*#\s*(?:include|import)\s*[<\"]{re.escape(_COMMON)}[>\"]", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """All that is the same for the files of one run."""

    zig: Path
    tree: MpsTree
    generated: tuple[Path, ...]
    frameworks: Frameworks
    target: str
    scratch: Path

    def flags(self, *, kind: str = "objective-c++") -> tuple[str, ...]:
        """Return the compiler's arguments but for the file, in the order in which headers must be found."""
        return (
            *("-target", f"aarch64-macos.{self.target}", "-fno-sanitize=undefined", "-c", "-fsyntax-only"),
            *("-x", kind, f"-std=gnu++{self.tree.standard}", *self.tree.flags),
            *("-DAT_PER_OPERATOR_HEADERS", "-DCAFFE2_BUILD_MAIN_LIB", "-DFMT_HEADER_ONLY=1", "-DNDEBUG"),
            *("-D__NEON__", "-DONNX_NAMESPACE=onnx", f"-D{_HALF_SIMD}", f"-D{_CHECKED}", "-O0", "-g0"),
            *("-fspell-checking", "-fno-caret-diagnostics", "-fno-color-diagnostics", "-ferror-limit=0"),
            *(
                "-Wunguarded-availability",
                "-Wunguarded-availability-new",
                "-Wundeclared-selector",
                *(f"-Wno-{name}" for name in _QUIET),
            ),
            *(f"-I{path}" for path in (*self.generated, *self.tree.include)),
            *self.frameworks.flags,
            *("-idirafter", str(FAKES)),
        )


def find_zig() -> Path:
    """Return the zig of the package ziglang, of an earlier rehearsal, or of PATH.

    Raises:
        BuildEnvironmentError: there is none.
    """
    spec = importlib.util.find_spec("ziglang")
    places = [Path(spec.origin).parent / "zig"] if spec and spec.origin else []
    places += sorted((cache_folder() / "ziglang").glob("*/site/ziglang/zig"), reverse=True)
    found = next((place for place in places if place.is_file()), None)
    on_path = shutil.which("zig")
    if found is None and on_path is None:
        raise BuildEnvironmentError(
            "zig is missing: it is the compiler that checks Objective-C++ here",
            hint=line_that_adds(ZIG, session="check_mm"),
        )
    return found or Path(str(on_path))


ZIG = "ziglang==0.17.1"


def compile_file(checker: Checker, file: Path, *more: str, shared: Sequence[str] = ()) -> str:
    """Return what the compiler says of a file.

    Args:
        more: arguments of this file alone. shared: those for a precompiled header, if it may have one.

    Raises:
        BuildEnvironmentError: it did not come to a verdict.
        OSError: the disk is full.
    """
    # simd's functions cost half a second a file; only where they are missed are they read.
    answer = _run(checker, file, *more, *shared)
    if shared and any(words in answer.stderr for words in _STALE):
        answer = _run(checker, file, *more)
    if "error: " in answer.stderr.replace(f"error: {_NO_OBJECT}", "") and "simd" in answer.stderr:
        answer = _run(checker, file, *more, f"-U{_HALF_SIMD}")
    has_verdict = answer.ok or any(words in answer.stderr for words in (_NO_OBJECT, ": error: ", ": fatal error: "))
    if "NoSpaceLeft" in answer.stderr or "No space left" in answer.stderr:
        raise OSError(28, "No space left on device", str(checker.scratch))
    if not has_verdict:
        said = answer.stderr.strip().splitlines()[-1:] or [f"exit {answer.exit}"]
        raise BuildEnvironmentError(
            f"zig did not finish with {file}: {said[0]}", hint=f"does it run? {checker.zig} version"
        )
    return "\n".join(line for line in answer.stderr.splitlines() if f"error: {_NO_OBJECT}" not in line)


def say(checker: Checker, file: Path, *, shared: Sequence[str] = ()) -> list[Said]:
    """Return what the compiler says of a file, in which each loop over a collection is checked for its elements.

    Raises:
        BuildEnvironmentError, OSError: as `compile_file`.
    """
    rewritten = with_questions(read_text(file, errors="surrogateescape"))
    if rewritten is None or ";" in f"{file}{checker.scratch}":  # which would end a name in -remap-file
        return read_output(compile_file(checker, file, shared=shared))
    copy = checker.scratch / "loops" / f"{hashlib.sha256(os.fsencode(file)).hexdigest()[:16]}{file.suffix}"
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(rewritten.text, encoding="utf-8", errors="surrogateescape")
    more = ("-Xclang", "-remap-file", "-Xclang", f"{file};{copy}")
    output = read_output(compile_file(checker, file, *more, shared=shared))
    copy.unlink(missing_ok=True)
    found = (rewritten.said(each) if each.file == str(file) else each for each in output)
    return list(dict.fromkeys(each for each in found if each is not None))


def zig_environ(checker: Checker) -> dict[str, str]:
    """Return zig's whole environment: it writes below the scratch folder only."""
    cache = checker.scratch / "zig"
    return {
        "PATH": os.defpath,
        "HOME": str(checker.scratch),
        "LC_ALL": "C",
        "ZIG_GLOBAL_CACHE_DIR": str(cache),
        "ZIG_LOCAL_CACHE_DIR": str(cache / "local"),
    }


def _run(checker: Checker, file: Path, *more: str) -> Captured:
    argv = (str(checker.zig), "c++", *checker.flags(), *more, str(file))
    return capture(Command(argv=argv, cwd=checker.scratch, environ=zig_environ(checker)), timeout_seconds=600)


# The header that nearly every MPS file includes, read once for all files of a run (a precompiled header).
#
# OperationUtils.h is nine tenths of a file's time. It is shared only with files that include it themselves and define
# what they define before it, so that no file sees a declaration that it would not see on a Mac.


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
