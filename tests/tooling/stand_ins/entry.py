"""How tests start the tool in a process of its own, as a user of a clone does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"


def entry(command: str, *arguments: str) -> list[str]:
    """Return the argv of one command; it needs `environ()`."""
    return [sys.executable, "-m", "mps_build", command, *arguments]


def environ(**more: str) -> dict[str, str]:
    """Return this process's environment with the checkout's package importable."""
    return {**os.environ, "PYTHONPATH": str(SCRIPTS), **more}
