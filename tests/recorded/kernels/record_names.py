"""Write kernel_names.json.xz: the names and signatures of all kernels of official wheels, for the tests of contracts.

PYTHONPATH=scripts python tests/recorded/kernels/record_names.py torch-2.15.0-….whl torch-2.14.1-….whl …

A kernel that several wheels or libraries have is there once. Run it when a release is new.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

from mps_build.kernels.code import compiler
from mps_build.kernels.program.dtypes import DTYPES
from mps_build.kernels.read.library import Library
from mps_build.kernels.read.metadata import Metadata, parse_metadata
from mps_build.kernels.read.wheel import read_libraries

FILE = Path(__file__).with_name("kernel_names.json.xz")
Signature = tuple[tuple[str, str, str], ...]


def signature(metadata: Metadata) -> Signature:
    """Return what contracts look at: names, kinds and types; all element types are one."""
    return tuple(
        (each.name, each.kind, "T" if each.is_buffer and each.type in DTYPES else each.type)
        for each in metadata.arguments
    )


def main() -> None:
    names: dict[Signature, set[str]] = {}
    releases = []
    for path in map(Path, sys.argv[1:]):
        releases.append(path.name.split("-")[1])
        for library in read_libraries(path):
            _add(library, names)
    rows = [[list(map(list, key)), sorted(names[key])] for key in sorted(names)]
    document = {"releases": releases, "kernels": rows}
    FILE.write_bytes(lzma.compress(json.dumps(document, separators=(",", ":")).encode(), preset=9))
    print(f"{sum(map(len, names.values()))} kernels, {len(names)} signatures, {FILE.stat().st_size} bytes")


def _add(library: Library, names: dict[Signature, set[str]]) -> None:
    for function in library.functions:
        if not function.fault:
            text = compiler.read_bitcode(library.bitcode(function))
            names.setdefault(signature(parse_metadata(text)), set()).add(function.name)


if __name__ == "__main__":
    main()
