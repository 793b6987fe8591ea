"""The Python whose torch the caller means: of the active environment, else the first on PATH that has torch."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from mps_build.common.errors import UsageError
from mps_build.common.process import Command, capture

_HAS_TORCH = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"


def callers_python(environ: Mapping[str, str]) -> Path:
    """Return the interpreter of the caller's own environment that has torch.

    nox puts its session's environment in front; the noxfile passes the caller's on as MPS_BUILD_CALLER_*.

    Raises:
        UsageError: none of them has torch; the message names what was asked.
    """
    asked = list(dict.fromkeys(_candidates(environ)))
    for python in asked:
        if capture(Command(argv=(str(python), "-c", _HAS_TORCH)), timeout_seconds=60).ok:
            return python
    names = ", ".join(map(str, asked)) or "no Python was found"
    raise UsageError(
        f"no torch was named, and the active environment has none (searched: {names})",
        hint="activate the environment that has torch, or name it: --python PATH, or torch==2.13.0",
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the interpreters to ask, in order; those that do not exist are left out."""

    def value(name: str) -> str | None:
        return environ.get(f"MPS_BUILD_CALLER_{name}", environ.get(name))

    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if (folder := value(variable)) and (Path(folder) / "bin" / "python").is_file():
            yield Path(folder) / "bin" / "python"
    for name in ("python", "python3"):
        if found := shutil.which(name, path=value("PATH")):
            yield Path(found)
