"""Audited wheel -> wheelhouse: written beside its place and renamed, so that nobody sees half of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mps_build.common.files import copy_whole

from ..artifacts import Wheel


def deliver_wheel(wheel: Wheel, destination: Path) -> Wheel:
    """Copy the wheel to `destination` and return it there."""
    copy_whole(wheel.path, destination)
    return replace(wheel, path=destination)
