"""Families of kernels in a wheel, and of how many of them a run of verify_kernels ran a member, or all.

    nox -s benchmark -- kernel_families WHEEL RUN.json      (RUN.json: verify_kernels WHEEL --json RUN.json)

A family is the names of the buffers and the kinds of the built-in arguments, in their order: a signature. Only
`metal_basic` counts. The families that did not run in whole are named, the largest first.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

from mps_build.kernels.code.compiler import read_bitcode
from mps_build.kernels.execution.verify_all import RAN
from mps_build.kernels.read.library import BASIC, KERNEL_TYPE, Library
from mps_build.kernels.read.metadata import Metadata, parse_metadata
from mps_build.kernels.read.wheel import read_libraries


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("run", type=Path)
    options = parser.parse_args()
    library = next(each for each in read_libraries(options.wheel) if each.name == BASIC)
    kernels = json.loads(options.run.read_text(encoding="utf-8"))["kernels"]
    ran = {each["name"]: each["outcome"] in RAN for each in kernels if each["library"] == BASIC}
    families = families_of(library)
    if missing := [name for names in families.values() for name in names if name not in ran]:
        print(f"the run did not ask {len(missing)} kernels of the wheel: {', '.join(missing[:5])}")
        return 2
    counted = {family: Counter(ran[name] for name in names) for family, names in families.items()}
    some, whole = (sum(test(each) for each in counted.values()) for test in (_any, _all))
    print(f"{len(families)} families: {some} with a member that ran, {whole} in whole")
    for family, count in sorted(counted.items(), key=lambda each: -each[1][False]):
        if count[False]:
            names = [name for name in families[family] if not ran[name]]
            print(f"{count[False]} of {count.total()} did not run: {names[0]} ({family[:100]})")
    return 0


def families_of(library: Library) -> dict[str, list[str]]:
    """Return the names of a library's kernels by family."""
    families: dict[str, list[str]] = defaultdict(list)
    for function in library.functions:
        if function.kind == KERNEL_TYPE:
            metadata = parse_metadata(read_bitcode(library.bitcode(function)))
            families[family_of(metadata)].append(function.name)
    return families


def family_of(metadata: Metadata) -> str:
    """Return a kernel's family: what it is given, by name."""
    return ", ".join(each.name if each.is_buffer else each.kind for each in metadata.arguments)


def _any(counted: Counter[bool]) -> bool:
    return counted[True] > 0


def _all(counted: Counter[bool]) -> bool:
    return not counted[False]


if __name__ == "__main__":
    sys.exit(main())
