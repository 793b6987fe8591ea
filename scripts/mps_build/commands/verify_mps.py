"""Test whether MPS on this Mac gives right answers.

A suite runs in child processes, then there is one verdict.

WHEEL_OR_REQUIREMENT is a wheel's path or a requirement (torch==2.13.0): it gets a venv of its own, kept
for the next time. --python PATH alone is an interpreter that has a torch already: nothing is installed
into it. With both, --python chooses the Python of the venv.

`--device cpu` rehearses the suite on the CPU and `--device cuda` on another accelerator; neither says
anything about MPS.

`v2.6.0 --simulated` asks PyTorch's own MPS host code on Linux, over a software Metal: a rehearsal, never a
verification. A failure there is explained by data, or it is new. `torch==2.15.0 --simulated`, or a .whl with --trust,
asks the macOS wheel itself (docs/verify/official_wheel.md).

`--known torch==2.9.1` runs nothing: it lists what is known to be wrong with MPS in that release.

`--releases 2.4.1..2.15.0 --simulated` runs the known issues' cases over these official wheels, one after another: which
bug is in which release (docs/verify/releases.html). The same command goes on where it stopped.
`torch==2.15.0 --simulated --against 2.13.0` says what is new: cases, registrations, kernels, names without a rule.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.known_issues import Issue, issues_of_release, load_issues, macos_floor
from mps_build.common.recipe.catalogue import data_root, find_recipe
from mps_build.common.records.device_record import Simulated
from mps_build.common.reporting import Result
from mps_build.verify import Verification, VerifyRequest
from mps_build.verify.device_suite import DeviceSuite
from mps_build.verify.target.wheel import name_wheel

from .shared.options import Listed, amount, count, duration
from .shared.releases import Wanted, add_releases, check_options, compare_with_older, tabulate
from .shared.simulation import SimulationOptions, add_simulation_options, named_wheel, names_wheel
from .shared.verification import (
    VerdictOptions,
    add_run_options,
    add_torch_options,
    add_verdict_options,
    concluded,
    torch_fields,
    verdict_fields,
    words,
)

TASK = ("verify", 1)
FIRST = ("--python", "--quick", "--only", "--simulated", "--html")
EXITS = (10, 11, 12, 13, 14, 15, 16, 17, 20)
EXTRA_OPTIONS = {"--simulated": "simulate"}
EXAMPLES = (
    "torch==2.13.0",
    "wheelhouse/torch-2.6.0-cp311-cp311-macosx_11_0_arm64.whl --full --html report.html",
    "--python ~/venv/bin/python",
    "--python ~/venv/bin/python --device cpu --only issue-131750",
    "--python ~/venv/bin/python --device cpu --inject fault.py:rounded",
    "v2.6.0 --simulated --macos 14.4 --quick",
    "torch==2.15.0 --simulated --only issue-131750",
    "--known torch==2.9.1 --macos 15.2",
    "--releases 2.4.1..2.15.0 --simulated --html releases.html",
    "torch==2.15.0 --simulated --against 2.13.0 --html new.html",
)

_SEEDS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(SimulationOptions, VerdictOptions):
    """What the command line says."""

    full: bool
    quick: bool
    only: str
    layer: str
    cases: int
    keys: int
    time: float
    seed: int
    op: str | None
    case_timeout: float
    jobs: int | None
    suite: Path | None
    resume: Path | None
    simulated: bool
    releases: str | None
    against: str | None
    known: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    add_torch_options(parser)
    parser.add_argument(
        "--full", action="store_true", help="also run the cases that need much memory or several minutes"
    )
    parser.add_argument("--quick", action="store_true", help="the first cases of the suite: a fifth of the graphs")
    only = "only these cases (ids or shell patterns)"
    parser.add_argument("--only", metavar="ID[,ID]", action=Listed, default="", help=only)
    layer = "only these layers of the suite"
    parser.add_argument("--layer", metavar="NAME[,NAME]", action=Listed, default="", help=layer)
    parser.add_argument("--cases", metavar="N", type=count, default=0, help="so many cases in all (default: 8,000)")
    parser.add_argument("--keys", metavar="N", type=count, default=0, help="so many graphs in all (default: 10,000)")
    parser.add_argument("--time", metavar="10m", type=duration, default=0.0, help="draw cases until this time is over")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="draw other cases (default: 0)")
    parser.add_argument("--op", metavar="NAME", help="only cases that dispatch this operator (aten.add.Tensor)")
    parser.add_argument(
        "--case-timeout", metavar="SECONDS", type=amount, default=120.0, help="the shortest time limit of a case"
    )
    parser.add_argument(
        "--jobs", metavar="N", type=count, help="so many processes beside each other (default: from cores and memory)"
    )
    parser.add_argument(
        "--suite", metavar="DIR", type=Path, help="use another suite, of the form in tests/device/README.md"
    )
    parser.add_argument(
        "--resume", metavar="DIR", type=Path, help="continue an interrupted run: the folder of its record"
    )
    parser.add_argument(
        "--simulated",
        action="store_true",
        help="a recipe's MPS host code on Linux (docs/verify/simulated.md), or a macOS wheel; rehearses",
    )
    add_simulation_options(parser)
    add_releases(parser)
    parser.add_argument(
        "--known",
        action="store_true",
        help="run nothing: list the known issues of a release, on every macOS or that of --macos",
    )
    add_run_options(parser)
    add_verdict_options(parser)


def run(options: Options, console: Console) -> Result:
    """Run the suite and print the verdict; the exit status follows it (docs/reference/exit_codes.md)."""
    if options.known:
        return _list_known(options, console)
    if options.releases is not None or options.against is not None:
        return _over_releases(options, console)
    request = _request(options)
    if request.simulated is not None and request.simulated.official:
        from mps_build.verify.simulated_suites import OfficialSuite  # needs what only a simulation needs

        with OfficialSuite(request, request.simulated, wheel=named_wheel(options.target or "")) as official:
            return concluded(Verification(request, console, official), options, console, command="verify_mps")
    suite = DeviceSuite(request)
    if request.simulated is not None:
        from mps_build.verify.simulated_suites import SimulatedSuite  # needs what only a simulation needs

        suite = SimulatedSuite(request, request.simulated)
    return concluded(Verification(request, console, suite), options, console, command="verify_mps")


def _over_releases(options: Options, console: Console) -> Result:
    if options.releases is not None and options.against is not None:
        raise UsageError("--releases and --against exclude each other", hint="leave one of them out")
    if options.against is not None and options.target is None:
        hint = f"nox -s verify_mps -- torch==2.15.0 --simulated --against {options.against}"
        raise UsageError("--against takes the newer release as well", hint=hint)
    if options.target is not None and options.target.endswith(".whl"):
        raise UsageError(
            f"{options.target}: --against and --releases run releases of the package index, no file",
            hint="`nox -s verify_mps -- FILE --simulated --trust`, then `nox -s compare` of two records",
        )
    chosen = (options.only, options.quick, options.layer, options.op, options.cases, options.keys)
    wanted = Wanted(
        releases=options.releases,
        against=options.against,
        release=None if options.target is None else _release_of(options.target, option="--simulated"),
        given=options.given,
        macos=options.system,
        folder=options.record,
        known_issues=options.known_issues,
        is_chosen=any(chosen),
        html=options.html,
        markdown=options.markdown,
    )
    check_options(wanted)
    request = _request(options, Simulated(release="", macos=options.system, official=True))
    return (tabulate if options.against is None else compare_with_older)(wanted, request, console)


def _request(options: Options, simulated: Simulated | None = None) -> VerifyRequest:
    if options.case_timeout <= 0:
        raise UsageError("--case-timeout takes a number above 0")
    if not 0 <= options.seed < _SEEDS:
        raise UsageError(f"--seed takes a number from 0 to {_SEEDS - 1}")
    if options.quick and options.full:
        raise UsageError("--quick and --full exclude each other", hint="choose one")
    simulated = simulated or _simulated(options)
    fields = {**torch_fields(options, simulated=simulated), **verdict_fields(options)}
    if options.resume is not None:
        fields["folder"] = options.resume
    return VerifyRequest(
        **fields,
        full=options.full,
        quick=options.quick,
        only=words(options.only),
        layers=words(options.layer),
        cases=options.cases,
        keys=options.keys,
        seconds=options.time,
        seed=options.seed,
        op=options.op,
        case_seconds=options.case_timeout,
        jobs=options.jobs,
        resume=options.resume is not None,
        suite=options.suite.absolute() if options.suite else None,
    )


def _simulated(options: Options) -> Simulated | None:
    """Return what a simulated device answers as; what makes no sense beside it is refused at once.

    Raises:
        UsageError: naming the options that exclude each other.
        SourceError: the release cannot be simulated, and why.
    """
    if not options.simulated:
        if options.macos is not None:
            raise UsageError(
                "--macos goes with --simulated: a Mac has its own", hint="nox -s verify_mps -- v2.6.0 --simulated"
            )
        if options.source is not None or options.torch is not None:
            raise UsageError(
                "--source and --torch go with --simulated", hint="nox -s verify_mps -- v2.6.0 --simulated --source TREE"
            )
        return None
    if options.target is None:
        raise UsageError("--simulated takes a release", hint="nox -s verify_mps -- v2.6.0 --simulated")
    others = {
        f"--device {options.device}": options.device != "mps",
        "--python": options.python is not None,
        "--nightly": options.nightly,
        "--index": options.index is not None,
        "--host": options.host is not None,
        "--allow-virtual": options.allow_virtual,
    }
    if wrong := [name for name, is_given in others.items() if is_given]:
        raise UsageError(f"{', '.join(wrong)} and --simulated exclude each other", hint="leave one of them out")
    from mps_build.simulation.session import check_macos, choose_release

    check_macos(options.system)
    if names_wheel(options.target):
        return Simulated(release=_release_of_wheel(options), macos=options.system, official=True)
    release = find_recipe(options.target).version
    chosen = choose_release(release, source=options.tree, torch=options.torch)
    return Simulated(
        release=release,
        macos=options.system,
        source=str(options.tree) if options.tree else None,
        torch="built" if chosen.is_built else "debian",
    )


def _release_of_wheel(options: Options) -> str:
    """Return the version of the wheel; what a wheel on Linux does not do is refused.

    Raises:
        UsageError: no such file, not one release, or options that are not for it.
    """
    given = {
        "--source": options.source is not None,
        "--torch": options.torch is not None,
        "--full": options.full,
        "--offline": options.offline,
        "--inject": options.inject is not None,
    }
    if wrong := [name for name, is_given in given.items() if is_given]:
        raise UsageError(f"{', '.join(wrong)}: not for a macOS wheel on Linux", hint="leave it out")
    return _release_of(options.target or "", option="--simulated")


def _release_of(target: str, *, option: str) -> str:
    """Return the version of a wheel, or of a requirement of one release.

    Raises:
        UsageError: no such file, or not one release.
    """
    wheel = named_wheel(target)
    if wheel.endswith(".whl"):
        return name_wheel(Path(wheel)).version
    try:
        return str(Version(VerifyRequest(target=wheel).exact_version or ""))
    except InvalidVersion as error:
        raise UsageError(
            f"{target}: {option} takes one release", hint=f"nox -s verify_mps -- torch==2.15.0 {option}"
        ) from error


_OF_KNOWN = ("--known", "--macos", "--known-issues", "--json")


def _list_known(options: Options, console: Console) -> Result:
    """Print what is known to be wrong in a release; a list is no verdict, so the exit status is 0.

    Raises:
        UsageError: no release, one without MPS, no such macOS, or options that run something.
    """
    given = (word.partition("=")[0] for word in options.given if word.startswith("--"))
    if unfit := [name for name in given if name not in _OF_KNOWN]:
        raise UsageError(f"{', '.join(unfit)}: not beside --known, which runs nothing", hint="leave it out")
    if options.target is None:
        raise UsageError("--known takes a release", hint="nox -s verify_mps -- --known torch==2.15.0")
    is_recipe = not names_wheel(options.target)
    release = find_recipe(options.target).version if is_recipe else _release_of(options.target, option="--known")
    if macos_floor(release) is None:
        raise UsageError(f"{options.target}: torch {release} has no MPS", hint="1.12 is the first that has it")
    if options.macos is not None and not re.fullmatch(r"\d{2}(\.\d{1,2}){0,2}", options.macos):
        raise UsageError(f"--macos {options.macos}: is not a version of macOS", hint="such as 15.2")
    path = options.known_issues or data_root() / "tests" / "device" / "known_issues.yaml"
    rows = issues_of_release(load_issues(path), release, macos=options.macos)
    where = f"torch {release}{f' on macOS {options.macos}' if options.macos else ''}"
    columns = ("what", "on", "gone in", "where it is said")
    lines = [(row.title, _conditions(row), _until(row, release), _source(row)) for row in rows]
    if rows:
        console.table(columns, lines)
    console.print(f"{len(rows)} known issues of MPS in {where}; nothing was run", style="bold")
    of_suite = {"devices", "where", "transformation", "dtype", "levels", "says"}
    found = [{**row.model_dump(exclude=of_suite), "gone_in": row.gone_after(release)} for row in rows]
    return Result(document={"release": release, "macos": options.macos, "known_issues": found})


def _source(row: Issue) -> str:
    """Return where a row's bug is said, or the first of its lines of host code: --json has them all.

    Nine paths a row leave no room for what is wrong on a terminal of 80 columns.
    """
    if row.link:
        return row.link
    more = f" and {len(row.lines) - 1} more" if len(row.lines) > 1 else ""
    return row.lines[0].rpartition("/")[2] + more if row.lines else ""


def _conditions(row: Issue) -> str:
    """Return which Macs a known issue is about; empty: all."""
    chips = ", ".join(row.chips or ())
    virtual = {None: "", True: "a virtual Mac", False: "a real Mac"}[row.virtual]
    return "; ".join(filter(None, (f"macOS {row.macos}" if row.macos else "", chips, virtual)))


def _until(row: Issue, release: str) -> str:
    """Return the next release without a known issue, and the patch of this project that fixes it."""
    return ", ".join(filter(None, (row.gone_after(release), row.fixed_by)))
