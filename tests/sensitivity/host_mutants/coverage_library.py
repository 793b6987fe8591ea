"""Build the library whose host code says which of its blocks ran: every .mm once more, with the compiler's coverage."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .toolchain import LIBRARY, Toolchain, built_folder, read_toolchain

# Each block counts, also one that another one implies: a line belongs to the block that it lies in.
FLAGS = ("-gline-tables-only", "-fsanitize-coverage=bb,no-prune,trace-pc-guard,pc-table")
_RUNTIME = Path(__file__).with_name("coverage_runtime.mm")


def coverage_folder(home: Path) -> Path:
    """Return where the instrumented library lies."""
    return home / "coverage"


def build_coverage(toolchain: Toolchain, home: Path, jobs: int) -> Path:
    """Return the instrumented library, compiled only as far as it is not there yet."""
    folder = coverage_folder(home)
    folder.mkdir(parents=True, exist_ok=True)
    replaced = {name: folder / Path(name).name for name in toolchain.sources}

    def compile_one(name: str) -> None:
        source, target = toolchain.sources[name], replaced[name]
        if not target.is_file() or target.stat().st_mtime < source.stat().st_mtime:
            beside = target.with_suffix(".part")
            toolchain.compile(source, beside, FLAGS)
            beside.replace(target)
            print(f"  {source.name}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(compile_one, sorted(toolchain.sources)))
    runtime = folder / "coverage_runtime.o"
    toolchain.compile(_RUNTIME, runtime)
    return toolchain.link(folder, replaced, [runtime])


if __name__ == "__main__":
    built = read_toolchain(built_folder())
    print(build_coverage(built, Path(sys.argv[1]), int(sys.argv[2])), LIBRARY)
