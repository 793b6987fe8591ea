"""Show where a build's time went, its critical path, and what would save most.

The time is shown by phase and folder, with the cores that were kept busy.

BUILD is a recipe that was built here, or the build folder of any PyTorch (or of anything that ninja builds): its
.ninja_log is enough. With build.ninja beside it the critical path is known too, and with our receipts the steps
before and after ninja and what the compiler cache did. Savings come from the log's own steps, scheduled anew, or from
ratios measured in benchmarks/results.json.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from mps_build import __version__
from mps_build.common.console import Console
from mps_build.common.errors import UsageError, reason_of
from mps_build.common.files import read_text, write_whole
from mps_build.common.json_text import checked, read_json
from mps_build.common.page import whole_page
from mps_build.common.recipe.catalogue import data_root, find_recipe
from mps_build.common.reporting import Result
from mps_build.common.workspace import Workspace, expanded, work_folder
from mps_build.wheel_build.report.analysis import Lever, Times, analyse, levers, read_results
from mps_build.wheel_build.report.ninja_files import BuildLog, read_graph, read_log
from mps_build.wheel_build.report.page import (
    CSS,
    chart,
    document,
    folder_rows,
    headline,
    human,
    lever_rows,
    page_body,
    phase_rows,
    sentence,
    step_rows,
)

TASK = ("repository", 5)
DOCUMENT = "build:string steps:array notes:array wall_seconds:number slowest:array cache:object|null"
EXAMPLES = ("v2.6.0", "~/pytorch/build", "sample --html build.html --svg build.svg", "~/pytorch/build --run 2")
LOG = ".ninja_log"
_DEEPEST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    build: str | None
    run: str | None
    html: Path | None
    svg: Path | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument(
        "build",
        metavar="BUILD",
        nargs="?",
        help="a recipe, or a folder that has a .ninja_log (default: the last build)",
    )
    parser.add_argument("--run", metavar="N", help="only this run of ninja: its number, or `last` (default: all)")
    parser.add_argument("--html", metavar="FILE", type=Path, help="also write an HTML page")
    parser.add_argument("--svg", metavar="FILE", type=Path, help="also write the chart as SVG")


def run(options: Options, console: Console) -> Result:
    """Read the log of ninja and the receipts, and print where the time went."""
    folder, receipts = _find(options.build)
    log = _chosen(_log(folder), options.run)
    times = analyse(log, read_graph(folder))
    steps = _steps(receipts)
    cache = _cache(receipts)
    found = levers(times, read_results(data_root() / "benchmarks" / "results.json"), cache_used=bool(cache))
    notes = [*log.notes, *_notes(times, bool(steps))]
    words = _cache_words(cache)
    _print(folder, times, found, steps, words, notes, console)
    if options.svg:
        _write(options.svg, chart(times))
    if options.html:
        body = page_body(str(folder), times, found, steps, notes, words)
        title = f"Build report: {headline(times)}"
        _write(options.html, whole_page(title, body, css=CSS, footer=f"Written by mps-build {__version__}."))
    for path in (options.html, options.svg):
        if path:
            console.print(f"written: {path}")
    whole = {
        "build": str(folder),
        "log_version": log.version,
        **document(times, found),
        "steps": [{"step": name, "seconds": seconds} for name, seconds in steps],
        "cache": cache,
        "notes": notes,
    }
    return Result(document=whole)


def _find(argument: str | None) -> tuple[Path, Path | None]:
    """Return the folder that holds the log, and the folder of our receipts, where there is one."""
    if argument is None:
        logs = sorted(work_folder().glob(f"*/build/*/{LOG}")) + sorted(work_folder().glob(f"*/source/build/{LOG}"))
        if not logs:
            hint = "name a recipe that was built here, or a build folder: nox -s dev -- build_report ~/pytorch/build"
            raise UsageError(f"nothing was built in {work_folder()}", hint=hint)
        newest = max(logs, key=lambda path: path.stat().st_mtime).parent
        return newest, _receipts(newest)
    given = expanded(argument)
    if given.name == LOG and given.is_file():
        given = given.parent
    if given.is_dir():
        return _within(given), _receipts(_within(given))
    if "/" in argument and not argument.endswith((".yaml", ".yml")):
        raise UsageError(f"{argument}: no such folder", hint=f"give the folder that holds {LOG}")
    root = work_folder() / find_recipe(argument).name
    if not root.is_dir():
        raise UsageError(f"{argument} was not built here: {root} is missing", hint=f"nox -s build_wheel -- {argument}")
    return _within(root), root / "receipts"


def _within(folder: Path) -> Path:
    """Return the folder with the newest log at or below this one: build/, build/release, source/build."""
    patterns = [LOG, *("/".join(["*"] * depth + [LOG]) for depth in range(1, _DEEPEST + 1))]
    for pattern in patterns:
        logs = [path for path in folder.glob(pattern) if path.is_file()]
        if logs:
            return max(logs, key=lambda path: path.stat().st_mtime).parent
    hint = "a build by make or Xcode has none, and one that never compiled neither; give the folder that ninja ran in"
    raise UsageError(f"{folder}: holds no {LOG}, and no folder below it does", hint=hint)


def _receipts(folder: Path) -> Path | None:
    """Return the receipts of the work folder that a build folder lies in: work/<recipe>/build/<profile>."""
    above = [Workspace(root=parent).receipts for parent in folder.resolve().parents[:3]]
    return next((path for path in above if path.is_dir()), None)


def _log(folder: Path) -> BuildLog:
    path = folder / LOG
    try:
        text = read_text(path, errors="replace")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {reason_of(error)}") from error
    log = read_log(text)
    if log is None:
        first = text.splitlines()[0][:60] if text.strip() else "nothing"
        raise UsageError(f"{path}: is not a ninja log of version 5 to 7: it begins with {first!r}")
    if not any(run.steps for run in log.runs):
        raise UsageError(f"{path}: holds no step", hint="ninja has not finished a step in this folder yet")
    return log


def _chosen(log: BuildLog, wanted: str | None) -> BuildLog:
    if wanted is None:
        return log
    number = len(log.runs) if wanted == "last" else int(wanted) if wanted.isdecimal() else 0
    if not 1 <= number <= len(log.runs):
        raise UsageError(f"--run {wanted}: the log holds {len(log.runs)} runs", hint="a number from 1, or `last`")
    return BuildLog(version=log.version, runs=(log.runs[number - 1],), notes=log.notes)


class _Cache(BaseModel):
    model_config = ConfigDict(extra="allow")

    hits: int = Field(default=0, ge=0)
    misses: int = Field(default=0, ge=0)


class _Facts(BaseModel):
    cache: _Cache | None = None


class _Receipt(BaseModel):
    """What of a step's receipt the report tells."""

    seconds: float = Field(ge=0)
    started: str = ""
    facts: _Facts | None = None


