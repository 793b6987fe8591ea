"""The library whose host code says which of its blocks ran: every .mm once more, with the compiler's coverage."""

from __future__ import annotations

import bisect
import ctypes
import gzip
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterable, Mapping, Sequence

from .toolchain import Toolchain, host_name, root_of

# Each block counts, also one that another one implies: a line belongs to the block that it lies in.
FLAGS = ("-gline-tables-only", "-fsanitize-coverage=bb,no-prune,trace-pc-guard,pc-table")
_RUNTIME = Path(__file__).with_name("coverage_runtime.mm")
_ROW = re.compile(r"^(\S+\.mm)\s+(\d+)\s+(0x[0-9a-f]+)", re.MULTILINE)
_UNIT = re.compile(r"^(?:CU: )?(\S+\.\w+):$", re.MULTILINE)
Lines = Mapping[str, Mapping[int, Sequence[int]]]


def build_coverage(toolchain: Toolchain, home: Path, jobs: int, only: Iterable[str] = ()) -> Path:
    """Return the folder of the instrumented library, compiled only as far as it is not there yet.

    Args:
        only: names of files; the others stay as the build has them, and are never seen to run.
    """
    folder = home / "coverage"
    folder.mkdir(parents=True, exist_ok=True)
    chosen = set(only)
    names = [name for name, file in toolchain.sources.items() if not chosen or file.stem in chosen]
    replaced = {name: folder / Path(name).name for name in names}

    def compile_one(name: str) -> None:
        source, target = toolchain.sources[name], replaced[name]
        if not target.is_file() or target.stat().st_mtime < source.stat().st_mtime:
            beside = target.with_suffix(".part")
            toolchain.compile(source, beside, FLAGS)
            beside.replace(target)
            print(f"  instrumented {source.name}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(compile_one, names))
    runtime = folder / "coverage_runtime.o"
    if not runtime.is_file() or runtime.stat().st_mtime < _RUNTIME.stat().st_mtime:
        toolchain.compile(_RUNTIME, runtime)
    library = toolchain.link(folder, replaced, [runtime])
    keep_lines(toolchain, library, folder / "lines.json.gz")
    return folder


def keep_lines(toolchain: Toolchain, library: Path, target: Path) -> None:
    """Write which blocks each line of host code lies in: {file: {line: [block]}}."""
    root = root_of(toolchain.folder)
    libraries = f"{root}/usr/lib/x86_64-linux-gnu"
    loader = (f"{root}/usr/lib64/ld-linux-x86-64.so.2", "--library-path", libraries)
    argv = (*loader, f"{root}/usr/bin/objdump", "--dwarf=decodedline", "--wide", str(library))
    table = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    lines = lines_of(table, block_places(toolchain, library), [host_name(file) for file in toolchain.sources.values()])
    target.write_bytes(gzip.compress(json.dumps(lines).encode()))


def block_places(toolchain: Toolchain, library: Path) -> list[int]:
    """Return where each block begins in the library's file; the library itself says it, in a process of its own."""
    code = (
        "import json, sys; from mutants.coverage_library import own_places; print(json.dumps(own_places(sys.argv[1])))"
    )
    from .child import simulated  # where a simulated process is started is known there

    said = simulated(["-c", code, str(library)], library.parent)
    found: list[int] = json.loads(said.splitlines()[-1])
    return found


def own_places(library: str) -> list[int]:
    """Return the same inside of the process that loads the library."""
    import torch  # noqa: F401  its libraries come first

    loaded = ctypes.CDLL(library)
    places = (ctypes.c_uint64 * loaded.mps_build_blocks())()
    loaded.mps_build_block_places(places)
    return list(places)


def lines_of(table: str, places: Sequence[int], files: Iterable[str]) -> dict[str, dict[int, list[int]]]:
    """Return the blocks of each line: a row of the line table belongs to the last block that begins at or before it.

    Args:
        table: as objdump decodes it. places: where each block begins. files: the host's, below aten/src/ATen.
    """
    short = {file.rpartition("/")[2]: file for file in files}
    order = sorted(range(len(places)), key=places.__getitem__)
    starts = [places[block] for block in order]
    found: dict[str, dict[int, set[int]]] = {}
    for name, line, address in _ROW.findall(table):
        file = short.get(name.rpartition("/")[2])
        at = bisect.bisect_right(starts, int(address, 16)) - 1
        if file is not None and at >= 0 and line != "0":
            found.setdefault(file, {}).setdefault(int(line), set()).add(order[at])
    return {file: {line: sorted(blocks) for line, blocks in rows.items()} for file, rows in found.items()}


def read_lines(home: Path) -> Lines:
    """Return what `keep_lines` wrote."""
    kept = json.loads(gzip.decompress((home / "coverage/lines.json.gz").read_bytes()))
    return {file: {int(line): blocks for line, blocks in rows.items()} for file, rows in kept.items()}


def blocks_at(lines: Lines, file: str, first: int, last: int, before: int = 12) -> set[int]:
    """Return the blocks that lines lie in; of lines without code of their own, those of the nearest line before.

    >>> blocks_at({"a.mm": {3: [7], 9: [8]}}, "a.mm", 5, 5)
    {7}
    """
    rows = lines.get(file, {})
    found = {block for line in range(first, last + 1) for block in rows.get(line, ())}
    line = first
    while not found and line > max(first - before, 0):
        line -= 1
        found = set(rows.get(line, ()))
    return found
