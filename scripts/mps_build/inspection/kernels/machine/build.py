"""The C runtime, compiled once for each version of its sources and each compiler."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path

from ....common.errors import BuildEnvironmentError
from ....common.process import Command, capture

SOURCES = Path(__file__).resolve().parents[1] / "runtime"
_FLAGS = ("-O2", "-fPIC", "-shared", "-std=gnu11", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-sanitize=all")


def build_runtime(cache: Path) -> Path:
    """Return the shared library of the runtime, compiled if it is not in the cache.

    Raises:
        BuildEnvironmentError: there is no C compiler, or it fails.
    """
    compiler = _compiler()
    digest = hashlib.sha256("\0".join((*compiler, *_FLAGS)).encode())
    sources = sorted([*SOURCES.glob("*.c"), *SOURCES.glob("*.h")])
    for path in sources:
        digest.update(path.read_bytes())
    library = cache / f"runtime-{digest.hexdigest()[:16]}.so"
    if library.is_file():
        return library
    cache.mkdir(parents=True, exist_ok=True)
    beside = cache / f".runtime.{os.getpid()}.so"
    files = [str(path) for path in sources if path.suffix == ".c"]
    argv = (*compiler, *_FLAGS, "-o", str(beside), *files, "-lm")
    answer = capture(Command(argv=argv, environ={**os.environ, "LC_ALL": "C"}), timeout_seconds=300)
    if not answer.ok or not beside.is_file():
        raise BuildEnvironmentError(
            f"the kernels' runtime cannot be compiled by {compiler[0]}:\n" + "\n".join(answer.stderr.splitlines()[-8:]),
            hint="pip install ziglang gives a compiler without a system package",
        )
    beside.replace(library)
    return library


def _compiler() -> tuple[str, ...]:
    """Return a C compiler: the system's, or zig's from the package ziglang."""
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return (found,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise BuildEnvironmentError(
        "the kernels' runtime needs a C compiler, and there is none (cc, gcc, clang, ziglang)",
        hint="pip install ziglang gives one without a system package",
    )
