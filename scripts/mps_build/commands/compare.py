"""Compare two wheels, or two records.

Records are those of verify_mps or of benchmark_mps.

Of verifications: what fails now and did not, what passes now, whose error grew, what became slower.
Of benchmarks: each row's ratio and step times, before and after; rows of other shapes are not compared.

Of wheels: what should be equal of one version and commit, and where they differ. Each side is a .whl
file, or a requirement such as torch==2.15.0, fetched for macOS arm64. Strong parts (files, Python sources,
operators, schemas, kernels, flags, libraries) are equal between two builds of one commit; weak ones (other
exports, SDK, bytes) differ with compiler and build, and are only reported.

With --kernels, of wheels: which Metal kernels are the same, changed, new and gone, by their instructions. Names of
values and helpers, metadata and debug records do not count. Nothing is run, unless --answers asks for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..common.console import Console, human_seconds
from ..common.errors import UsageError
from ..common.records.benchmark import is_benchmark, load_benchmark
from ..common.records.verification import load_record
from ..common.result import Result
from ..inspection.audit.parity import Parity, Part, compare_wheels
from ..inspection.audit.render import printable
from ..verify.reports import benchmark_side_by_side
from ..verify.reports.side_by_side import compare_records, tables, verdict
from .shared.find_wheel import find_wheel
from .shared.kernels import compare_kernels_of

TASK = ("inspection", 4)
EXTRA_OPTIONS = {"--kernels": "kernels"}
EXAMPLES = (
    "wheelhouse/torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl torch==2.15.0",
    "torch==2.14.1 torch==2.15.0 --python 3.12 --show 20",
    "torch==2.14.1 torch==2.15.0 --kernels --json kernels.json",
    "older/record.json newer/record.json",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    left: str
    right: str
    python: str | None
    show: int
    kernels: bool
    answers: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("left", metavar="LEFT", help="a .whl file, a requirement, or a record (.json)")
    parser.add_argument("right", metavar="RIGHT", help="what to compare it with")
    parser.add_argument("--python", metavar="X.Y", help="the Python of requirements (default: the newest they have)")
    parser.add_argument(
        "--show", metavar="N", type=int, default=5, help="number of names to show for each difference (default: 5)"
    )
    parser.add_argument(
        "--kernels", action="store_true", help="of wheels: compare the Metal kernels' instructions, and nothing else"
    )
    parser.add_argument(
        "--answers", action="store_true", help="with --kernels: also run the changed kernels of both, on equal inputs"
    )


def run(options: Options, console: Console) -> Result:
    """Compare two wheels or two records; both must be of one kind."""
    sides = (options.left, options.right)
    if options.answers and not options.kernels:
        raise UsageError("--answers needs --kernels", hint="compare LEFT RIGHT --kernels --answers")
    if options.kernels:
        return compare_kernels_of([_wheel(side, options.python, console) for side in sides], options, console)
    if any(_is_record(side) for side in sides):
        return _compare_records(sides, options, console)
    return _compare_wheels(sides, options, console)


def _is_record(side: str) -> bool:
    return side.endswith(".json") or (Path(side) / "record.json").is_file()


def _compare_records(sides: Sequence[str], options: Options, console: Console) -> Result:
    paths = [Path(side) / "record.json" if Path(side).is_dir() else Path(side) for side in sides]
    if any(is_benchmark(path) for path in paths):
        return _compare_benchmarks(paths, console)
    found = compare_records(load_record(paths[0]), load_record(paths[1]))
    for title, columns, rows in tables(found):
        shown = rows[: options.show]
        if len(rows) > len(shown):
            shown.append((f"and {len(rows) - len(shown)} more", *[""] * (len(columns) - 1)))
        console.table(columns, shown, title=title)
        console.print()
    console.print(f"{human_seconds(found.seconds[0])} before, {human_seconds(found.seconds[1])} after")
    console.print(verdict(found), style="bold")
    return Result(document=found.document())


def _compare_benchmarks(paths: Sequence[Path], console: Console) -> Result:
    found = benchmark_side_by_side.compare_benchmarks(load_benchmark(paths[0]), load_benchmark(paths[1]))
    for title, columns, rows in benchmark_side_by_side.tables(found):
        console.table(columns, rows, title=title)
        console.print()
    console.print(benchmark_side_by_side.verdict(found), style="bold")
    return Result(document=found.document())


def _compare_wheels(sides: Sequence[str], options: Options, console: Console) -> Result:
    paths = [_wheel(side, options.python, console) for side in sides]
    parity = compare_wheels(paths[0], paths[1], console)
    _print_parity(parity, options.show, console)
    return Result(document=parity.document())


def _wheel(side: str, python: str | None, console: Console) -> Path:
    is_file = Path(side).exists()
    path, _ = find_wheel(side, None if is_file else python, console)
    if not path.is_file() or path.suffix != ".whl":
        raise UsageError(f"{path}: is not a wheel", hint="give a .whl file, or a requirement such as torch==2.15.0")
    return path


def _print_parity(parity: Parity, most: int, console: Console) -> None:
    console.print(f"left   {parity.left}\nright  {parity.right}")
    console.print()
    rows = [
        (part.name, "" if part.is_strong else "weak", str(part.left), str(part.right), _difference(part), part.note)
        for part in parity.parts
    ]
    console.table(("part", "", "left", "right", "difference", ""), rows)
    for part in parity.parts:
        if part.is_equal or not part.is_strong:
            continue
        console.print()
        console.print(part.name, style="bold")
        for sign, names in (("-", part.only_left), ("+", part.only_right), ("~", part.changed)):
            for name in names[:most]:
                console.print(f"  {sign} {printable(name)}")
            if len(names) > most:
                console.print(f"  {sign} and {len(names) - most} more", style="dim")
    console.print()
    if not parity.differing:
        console.print("equal in every part that must be equal", style="bold green")
    elif parity.is_same_source:
        parts = ", ".join(part.name for part in parity.differing)
        console.print(f"same version and commit, but different in: {parts}", style="bold yellow")
    else:
        console.print("different sources: differences are expected", style="bold")


def _difference(part: Part) -> str:
    if part.is_equal:
        return "equal"
    counts = {"-": part.only_left, "+": part.only_right, "~": part.changed}
    return " ".join(f"{sign}{len(names)}" for sign, names in counts.items() if names)
