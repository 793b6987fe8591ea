"""Processes of tests: the tool in one of its own as a user of a clone starts it, pip in a venv, waiting."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pip
import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"


def entry(command: str, *arguments: str) -> list[str]:
    """Return the argv of one command; it needs `environ()`."""
    return [sys.executable, "-m", "mps_build", command, *arguments]


def environ(**more: str) -> dict[str, str]:
    """Return this process's environment with the checkout's package importable."""
    return {**os.environ, "PYTHONPATH": str(SCRIPTS), **more}


# Programs that must not be waited for sleep longer than that.
LONGEST_SECONDS = 500.0


def wait_until(true: Callable[[], object]) -> None:
    """Return once it is true."""
    until = time.monotonic() + LONGEST_SECONDS
    while not true():
        if time.monotonic() > until:
            pytest.fail(f"nothing happened in {LONGEST_SECONDS:g} s")
        time.sleep(0.02)


def link_pip(venv: Path) -> None:
    """Let a venv that was made without pip find this session's, and nothing else of the session."""
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "pip").symlink_to(Path(pip.__file__).parent)


@cache
def why_no_sandbox() -> str:
    """Return why no process can be closed here; nothing if one can."""
    from mps_build.kernels.execution import sandbox

    try:
        sandbox.prove()
    except sandbox.SandboxUnavailable as error:
        return str(error)
    return ""