def _kept(receipts: Path | None) -> list[tuple[str, _Receipt]]:
    kept = []
    for path in sorted(receipts.glob("*.json")) if receipts and receipts.is_dir() else ():
        try:
            document = read_json(path)
        except (OSError, ValueError):
            continue
        with contextlib.suppress(UsageError):  # of another version, or damaged: the report has fewer rows
            kept.append((path.stem, checked(document, _Receipt, name=str(path), what="receipt")))
    return sorted(kept, key=lambda row: row[1].started)


def _steps(receipts: Path | None) -> list[tuple[str, float]]:
    return [(name, receipt.seconds) for name, receipt in _kept(receipts)]


def _cache(receipts: Path | None) -> Mapping[str, float] | None:
    """Return what the newest compile's receipt says of the compiler cache."""
    caches = [receipt.facts.cache for _, receipt in _kept(receipts) if receipt.facts and receipt.facts.cache]
    return caches[-1].model_dump() if caches else None


def _cache_words(cache: Mapping[str, float] | None) -> str:
    if cache is None:
        return "Compiler cache: unknown (a .ninja_log does not separate hits from compiles)."
    hits, misses = int(cache.get("hits", 0)), int(cache.get("misses", 0))
    share = f" ({hits / (hits + misses):.0%})" if hits + misses else ""
    return f"Compiler cache: {hits} hits{share}, {misses} misses, from the receipt."


def _notes(times: Times, has_receipts: bool) -> list[str]:
    notes = ["seconds of steps are wall seconds each: on a machine with other work they are more than its CPU's"]
    if not has_receipts:
        notes.append("no receipts were found: the first configure and the packing of the wheel are not included")
    if len(times.runs) > 1:
        notes.append("runs are shown end to end: the time between them is left out")
    return notes


def _print(
    folder: Path,
    times: Times,
    found: tuple[Lever, ...],
    steps: list[tuple[str, float]],
    cache: str,
    notes: list[str],
    console: Console,
) -> None:
    console.print(f"{folder}: {headline(times)}", style="bold")
    console.print(f"{sentence(times)}.")
    console.print(cache)
    console.print()
    columns = ("phase", "steps", "time", "share", "longest")
    console.table(columns, phase_rows(times.phases, times.busy))
    if times.folders:
        console.print()
        console.table(("compile, by folder", *columns[1:]), folder_rows(times))
    if times.critical:
        console.print()
        rows = [(human(step.seconds), step.name) for step in times.critical]
        console.table(("critical path", f"{human(times.critical_seconds or 0.0)} in all"), rows)
    if steps:
        console.print()
        console.table(("part", "step of mps-build", "time"), step_rows(steps))
    console.print()
    console.table(("what the next lever would save", "wall", "share", "how", "from"), lever_rows(found, times.wall))
    for note in notes:
        console.print(f"note: {note}", style="dim")


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error}", hint="give a file in an existing folder") from error
