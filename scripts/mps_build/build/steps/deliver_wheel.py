"""Audited wheel -> wheelhouse: written beside its place and renamed, so that nobody sees half of it."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from ..artifacts import Wheel


def deliver_wheel(wheel: Wheel, destination: Path) -> Wheel:
    """Copy the wheel to `destination` and return it there."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    beside = destination.with_name(f".{destination.name}.{os.getpid()}")
    try:
        shutil.copyfile(wheel.path, beside)
        beside.replace(destination)
    finally:
        beside.unlink(missing_ok=True)
    return replace(wheel, path=destination)
