"""The files of a device suite, in the order in which a run tells the most soonest."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from mps_build.common.errors import UsageError

from .suite_request import layer_of

# The first tell the most soonest.
_ORDER = ("smoke", "regressions", "scenarios", "drawn")
# What a file calls its cases, and what each of them is of.
_CASES = re.compile(r"^cases = (?:Cases\(\s*\"(\w+)\"|(Drawn)\()", re.MULTILINE)


def suite_files(suite: Path, layers_asked: Collection[str]) -> tuple[Path, ...]:
    """Return the files that have cases of the asked layers; of all layers where none is asked.

    Raises:
        UsageError: the folder holds no suite, or the suite has no such layer.
    """
    layers = {file: _layer(file) for file in (*suite.glob("test_*.py"), *suite.glob("*/test_*.py"))}
    if not layers:
        raise UsageError(
            f"{suite}: holds no suite (test_<layer>_<area>.py)",
            hint="reinstall mps-build: a file of it is missing",
        )
    known = sorted(set(layers.values()))
    if unknown := [layer for layer in layers_asked if layer not in known]:
        raise UsageError(f"no layer {', '.join(unknown)}", hint=f"layers: {', '.join(known)}")
    chosen = [file for file, layer in layers.items() if layer in layers_asked or not layers_asked]
    return tuple(sorted(chosen, key=lambda file: (_place(layers[file]), file.as_posix())))


def _layer(file: Path) -> str:
    """Return the layer of a file's cases: as the file says, or as its name tells."""
    found = _CASES.search(file.read_text(encoding="utf-8", errors="replace"))
    return layer_of(file) if found is None else (found[1] or "drawn")


def _place(layer: str) -> int:
    return _ORDER.index(layer) if layer in _ORDER else _ORDER.index("drawn")
