"""`verify_mps` over several official wheels on Linux: which bug is in which release, and what is new in one."""

from __future__ import annotations

import argparse
import os
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from mps_build import __version__
from mps_build.common.console import Console
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import OwnFault, Regressed, UsageError
from mps_build.common.files import write_whole
from mps_build.common.known_issues import load_issues
from mps_build.common.process import kept_awake
from mps_build.common.receipts import digest_of
from mps_build.common.recipe.catalogue import data_root
from mps_build.common.reporting import Result, job_summary
from mps_build.common.stopping import exit_status
from mps_build.common.workspace import Workspace, work_folder
from mps_build.verify import VerifyRequest
from mps_build.verify.releases import page
from mps_build.verify.releases.table import SLOW, Run, Table, judged_cases, make_table, selection_of

if TYPE_CHECKING:
    from mps_build.verify.releases.news import News  # needs what only a simulation needs

# What makes sense beside --releases or --against; each other option is refused by its name.
_OPTIONS = frozenset(
    {
        *("--simulated", "--macos", "--only", "--quick", "--layer", "--cases", "--keys", "--seed", "--op", "--suite"),
        *("--case-timeout", "--jobs", "--known-issues", "--record", "--trust", "--memory-limit"),
        *("--html", "--markdown", "--json"),
    }
)
_WRITES = ("--html", "--markdown", "--json", "--record")
# What takes a GPU a second may take hours here.
_CASE_SECONDS = 20.0
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line says of it; one of `releases` and `against` is given.

    Attributes:
        release: the version of `torch==VERSION`, beside `against`.
        given: the words of the command line.
        folder: where records go, None: a folder of its own.
        is_chosen: the user said what is run of the suite.
    """

    releases: str | None
    against: str | None
    release: str | None
    given: tuple[str, ...]
    macos: str
    folder: Path | None
    known_issues: Path | None
    is_chosen: bool
    html: Path | None
    markdown: Path | None

    @property
    def command(self) -> str:
        """The command of this run."""
        return f"nox -s verify_mps -- {shlex.join(self.given)}"

    @property
    def published(self) -> str:
        """The command without where it writes."""
        words: list[str] = []
        for word, before in zip(self.given, ("", *self.given), strict=False):
            if word.partition("=")[0] not in _WRITES and before not in _WRITES:
                words.append(word)
        return f"nox -s verify_mps -- {shlex.join(words)}"


def add_releases(parser: argparse.ArgumentParser) -> None:
    """Add both options."""
    parser.add_argument(
        "--releases",
        metavar="A..B",
        help="with --simulated: the known issues' cases over several official wheels (2.4.1,2.6.0..2.15.0): one table",
    )
    parser.add_argument(
        "--against", metavar="OLDER", help="with --simulated: what is new in torch==VERSION beside an older release"
    )


def tabulate(wanted: Wanted, request: VerifyRequest, console: Console) -> Result:
    """Run the cases over each release, and print the table; an interrupted run goes on where it stopped.

    Raises:
        UsageError: no release. MpsBuildError: nothing can be run here now.
    """
    from mps_build.verify.releases.sweep import chosen

    issues = load_issues(_table_of(wanted, request))
    if not wanted.is_chosen:
        request = replace(request, only=selection_of(issues), skip=SLOW)
    several = _run(wanted, request, chosen(wanted.releases or "", _listed), console)
    table = make_table(issues, several.runs, macos=wanted.macos)
    _write(wanted, page.markdown(table, command=wanted.published), page.html(table, command=wanted.published))
    _print_table(table, console)
    document = {**table.document(), "folder": str(several.folder)}
    if several.is_interrupted:
        return _interrupted(wanted, document)
    if failed := _of_ours(several.runs, document):
        return failed
    return Result(document=document) if any(map(judged_cases, several.runs)) else _unverified(document)


def compare_with_older(wanted: Wanted, request: VerifyRequest, console: Console) -> Result:
    """Run the cases over both releases, read both wheels, and print what is new.

    Raises:
        UsageError: not one older release. MpsBuildError: nothing can be run here now.
    """
    from mps_build.kernels.code.compiler import require_llvm
    from mps_build.verify.releases.sweep import chosen

    require_llvm()
    older, newer = (chosen(text or "", _listed) for text in (wanted.against, wanted.release))
    if len(older) != 1 or older == newer:
        raise UsageError(
            f"--against {wanted.against}: takes one release, another than {newer[0]}", hint="--against 2.15.0"
        )
    if not wanted.is_chosen:
        request = replace(request, quick=True)
    several = _run(wanted, request, (*older, *newer), console)
    document: dict[str, Any] = {"folder": str(several.folder)}
    if several.is_interrupted:
        return _interrupted(wanted, document)
    if failed := _of_ours(several.runs, document):
        return failed
    if not set.intersection(*map(judged_cases, several.runs)):
        return _unverified(document)
    news = _news(several.runs, wanted, request, console)
    from mps_build.verify.releases import news as pages

    _write(wanted, pages.markdown(news, command=wanted.published), pages.html(news, command=wanted.published))
    for title, columns, rows in news.parts():
        more = [(f"and {len(rows) - _SHOWN} more", *[""] * (len(columns) - 1))] if len(rows) > _SHOWN else []
        console.table(columns, [*rows[:_SHOWN], *more], title=title)
        console.print()
    console.print(news.summary, style="bold")
    document |= news.document()
    if not news.newly_wrong:
        return Result(document=document)
    hint = f"newly wrong: {', '.join(change.id for change in news.newly_wrong[:3])}"
    return Result(document=document, exit_code=Regressed.exit_code, cause=Regressed.cause, hint=hint)


def check_options(wanted: Wanted) -> None:
    """Refuse what makes no sense together, before anything is fetched.

    Raises:
        UsageError: naming it.
    """
    option = "--releases" if wanted.against is None else "--against"
    given = {word.partition("=")[0] for word in wanted.given if word.startswith("--")}
    if unfit := sorted(given - _OPTIONS - {option}):
        raise UsageError(f"{', '.join(unfit)} and {option} exclude each other", hint="leave one of them out")
    if option == "--releases" and wanted.release is not None:
        raise UsageError(f"torch {wanted.release} and --releases, which names the torch", hint="leave one of them out")
    if "--simulated" not in given:
        raise UsageError(f"{option} runs official macOS wheels on Linux", hint="say so: --simulated")
    from mps_build.simulation.session import check_macos  # needs what only a simulation needs

    check_macos(wanted.macos)


def _table_of(wanted: Wanted, request: VerifyRequest) -> Path:
    return wanted.known_issues or (request.suite or data_root() / "tests" / "device") / "known_issues.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Several:
    """What several releases came to."""

    folder: Path
    runs: tuple[Run, ...] = field(default=())
    is_interrupted: bool = False


def _run(wanted: Wanted, request: VerifyRequest, releases: tuple[str, ...], console: Console) -> _Several:
    from mps_build.verify.releases.sweep import Sweep

    if "--case-timeout" not in (word.partition("=")[0] for word in wanted.given):
        request = replace(request, case_seconds=_CASE_SECONDS)
    request = replace(request, any_release=True)
    question = {**request.selection(), "only": sorted(request.only), "macos": wanted.macos, "suite": __version__}
    # Other cases, or another macOS, are another folder: no record of an hour is written over.
    folder = ((wanted.folder or work_folder() / "releases") / digest_of(question)[:12]).absolute()
    sweep = Sweep(request=request, releases=releases, macos=wanted.macos, folder=folder, console=console)
    sweep.check()
    runs = sweep.kept()
    console.print(sweep.estimate(runs), style="bold")
    is_interrupted = False
    with Workspace(root=folder).held(), kept_awake():
        try:
            for run in sweep.run():
                runs[run.release] = run
                if run.cause:
                    console.warn(f"torch {run.release}: {run.cause}")
        except KeyboardInterrupt:
            is_interrupted = True
    every = (runs.get(at, Run(release=at, cause="was not reached")) for at in releases)
    return _Several(folder=folder, runs=tuple(every), is_interrupted=is_interrupted)


def _news(runs: tuple[Run, ...], wanted: Wanted, request: VerifyRequest, console: Console) -> News:
    """Return what is new in the second release; both were run, so that both wheels are in the cache."""
    from mps_build.inspection.coverage.rules import compare
    from mps_build.inspection.coverage.wheel import facts_of_wheel, read_compiled
    from mps_build.kernels.read.wheel import read_libraries
    from mps_build.kernels.report.difference import compare_kernels
    from mps_build.simulation.official import session
    from mps_build.simulation.official.metal_build import lacking_in
    from mps_build.verify.releases.news import news_of

    ready = [
        session.prepare(session.Request(target=f"torch=={run.release}", is_trusted=request.trust), console)
        for run in runs
    ]
    wheels = [each.wheel.path for each in ready]
    before, after = map(read_libraries, wheels)
    facts = [facts_of_wheel(wheel, read_compiled(wheel, console)) for wheel in wheels]
    older, newer = (run.record for run in runs)
    assert older is not None and newer is not None
    return news_of(
        older,
        newer,
        registrations=compare(*facts),
        kernels=compare_kernels(before, after, console),
        lacking=lacking_in(ready[1].metal, ready[1].site),
    )


def _listed() -> tuple[Version, ...]:
    """Return every release of the package index that has a macOS wheel for a Python that runs here."""
    from mps_build.verify.bisection.official import OfficialReleases
    from mps_build.verify.bisection.versions import Index

    index = Index(arguments=OfficialReleases.target, environ=fetch_environ(os.environ))
    return tuple(version for python in OfficialReleases.pythons for version in index.versions(python, nightlies=False))


def _write(wanted: Wanted, markdown: str, html: str) -> None:
    for path, text in ((wanted.markdown, markdown), (wanted.html, html)):
        if path is not None:
            write_whole(path, text)
    job_summary(markdown)


def _print_table(table: Table, console: Console) -> None:
    console.print()
    rows = [
        (row.id, row.title, row.claimed or "", page.wrong_in(row) + " !" * (row.status == "differs"))
        for row in page.rows_seen(table)
    ]
    if rows:
        console.table(("issue", "what", "claimed", "wrong in"), rows)
    console.print(
        "!: right, or wrong, where known_issues.yaml claims something else; --html and --markdown show each release"
    )
    console.print(page.summary(table) or "nothing was seen", style="bold")


def _interrupted(wanted: Wanted, document: dict[str, Any]) -> Result:
    hint = f"to go on: {wanted.command}"
    return Result(document=document, exit_code=exit_status(), cause="interrupted", hint=hint)


def _of_ours(runs: tuple[Run, ...], document: dict[str, Any]) -> Result | None:
    """Return the end of a run in which a release did not come up here, or stopped; None where each ran to its end."""
    failed = [run for run in runs if run.record is None or run.record.partial]
    if not failed:
        return None
    names = ", ".join(run.release for run in failed)
    first = failed[0]
    cause = first.cause if first.record is None else first.record.message or "the suite stopped before its end"
    hint = f"{names}: not run here to the end, and nothing follows about the rest: {cause}"
    return Result(document=document, exit_code=OwnFault.exit_code, cause=OwnFault.cause, hint=hint)


def _unverified(document: dict[str, Any]) -> Result:
    hint = "nothing was verified: each case was skipped in these releases; choose others with --only, --op or --layer"
    return Result(document=document, exit_code=UsageError.exit_code, cause=UsageError.cause, hint=hint)
