"""A configured tree's compile commands: which object comes from which source, and a seeded draw of them."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from mps_build.common.errors import GateError, reason_of
from mps_build.common.json_text import read_json

from ..ninja import object_of, words_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One translation unit: its source, the object that ninja knows it by, and the compiler's arguments."""

    source: Path
    object: str
    argv: tuple[str, ...]

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
        entries = read_json(path)
        units = [_unit(entry) for entry in entries]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise GateError(
            f"{path} cannot be read: {reason_of(error)}", hint="configure again in a fresh build folder"
        ) from error
    return tuple(sorted(units, key=lambda unit: unit.object))


def _unit(entry: Mapping[str, str]) -> Unit:
    return Unit(source=Path(entry["file"]), object=object_of(entry), argv=tuple(words_of(entry["command"])))


def neighbour(units: Iterable[Unit], header: Path) -> Unit | None:
    """Return the C++ unit whose flags serve a header best: the nearest; of several, one of torch_cpu."""

    def shared(unit: Unit) -> int:
        return sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(unit.source.parts, header.parts, strict=False))
        )

    usable = [unit for unit in units if unit.source.suffix in (".cpp", ".cc", ".cxx")]
    return max(usable, key=lambda unit: (shared(unit), unit.target == "torch_cpu", unit.object), default=None)


def header_argv(unit: Unit, header: Path) -> tuple[str, ...]:
    """Return the arguments that read a header first of all, with a unit's flags.

    A precompiled header is left out: it may hold the very header, which would then be skipped.
    """
    kept: list[str] = []
    words = list(unit.argv)
    while words:
        word = words.pop(0)
        if word == "-o":
            words.pop(0)
        elif word == "-Xclang" and words[:1] in (["-include-pch"], ["-include"]):
            del words[:3]
        elif word == "-c" or word == str(unit.source):
            continue
        else:
            kept.append(word)
    # Included, not read as the main file, where `#pragma once` would not hold against a circle of includes.
    # To an object, since zig makes one whatever -fsyntax-only says.
    return (*kept, "-c", "-o", ".mps-build-header.o", "-include", str(header), "-x", "c++", os.devnull)


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
