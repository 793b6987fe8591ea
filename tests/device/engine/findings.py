"""Findings: cases that shrink to the same call are one."""

from __future__ import annotations

import zlib
from typing import Any

from . import script, shrink, trial
from .transformation import Call, Transformation


def finding_of(call: Call, transformation: Transformation) -> str:
    """Return the name of what a shrunk call shows: its operator, its transformation, and what is left of it."""
    every = dict(call.operator.factors)
    left = {name: level for name, level in call.levels.items() if name not in ("@size", "@shape")}
    odd = {name: str(level) for name, level in left.items() if name not in every or level != every[name][0]}
    mark = zlib.crc32(repr((call.row.shape(call.operator), sorted(odd.items()))).encode()) % 65536
    return f"{call.operator.name}:{transformation.name}:{mark:04x}"


def levels_of(call: Call) -> dict[str, str]:
    """Return the levels of a call in words, by factor: what a known issue may speak of."""
    return {name.lstrip("@"): str(level).replace("torch.", "") for name, level in call.levels.items()}


def told(call: Call, transformation: Transformation, bench: Any, seconds: float) -> str:
    """Return what a wrong call comes down to: its finding, and a script where one can be written."""
    small = shrink.shrunk(call, transformation, bench, seconds=seconds) if seconds > 0 else call
    truth = trial.asked(small, transformation, bench)
    text = script.script(small, transformation, bench, truth)
    return f"finding {finding_of(small, transformation)}\n{text or 'no script: it is not made of public calls alone'}"
