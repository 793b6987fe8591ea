"""The programs that start closed processes: to read a wheel's kernels, to run them, and to compute with torch."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...common.cores import with_share
from ...common.process import Command, watched
from ..judge.references import load_references
from ..machine.build import build_runtime
from .sandbox import LARGE_BYTES, MEMORY_BYTES

JUDGE = Path(__file__).resolve().parents[1] / "judge" / "server" / "main.py"
_PACKAGE = Path(__file__).resolve().parents[3]
# A child lives for one kernel: what it frees it keeps, since each new page of the system's costs it microseconds.
_HEAP = "glibc.malloc.mmap_threshold=67108864:glibc.malloc.trim_threshold=134217728:glibc.malloc.top_pad=4194304"
_KERNELS = __package__.rpartition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Where the servers listen, and the C runtime of this run."""

    reader: Path
    machine: Path
    judge: Path
    runtime: Path


@contextmanager
def servers(
    cache: Path, python: Path | None, environ: Mapping[str, str], *, is_large: bool = False
) -> Iterator[Started]:
    """Start all three; they end with the block. None of them inherits this process's memory or environment.

    Args:
        python: an interpreter that has torch; None: nothing is run, only read.
        environ: of that interpreter. Each process that a server starts computes with one thread, beside others.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mps-kernels-")))
        names = ("reader", "machine", "judge", "runtime.so")
        found = Started(**{name.partition(".")[0]: folder / name for name in names})
        bare = {
            "GLIBC_TUNABLES": _HEAP,
            "PATH": os.defpath,
            "PYTHONPATH": os.pathsep.join(_paths()),
            "LC_ALL": "C.UTF-8",
        }

        def start(name: str, argv: tuple[str, ...], environ: Mapping[str, str]) -> None:
            command = Command(argv=argv, environ=with_share(environ, 1, cores=1))
            stack.enter_context(watched(command, log=folder / f"{name}.log"))

        own = (sys.executable, "-m")
        start("reader", (*own, f"{_KERNELS}.code.server", str(found.reader), str(MEMORY_BYTES)), bare)
        if python is not None:
            (folder / "references.json").write_text(json.dumps(load_references()), encoding="utf-8")
            start("judge", (str(python), str(JUDGE), str(found.judge), str(folder / "references.json")), environ)
            found.runtime.write_bytes(build_runtime(cache))
            memory = str(LARGE_BYTES if is_large else MEMORY_BYTES)
            machine = (*own, f"{_KERNELS}.machine.server", str(found.machine), memory, str(found.runtime))
            start("machine", machine, bare)
        yield found


def _paths() -> list[str]:
    """Return where this process's own modules come from: of its environment nothing else is handed on."""
    return [str(_PACKAGE), *(each for each in sys.path if each)]
