"""Compare two wheels, or two records.

Records are those of verify_mps, verify_training or benchmark_mps, and what verify_kernels --json wrote.

Of verifications: what fails now and did not, what passes now, whose error grew, what became slower. With
--fail-on new the exit status is 10 if anything fails in RIGHT that did not fail in LEFT, known issues aside.
Of benchmarks: each row's ratio and step times, before and after; rows of other shapes are not compared.

Of wheels: what should be equal of one version and commit, and where they differ. Each side is a .whl
file, or a requirement such as torch==2.15.0, fetched for macOS arm64; two requirements are taken for
one Python. Strong parts (files, Python sources, operators, schemas, kernels, flags, libraries) are equal
between two builds of one commit; weak ones (other exports, SDK, bytes) differ with compiler and build,
and are only reported.

With --kernels, of wheels: which Metal kernels are the same, changed, new and gone, by their instructions. Names of
values and helpers, metadata and debug records do not count. Nothing is run, unless --answers asks for it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.console import Console, human_seconds
from ..common.errors import Regressed, UsageError
from ..common.json_text import load_json
from ..common.records.benchmark import is_benchmark, load_benchmark
from ..common.records.device_record import load_record
from ..common.records.kernels import is_kernels, load_kernels
from ..common.reporting import Result
from ..inspection.audit.parity import Parity, Part, compare_wheels
from ..inspection.audit.render import printable
from ..kernels.report.difference import compare_runs
from ..verify.reports import benchmark_side_by_side
from ..verify.reports.side_by_side import compare_records, new_failures, tables, verdict
from .shared.kernels import compare_kernels_of
from .shared.options import add_trust
from .shared.wheels import find_wheel

TASK = ("inspection", 3)
FIRST = ("--fail-on", "--show", "--kernels", "--answers", "--python")
EXITS = (10,)
EXTRA_OPTIONS = {"--kernels": "kernels"}
DOCUMENT = (
    "?compared:string ?left:string ?right:string ?kernels:object ?parts:array ?newly_failing:array "
    "?newly_passing:array ?rows:array ?new_failures:array"
)
EXAMPLES = (
    "wheelhouse/torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl torch==2.15.0",
    "torch==2.14.1 torch==2.15.0 --python 3.12 --show 20",
    "torch==2.14.1 torch==2.15.0 --kernels --json kernels.json",
    "older/record.json newer/record.json --fail-on new",
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
    fail_on: str | None
    trust: bool


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
    parser.add_argument(
        "--fail-on", choices=("new",), help="of verifications: end with 10 if a case or kernel fails that did not"
    )
    add_trust(parser)


def run(options: Options, console: Console) -> Result:
    """Compare two wheels or two records; both must be of one kind."""
    sides = (options.left, options.right)
    if options.answers and not options.kernels:
        raise UsageError("--answers needs --kernels", hint="compare LEFT RIGHT --kernels --answers")
    if any(_is_record(side) for side in sides) and not options.kernels:
        return _compare_records(sides, options, console)
    if options.fail_on:
        raise UsageError(
            f"--fail-on {options.fail_on} is about records, not wheels", hint="compare OLDER.json NEWER.json"
        )
    if options.kernels:
        return compare_kernels_of(_wheels(sides, options, console), options, console)
    return _compare_wheels(sides, options, console)


def _is_record(side: str) -> bool:
    return side.endswith(".json") or (Path(side) / "record.json").is_file()


def _compare_records(sides: Sequence[str], options: Options, console: Console) -> Result:
    paths = [Path(side) / "record.json" if Path(side).is_dir() else Path(side) for side in sides]
    if any(is_benchmark(path) for path in paths):
        if options.fail_on:
            raise UsageError(
                "--fail-on is not for benchmarks: they have no failures", hint="the table says what is slower"
            )
        return _compare_benchmarks(paths, console)
    if any(is_kernels(load_json(path)) for path in paths):
        return _compare_kernel_runs(paths, options, console)
    before, after = load_record(paths[0]), load_record(paths[1])
    found = compare_records(before, after)
    for title, columns, rows in tables(found):
        shown = rows[: options.show]
        if len(rows) > len(shown):
            shown.append((f"and {len(rows) - len(shown)} more", *[""] * (len(columns) - 1)))
        console.table(columns, shown, title=title)
        console.print()
    console.print(f"{human_seconds(found.seconds[0])} before, {human_seconds(found.seconds[1])} after")
    console.print(verdict(found), style="bold")
    new = new_failures(before, after)
    return _ended({**found.document(), "new_failures": list(new)}, new, options)


def _compare_kernel_runs(paths: Sequence[Path], options: Options, console: Console) -> Result:
    found = compare_runs(*(load_kernels(path) for path in paths))
    for title, rows in (("Newly wrong", found.newly_failing), ("Newly right", found.newly_passing)):
        if rows:
            console.table(
                ("kernel", "before", "after", "what"), [list(row) for row in rows[: options.show]], title=title
            )
            console.print()
    counts = f"{len(found.newly_failing)} kernels newly wrong, {len(found.newly_passing)} newly right"
    console.print(f"{counts}; {found.both} are in both", style="bold")
    return _ended(found.document(), found.new_failures, options)


def _ended(document: dict[str, Any], new: Sequence[str], options: Options) -> Result:
    if options.fail_on != "new" or not new:
        return Result(document=document)
    names = ", ".join(new[:3]) + (" …" if len(new) > 3 else "")
    hint = f"{len(new)} fail that did not fail before: {names}"
    return Result(document=document, exit_code=Regressed.exit_code, cause=Regressed.cause, hint=hint)


def _compare_benchmarks(paths: Sequence[Path], console: Console) -> Result:
    found = benchmark_side_by_side.compare_benchmarks(load_benchmark(paths[0]), load_benchmark(paths[1]))
    for title, columns, rows in benchmark_side_by_side.tables(found):
        console.table(columns, rows, title=title)
        console.print()
    console.print(benchmark_side_by_side.verdict(found), style="bold")
    return Result(document=found.document())


def _compare_wheels(sides: Sequence[str], options: Options, console: Console) -> Result:
    paths = _wheels(sides, options, console)
    parity = compare_wheels(paths[0], paths[1], console)
    _print_parity(parity, options.show, console)
    return Result(document=parity.document())


def _wheels(sides: Sequence[str], options: Options, console: Console) -> list[Path]:
    """Return both wheels; two that are named by version are taken for one Python, the newest that both have."""
    python = options.python
    if python is not None or any(Path(side).exists() or "/" in side or side.endswith(".whl") for side in sides):
        return [_wheel(side, python, options, console) for side in sides]
    newest = [_wheel(side, None, options, console) for side in sides]
    pythons = [_python_of(path) for path in newest]
    if pythons[0] == pythons[1] or None in pythons:
        return newest
    older = min(filter(None, pythons), key=lambda text: int(text.partition(".")[2].rstrip("t")))
    console.print(f"for Python {older}, the newest that both have; --python chooses another")
    return [
        path if found == older else _wheel(side, older, options, console)
        for side, path, found in zip(sides, newest, pythons, strict=True)
    ]


def _python_of(wheel: Path) -> str | None:
    """Return the Python that a wheel's name says, as --python takes it; None where it says none."""
    match = re.search(r"-cp3(\d+)-(?:cp3\d+(t?)|none|abi3)-", wheel.name)
    return f"3.{match[1]}{match[2] or ''}" if match else None


def _wheel(side: str, python: str | None, options: Options, console: Console) -> Path:
    is_file = Path(side).exists()
    runs = options.kernels and options.answers
    path, _ = find_wheel(side, None if is_file else python, console, runs=runs, trust=options.trust)
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
