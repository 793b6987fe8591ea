"""Waiting for what will come. The only end is one that a hang alone reaches: a busy machine may take its time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

# Programs that must not be waited for sleep longer than that.
LONGEST_SECONDS = 500.0


def wait_until(true: Callable[[], object]) -> None:
    """Return once it is true."""
    until = time.monotonic() + LONGEST_SECONDS
    while not true():
        if time.monotonic() > until:
            pytest.fail(f"nothing happened in {LONGEST_SECONDS:g} s")
        time.sleep(0.02)
