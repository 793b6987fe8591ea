"""Estimate how long a number of Macs takes to build and test, and how many Macs a time limit needs.

It also says how many of them should build.

--commits N, each built for --pythons M and tested on --macos K versions, by --builders B and
--testers T machines. The costs are assumptions (each is printed) unless --receipts DIR holds
measured ones: the receipts beside wheels, and the records of verify_mps.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.plain_text import in_markdown, markdown_table
from mps_build.common.result import Result
from mps_build.common.summary import job_summary
from mps_build.publish.fleet.costs import Costs, measured_costs
from mps_build.publish.fleet.simulate import MOST_MACS, Plan, Shape, best_shape, macs_needed, one_python_tested, plan

from .shared.numbers import count

TASK = ("publish", 1)
DOCUMENT = (
    "plan:object best:object one_python_tested_minutes:number costs:object within_hours:number "
    "macs_needed:integer|null needed:object|null"
)
EXAMPLES = (
    "--commits 30 --pythons 4 --macos 3 --builders 4 --testers 3",
    "--commits 7 --pythons 4 --macos 3 --builders 3 --testers 3 --receipts wheelhouse",
)
_MOST = 20_000  # builds and tests: far above what GitHub's matrix (256 jobs) would run


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    commits: int
    pythons: int
    macos: int
    builders: int
    testers: int
    cores: int | None
    hits: float | None
    receipts: Path | None
    within: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    for name, default, what in (
        ("commits", 1, "commits to build"),
        ("pythons", 4, "Pythons of each commit"),
        ("macos", 3, "macOS versions that each wheel is tested on"),
        ("builders", 1, "Macs that build"),
        ("testers", 3, "Macs that test: bare metal, each on one macOS"),
    ):
        parser.add_argument(f"--{name}", metavar="N", type=count, default=default, help=f"{what} (default {default})")
    parser.add_argument(
        "--within",
        metavar="HOURS",
        type=_hours_wanted,
        default=24.0,
        help="how many Macs do it in so long (default 24)",
    )
    parser.add_argument("--cores", metavar="N", type=count, help="cores of a builder (default: 10)")
    parser.add_argument("--hits", metavar="SHARE", type=_share, help="share of cache hits at the next commit, 0 to 1")
    parser.add_argument(
        "--receipts", metavar="DIR", type=Path, help="take costs from the receipts and records below DIR"
    )


def run(options: Options, console: Console) -> Result:
    """Simulate the fleet and print its hours, its bottleneck and a better shape."""
    shape = Shape(**{name: getattr(options, name) for name in Shape.__dataclass_fields__})
    if shape.tests > _MOST or shape.builders + shape.testers > 200:
        raise UsageError(f"{shape.tests} tests on {shape.builders + shape.testers} Macs are more than a plan here")
    costs = measured_costs(options.receipts, Costs()) if options.receipts else Costs()
    given: dict[str, Any] = {"cores": options.cores, "commit_hits": options.hits}
    costs = replace(costs, **{name: value for name, value in given.items() if value is not None})
    planned, best = plan(shape, costs), best_shape(shape, costs)
    rows = _rows(planned)
    fewer = one_python_tested(shape, costs)
    needed = macs_needed(shape, costs, minutes=options.within * 60)
    advice = [_needed(needed, options.within), *_advice(planned, best, fewer)]
    console.table(("", ""), rows)
    console.print()
    assumed = {name: value for name, value in asdict(costs).items() if name != "measured"}
    console.table(
        ("cost", "", ""),
        [(name.replace("_", " "), f"{value:g}", _source(name, costs, given)) for name, value in assumed.items()],
    )
    console.print()
    for line in advice:
        console.print(line)
    _job_summary(rows, advice)
    return Result(
        document={
            "plan": _document(planned),
            "best": _document(best),
            "within_hours": options.within,
            "macs_needed": needed.shape.builders + needed.shape.testers if needed else None,
            "needed": _document(needed) if needed else None,
            "one_python_tested_minutes": round(fewer, 2),
            "costs": asdict(costs),
        }
    )


def _rows(planned: Plan) -> list[tuple[str, str]]:
    shape = planned.shape
    return [
        ("builds, tests", f"{shape.builds}, {shape.tests}"),
        ("last wheel", _hours(planned.build_minutes)),
        ("work of the busiest tester", _hours(planned.test_minutes)),
        ("makespan (builds and tests, event by event)", _hours(planned.whole_minutes)),
        ("core-minutes", f"{planned.core_minutes:,.0f} (without a cache {planned.uncached_core_minutes:,.0f})"),
        ("bottleneck", planned.bottleneck),
    ]


def _needed(found: Plan | None, hours: float) -> str:
    if found is None:
        return f"Macs needed for all of it within {hours:g} h: more than {MOST_MACS}, or no number of them"
    shape = found.shape
    return (
        f"Macs needed for all of it within {hours:g} h: {shape.builders + shape.testers} "
        f"({shape.builders} build, {shape.testers} test: {_hours(found.whole_minutes)})"
    )


def _advice(planned: Plan, best: Plan, fewer: float) -> list[str]:
    shape, lines = planned.shape, []
    if best.shape != shape and best.whole_minutes < planned.whole_minutes:
        lines.append(
            f"best shape of {shape.builders + shape.testers} Macs: {best.shape.builders} build, "
            f"{best.shape.testers} test: {_hours(best.whole_minutes)}"
        )
    else:
        lines.append(f"best shape of {shape.builders + shape.testers} Macs: this one")
    if shape.testers < shape.macos:
        lines.append(f"{shape.testers} testers cannot hold {shape.macos} macOS at once: some Mac must change its macOS")
    if shape.pythons > 1:
        lines.append(f"whole tests for one Python of each commit, smoke tests for the others: {_hours(fewer)}")
    return lines


def _source(name: str, costs: Costs, given: dict[str, object]) -> str:
    return "given" if given.get(name) is not None else "measured" if name in costs.measured else "assumed"


def _document(planned: Plan) -> dict[str, object]:
    figures = {
        name: round(getattr(planned, name), 2)
        for name in ("build_minutes", "test_minutes", "whole_minutes", "core_minutes", "uncached_core_minutes")
    }
    return {**asdict(planned.shape), **figures, "bottleneck": planned.bottleneck}


def _job_summary(rows: list[tuple[str, str]], advice: list[str]) -> None:
    job_summary("\n".join([*markdown_table(("fleet", ""), rows), "", *map(in_markdown, advice), ""]))


def _hours(minutes: float) -> str:
    return f"{minutes / 60:.1f} h" if minutes >= 60 else f"{minutes:.0f} min"


def _hours_wanted(text: str) -> float:
    return _checked(text, float, lambda value: 0.01 <= value <= 10_000, "a number of hours")


def _share(text: str) -> float:
    return _checked(text, float, lambda value: 0 <= value <= 1, "a share from 0 to 1")


def _checked(text: str, kind: Callable[[str], float], holds: Callable[[float], bool], what: str) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = -1
    if not holds(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return value
