"""The C runtime, compiled once for each version of its sources and each compiler."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...common.errors import BuildEnvironmentError
from ...common.interpreters import line_that_adds
from ...common.process import Command, capture
from ..execution.store import Entries

SOURCES = Path(__file__).resolve().parent / "c"
_ZIG = "ziglang==0.17.1"
_FLAGS = ("-O2", "-fPIC", "-shared", "-std=gnu11", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-sanitize=all")


def build_runtime(cache: Path) -> bytes:
    """Return the shared library of the runtime, compiled if it is not in the cache.

    Raises:
        BuildEnvironmentError: there is no C compiler, or it fails.
    """
    compiler = find_compiler()
    digest = hashlib.sha256("\0".join((*compiler, _version_of(compiler), *_FLAGS)).encode())
    sources = sorted([*SOURCES.glob("*.c"), *SOURCES.glob("*.h")])
    for path in sources:
        digest.update(path.read_bytes())
    entries, key = Entries(cache / "runtime"), digest.hexdigest()[:40]
    library = entries.load(key)
    if library is None:
        library = _built(compiler, [str(path) for path in sources if path.suffix == ".c"])
        entries.save(key, library)
    return library


def _built(compiler: tuple[str, ...], files: Sequence[str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="mps-runtime-") as folder:
        made = Path(folder) / "runtime.so"
        argv = (*compiler, *_FLAGS, "-o", str(made), *files, "-lm")
        answer = capture(Command(argv=argv, environ={**os.environ, "LC_ALL": "C"}), timeout_seconds=300)
        if not answer.ok or not made.is_file():
            raise BuildEnvironmentError(
                f"the kernels' runtime cannot be compiled by {compiler[0]}:\n"
                + "\n".join(answer.stderr.splitlines()[-8:]),
                hint=f"a compiler without a system package: {line_that_adds(_ZIG)}",
            )
        return made.read_bytes()


def _version_of(compiler: tuple[str, ...]) -> str:
    return capture(Command(argv=(*compiler, "--version"), environ=dict(os.environ)), timeout_seconds=60).stdout


def find_compiler() -> tuple[str, ...]:
    """Return a C compiler: the system's, or zig's from the package ziglang.

    Raises:
        BuildEnvironmentError: there is none.
    """
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return (found,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise BuildEnvironmentError(
        "the kernels' runtime needs a C compiler, and there is none (cc, gcc, clang, ziglang)",
        hint=f"one without a system package: {line_that_adds(_ZIG, session='verify_kernels')}",
    )
