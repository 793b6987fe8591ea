"""Find the version, and the commit, that changed an answer.

Both ends are tested first, then as few versions and commits between them as possible. With a --good that is newer
than --bad, what fixed it is found.

CASE is the id of a case of the suite (as in any record of verify_mps); SCRIPT.py, or --predicate COMMAND, asks a
question of your own by its exit status: 0 good, 1 to 124 bad, 125 cannot be tested, as `git bisect run` has it.
`python` is then the one that has the version's torch.

Releases and nightlies come from pip's index or --index (a folder of wheels, or an address: nightlies have their own).
With --repo, a clone of PyTorch, the search goes on among the commits between the two versions found; --good and
--bad may also be commits or tags of it. An interruption costs one run: the same command goes on.

--simulated needs no Mac: the official macOS wheels are tested on Linux (docs/verify/official_wheel.md).
"""

from __future__ import annotations

import argparse
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from ..common.console import Console
from ..common.errors import UsageError
from ..common.files import fault_of, read_bytes, write_whole
from ..common.process import kept_awake
from ..common.reporting import Result
from ..common.workspace import Workspace, expanded, remove_tree, work_folder
from ..kernels.code.compiler import require_llvm
from ..verify.bisection import report
from ..verify.bisection.answers import split_command
from ..verify.bisection.request import BisectionRequest
from ..verify.bisection.runner import Bisection
from ..verify.bisection.stages import Stages
from ..verify.bisection.state import State, folder_name, load_state, write_state
from ..verify.bisection.versions import parse_version
from .shared.options import add_trust, amount
from .shared.simulation import MacosOption, add_macos

TASK = ("verify", 4)
FIRST = ("--good", "--bad", "--simulated", "--op", "--predicate")
EXITS = (16,)
EXTRA_OPTIONS = {"--simulated": "simulate", "--op": "kernels"}  # the first has what the second needs
DOCUMENT = "question:object good:string bad:string stages:array state:string"
EXAMPLES = (
    "issue-131750 --good 2.3.1 --bad 2.4.0",
    "issue-131750 --good 2.6.0 --bad 2.4.0",
    "check.py --simulated --good 2.3.0 --bad 2.4.0",
    "issue-131750 --good 2.6.0 --bad 2.7.0.dev20250101 --index URL --repo ~/pytorch",
    "--predicate 'python check.py' --good 2.10.0 --bad 2.15.0 --op hypot",
    "--predicate 'python check.py' --good 2.1.0 --bad 2.5.0 --device cpu",
    "--predicate ./build_and_check.sh --good v2.5.0 --bad main --repo ~/pytorch",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(MacosOption):
    """What the command line says."""

    case: str | None
    good: str
    bad: str
    predicate: str | None
    index: str | None
    python: str | None
    repo: Path | None
    builder: str | None
    recipe: str
    device: str
    op: str | None
    allow_virtual: bool
    runs: int
    timeout: float
    fresh: bool
    trust: bool
    markdown: Path | None
    simulated: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument(
        "case",
        nargs="?",
        metavar="CASE|SCRIPT.py",
        help="the id of a case of the device suite, or a Python script whose exit status decides",
    )
    parser.add_argument("--good", required=True, metavar="V", help="a version (or a commit of --repo) that is good")
    parser.add_argument(
        "--bad", required=True, metavar="V", help="one that is bad; if it is older than --good, the fix is searched for"
    )
    parser.add_argument(
        "--simulated", action="store_true", help="test official macOS wheels on Linux, without a Mac: a rehearsal"
    )
    add_macos(parser)
    parser.add_argument("--predicate", metavar="COMMAND", help="a command that decides, instead of CASE")
    parser.add_argument("--index", metavar="URL_OR_DIR", help="where wheels come from, instead of pip's own index")
    parser.add_argument(
        "--python", metavar="X.Y|PATH", help="the Python to use (default: one that has wheels of both ends)"
    )
    parser.add_argument(
        "--repo", metavar="PATH", type=Path, help="a clone of PyTorch: also search among commits (it is only read)"
    )
    parser.add_argument(
        "--builder",
        metavar="COMMAND",
        help="builds a commit: runs in its tree and prints a wheel or an interpreter on its last line",
    )
    parser.add_argument(
        "--recipe", metavar="RECIPE", default="nightly", help="the recipe that builds a commit without --builder"
    )
    parser.add_argument(
        "--device", choices=("mps", "cuda", "cpu"), default="mps", help="where CASE runs (default: mps)"
    )
    parser.add_argument(
        "--op",
        metavar="NAME",
        help="skip versions whose Metal kernels of this operator are those of a version tested before; both sides of "
        "the result are tested in any case, for code of the host changes too (needs llvmlite)",
    )
    parser.add_argument("--allow-virtual", action="store_true", help="also run on a virtual Mac")
    parser.add_argument(
        "--runs", metavar="N", type=int, default=3, help="number of runs per version; the majority decides"
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=amount,
        default=300.0,
        help="time limit of one run (--simulated: six times as long)",
    )
    add_trust(parser)
    parser.add_argument("--fresh", action="store_true", help="discard the answers of an earlier run")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="also write the report as Markdown")


