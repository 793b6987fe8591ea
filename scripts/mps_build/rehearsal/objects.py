"""A configured tree's compile commands: which object comes from which source, and a seeded draw of them."""

from __future__ import annotations

import json
import random
import shlex
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import GateError

CXX = (".cpp", ".cc", ".cxx", ".c")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One translation unit: its source, and the object that ninja knows it by."""

    source: Path
    object: str

    @property
    def target(self) -> str:
        """Return the CMake target it belongs to, from `.../CMakeFiles/<target>.dir/...`."""
        return self.object.split("CMakeFiles/", 1)[-1].split(".dir/", 1)[0]


def read_units(build: Path) -> tuple[Unit, ...]:
    """Return every unit of a configured build folder, in the order of their objects.

    Raises:
        GateError: configure left no list of compile commands.
    """
    path = build / "compile_commands.json"
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        units = [Unit(source=Path(entry["file"]), object=_output(entry)) for entry in entries]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise GateError(f"{path} cannot be read: {error}", hint="configure again in a fresh build folder") from error
    return tuple(sorted(units, key=lambda unit: unit.object))


def _output(entry: Mapping[str, str]) -> str:
    """Return an entry's object; an older CMake (3.25) says it in the command only."""
    if "output" in entry:
        return entry["output"]
    words = shlex.split(entry["command"])
    return words[words.index("-o") + 1]


def draw(units: Iterable[Unit], *, targets: Sequence[str], count: int, seed: int) -> tuple[Unit, ...]:
    """Return `count` C++ units of the targets, the same for the same tree and seed; all of them if there are fewer."""
    pool = [unit for unit in units if unit.target in targets and unit.source.suffix in (".cpp", ".cc", ".cxx")]
    return tuple(random.Random(seed).sample(pool, min(count, len(pool))))


def units_of(units: Iterable[Unit], files: Iterable[Path]) -> tuple[tuple[Unit, ...], tuple[Path, ...]]:
    """Return the units of the given sources, and the sources that no unit compiles."""
    by_source: dict[Path, list[Unit]] = {}
    for unit in units:
        by_source.setdefault(unit.source, []).append(unit)
    found, missing = [], []
    for file in files:
        found += by_source.get(file, [])
        if file not in by_source:
            missing.append(file)
    return tuple(found), tuple(missing)


def macho_kind(path: Path) -> str | None:
    """Return what an arm64 Mach-O file is (`object`, `dylib`), or None for any other file."""
    with path.open("rb") as file:
        head = file.read(16)
    if len(head) < 16:
        return None
    magic, processor, _, kind = struct.unpack("<4I", head)
    is_arm64 = magic == 0xFEEDFACF and processor == 0x0100000C
    return {1: "object", 6: "dylib"}.get(kind) if is_arm64 else None
