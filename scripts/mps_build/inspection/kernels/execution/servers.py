"""The two programs that start closed processes: for a wheel's kernels, and for the references that torch computes."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ....common.process import Command
from ....common.watched import watched
from ..machine.build import build_runtime
from ..references import JUDGE_FOLDER, load_references
from .sandbox import LARGE_BYTES, MEMORY_BYTES

JUDGE = JUDGE_FOLDER / "main.py"
_PACKAGE = Path(__file__).resolve().parents[4]
_SERVER = f"{__package__.rpartition('.')[0]}.machine.server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Where the two can be asked, and the C runtime of this run."""

    entrance: Path
    judge: Path
    runtime: Path


@contextmanager
def servers(cache: Path, python: Path | None, environ: Mapping[str, str], *, is_large: bool = False) -> Iterator[Started]:
    """Start both; they end with the block. Neither of them inherits this process's memory or environment.

    Args:
        python: an interpreter that has torch; None: nothing is run, only read.
        environ: of that interpreter.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mps-kernels-")))
        found = Started(entrance=folder / "closed", judge=folder / "judge", runtime=folder / "runtime.so")
        if python is not None:
            found.runtime.write_bytes(build_runtime(cache))
            (folder / "references.json").write_text(json.dumps(load_references()), encoding="utf-8")
            argv = (str(python), str(JUDGE), str(found.judge), str(folder / "references.json"))
            stack.enter_context(watched(Command(argv=argv, environ=environ), log=folder / "judge.log"))
        memory = LARGE_BYTES if is_large else MEMORY_BYTES
        argv = (sys.executable, "-m", _SERVER, str(found.entrance), str(found.runtime if python else ""), str(memory))
        bare = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(_paths()), "LC_ALL": "C.UTF-8"}
        stack.enter_context(watched(Command(argv=argv, environ=bare), log=folder / "closed.log"))
        yield found


def _paths() -> list[str]:
    """Return where this process's own modules come from: of its environment nothing else is handed on."""
    return [str(_PACKAGE), *(each for each in sys.path if each)]
