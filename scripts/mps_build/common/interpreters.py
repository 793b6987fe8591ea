"""Which Python a task runs with: found by version, ours first."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from .errors import BuildEnvironmentError
from .process import Command, capture

_ASK_VERSION = (
    "import sys, sysconfig; print('%d.%d%s' % (*sys.version_info[:2], "
    "'t' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''))"
)


def find_interpreter(version: str, *, environ: Mapping[str, str]) -> Path:
    """Return a Python of that version: ours if it fits, else one on PATH, else uv's, else pyenv's.

    Raises:
        BuildEnvironmentError: none was found.
    """
    candidates = [sys.executable, f"python{version}", *_uv_python(version, environ), *_pyenv_pythons(version)]
    for candidate in candidates:
        captured = capture(Command(argv=(candidate, "-c", _ASK_VERSION), environ=environ))
        if captured.ok and captured.stdout.strip() == version:
            where = capture(Command(argv=(candidate, "-c", "import sys; print(sys.executable)"), environ=environ))
            return Path(where.stdout.strip() or candidate)
    raise BuildEnvironmentError(
        f"no Python {version} was found (looked at ours, PATH, uv and pyenv)",
        hint=f"`uv python install {version}`, or choose another with --python",
    )


def _uv_python(version: str, environ: Mapping[str, str]) -> list[str]:
    found = capture(Command(argv=("uv", "python", "find", "--no-python-downloads", version), environ=environ))
    return [found.stdout.strip()] if found.ok else []


def _pyenv_pythons(version: str) -> list[str]:
    versions = Path.home() / ".pyenv" / "versions"
    return [str(path / "bin" / "python") for path in sorted(versions.glob(f"{version}*"), reverse=True)]
