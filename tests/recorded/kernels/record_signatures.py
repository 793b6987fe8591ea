"""Write kernel_signatures.json: of each contract one kernel's argument list, out of official wheels.

PYTHONPATH=scripts python tests/recorded/kernels/record_signatures.py torch-2.15.0-….whl torch-2.14.1-….whl …

The newest wheel comes first; an older one adds what the ones before it lack: a contract's first kernel, or one whose
constants have other sizes. Run it when a contract is new.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mps_build.kernels.code import compiler
from mps_build.kernels.families.shared.contracts import (
    Case,
    Contract,
    Kernel,
    companions_of,
    find_binder,
    load_contracts,
    match_kernel,
)
from mps_build.kernels.judge.references import load_references
from mps_build.kernels.program.launch import NotBound
from mps_build.kernels.program.values import Values
from mps_build.kernels.read.metadata import Metadata, parse_metadata
from mps_build.kernels.read.wheel import read_libraries

TRIED, BESIDE = 60, 6
_DEFAULTS: dict[str, Any] = {"slot": None, "access": "", "space": 0, "size": None, "element": 0, "align": 1}


class Wheel:
    """The kernels of one wheel, the plain library's before those of the others."""

    def __init__(self, path: Path) -> None:
        self.release = path.name.split("-")[1]
        libraries = read_libraries(path)
        self.places = {each.name: (library, each) for library in reversed(libraries) for each in library.functions}
        self._read: dict[str, Metadata] = {}

    def metadata(self, name: str) -> Metadata:
        """Return what a kernel's own metadata says."""
        if name not in self._read:
            library, function = self.places[name]
            self._read[name] = parse_metadata(compiler.read_bitcode(library.bitcode(function)))
        return self._read[name]

    def kernels_of(self, contract: Contract) -> dict[str, Kernel]:
        """Return a kernel that the contract binds, with those beside it; nothing where there is none."""
        names = [name for name in sorted(self.places) if contract.pattern.fullmatch(name)]
        random.Random(1).shuffle(names)
        for name in names[:TRIED]:
            kernel = match_kernel(name, self.metadata(name))
            if kernel is None or kernel.contract is not contract:
                continue
            beside = [each for each in companions_of(kernel) if each in self.places][:BESIDE]
            views = {each: found for each in beside if (found := match_kernel(each, self.metadata(each)))}
            if self._binds(contract, kernel, {**views, name: kernel}):
                return {**views, name: kernel}
        return {}

    def _binds(self, contract: Contract, kernel: Kernel, views: dict[str, Kernel]) -> bool:
        values = Values(0, kernel.name)
        case = Case(values=values, kernels=views, references=load_references(), is_quick=True, version=self.release)
        try:
            return any(True for _ in find_binder(contract.binder)(kernel, case))
        except NotBound:
            return False


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Return an argument or a field without what is usual."""
    kept = {key: value for key, value in row.items() if key not in ("index", "fields", "length")}
    kept = {key: value for key, value in kept.items() if key not in _DEFAULTS or value != _DEFAULTS[key]}
    if row.get("length"):
        kept["length"] = row["length"]
    return {**kept, **({"fields": [_row(each) for each in row["fields"]]} if row["fields"] else {})}


def _sizes(kernel: Kernel) -> object:
    """Return how long the constants are that a launch copies."""
    return tuple((each.name, each.size) for each in kernel.metadata.arguments if each.size)


def main() -> None:
    """Read the wheels and write the file."""
    compiler.host_target()
    seen: dict[int, set[object]] = {}
    contracts = load_contracts()
    arguments: dict[str, int] = {}
    releases, chosen = [], {}
    for wheel in map(Wheel, map(Path, sys.argv[1:])):
        found: dict[str, Kernel] = {}
        names = []
        for contract in contracts:
            kernels = wheel.kernels_of(contract)
            if kernels and (sizes := _sizes([*kernels.values()][-1])) not in seen.setdefault(id(contract), set()):
                seen[id(contract)].add(sizes)
                found.update(kernels)
                names.append([*kernels][-1])
        chosen[wheel.release] = sorted(names)
        rows = []
        for name in sorted(found):
            metadata = asdict(found[name].metadata)
            texts = [json.dumps(_row(each), separators=(",", ":")) for each in metadata["arguments"]]
            row = {"arguments": [arguments.setdefault(text, len(arguments)) for text in texts]}
            row |= {key: metadata[key] for key in ("max_threads", "arrays", "types") if metadata[key]}
            rows.append(f"{json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}")
        releases.append(f'"{wheel.release}": {{\n' + ",\n".join(rows) + "\n}")
    text = '{"arguments": [\n' + ",\n".join(arguments) + '\n],\n"kernels": {\n' + ",\n".join(releases)
    text += '\n},\n"chosen": ' + json.dumps(chosen, separators=(",", ":")) + "}\n"
    (Path(__file__).parent / "kernel_signatures.json").write_text(text, encoding="utf-8")
    left = [each for each in contracts if id(each) not in seen]
    print(f"{len(left)} contracts match no kernel: {', '.join(each.family for each in left)}")


if __name__ == "__main__":
    main()