def run(options: Options, console: Console) -> Result:
    """Search, or continue an earlier search of the same question, and print what was found."""
    request = _request(options)
    if options.op is not None:
        require_llvm()
    releases = None
    folder = work_folder() / "bisect" / folder_name(request.question)
    if request.simulated is not None:
        from ..verify.bisection.official import OfficialReleases  # needs what only a simulation needs

        releases = OfficialReleases(request=request, macos=request.simulated, folder=folder, reporter=console)
        releases.check()
    with Workspace(root=folder).held(), kept_awake():
        if options.fresh:
            for name in ("venvs", "wheels", "tree"):
                remove_tree(folder / name)
            (folder / "state.json").unlink(missing_ok=True)
        path = folder / "state.json"
        state = load_state(path) or State(question=request.question, good=request.good, bad=request.bad)
        if state.probes:
            console.print(f"continuing with {len(state.probes)} answers of an earlier run (`--fresh` forgets them)")
        bisection = Bisection(
            state=state,
            runner=(stages := Stages(request=request, state=state, folder=folder, reporter=console, releases=releases)),
            save=lambda grown: write_state(grown, path),
            tell=console.line,
            runs=options.runs,
        )
        findings = stages.run(bisection, console.step)
    _print(state, findings, console, folder)
    if options.markdown:
        write_whole(options.markdown, report.markdown(state, findings))
    return Result(document={**report.document(state, findings), "state": str(path)})


def _request(options: Options) -> BisectionRequest:
    if (options.case is None) == (options.predicate is None):
        raise UsageError(
            "give either CASE or --predicate COMMAND", hint="any record of verify_mps lists the ids of cases"
        )
    if options.runs < 1 or options.runs % 2 == 0:
        raise UsageError(f"--runs {options.runs}: must be odd, so that there is a majority", hint="--runs 3")
    if options.timeout <= 0:
        raise UsageError(f"--timeout {options.timeout:g}: must be above 0", hint="--timeout 300")
    if options.good == options.bad:
        raise UsageError(f"the ends do not differ: both are {options.good}", hint="--good and --bad name two versions")
    _check_simulated(options)
    predicate = split_command(options.predicate, "--predicate") if options.predicate is not None else None
    case, script = options.case, None
    if case is not None and case.endswith(".py"):
        path = expanded(case).absolute()
        if fault := fault_of(path):
            raise UsageError(f"{case}: {fault}", hint="a script's path, or the id of a case of the device suite")
        case, predicate, script = None, ("python", str(path)), hashlib.sha256(read_bytes(path)).hexdigest()
    return BisectionRequest(
        case=case,
        predicate=predicate,
        builder=split_command(options.builder, "--builder") if options.builder is not None else None,
        recipe=options.recipe,
        good=options.good,
        bad=options.bad,
        index=options.index,
        python=options.python,
        repository=expanded(options.repo).absolute() if options.repo else None,
        device=options.device,
        allow_virtual=options.allow_virtual,
        seconds=options.timeout,
        runs=options.runs,
        where=os.getcwd(),  # noqa: PTH109 - the question's part, as text
        operator=options.op,
        trust=options.trust,
        script=script,
        simulated=options.system if options.simulated else None,
    )


def _check_simulated(options: Options) -> None:
    """Refuse what a macOS wheel on Linux cannot do.

    Raises:
        UsageError: which options those are.
    """
    if not options.simulated:
        if options.macos is not None:
            raise UsageError("--macos goes with --simulated: a Mac has its own", hint="add --simulated")
        return
    others = {
        "--repo": options.repo is not None,
        "--builder": options.builder is not None,
        "--index": options.index is not None,
        "--python": options.python is not None,
        f"--device {options.device}": options.device != "mps",
        "--allow-virtual": options.allow_virtual,
    }
    if wrong := [name for name, is_given in others.items() if is_given]:
        raise UsageError(
            f"{', '.join(wrong)} and --simulated exclude each other: it tests official macOS wheels, on Linux",
            hint="commits and builds of your own are for a Mac; pip's settings name the index (PIP_EXTRA_INDEX_URL)",
        )
    for end in (options.good, options.bad):
        if parse_version(end) is None:
            raise UsageError(
                f"{end!r} is not a version of torch: --simulated tests official macOS wheels alone",
                hint="two versions, such as --good 2.3.0 --bad 2.4.0",
            )
    from ..simulation.session import check_macos  # needs what only a simulation needs

    check_macos(options.system)


def _print(state: State, findings: tuple[report.Finding, ...], console: Console, folder: Path) -> None:
    console.print()
    if rehearsed := report.rehearsal(state):
        console.print(rehearsed)
    console.table(("tested", "verdict", "runs", "why"), report.rows(state))
    for each in findings:
        console.print()
        console.print(each.statement, style="bold")
        for suspect in each.suspects:
            console.print("  ".join(filter(None, (f"  {suspect.subject}", suspect.title, suspect.link))))
        if each.comparison:
            console.print(f"  all changes between: {each.comparison}")
        if each.stage.note:
            console.print(f"  {each.stage.note}")
        console.print(f"  {report.cost(state, each.stage)}")
    console.print(f"state and logs: {folder}")
