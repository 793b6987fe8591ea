"""`verify_mps --releases A..B --simulated`: which bug is in which release, by the official macOS wheels on Linux."""

from __future__ import annotations

import argparse
import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from mps_build.common.console import Console, as_called
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import OwnFault, UsageError
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
from mps_build.verify.releases.table import SLOW, Run, Table, make_table, selection_of

# What makes sense beside it; each other option is refused by its name.
_OPTIONS = frozenset(
    {
        *(
            "--releases",
            "--simulated",
            "--macos",
            "--only",
            "--quick",
            "--layer",
            "--cases",
            "--keys",
            "--seed",
            "--op",
        ),
        *("--case-timeout", "--jobs", "--suite", "--known-issues", "--record", "--trust", "--memory-limit"),
        *("--html", "--markdown", "--json"),
    }
)
# A release has some 400 cases, and what takes a GPU a second may take hours here.
_CASE_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line says of it.

    Attributes:
        given: the words of the command line. folder: where records go, None: a folder of its own.
        is_chosen: the user said what is run of the suite.
    """

    releases: str
    target: str | None
    given: tuple[str, ...]
    macos: str
    folder: Path | None
    known_issues: Path | None
    is_chosen: bool
    html: Path | None
    markdown: Path | None


def add_releases(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--releases",
        metavar="A..B",
        help="with --simulated: the known issues' cases over several official wheels (2.4.1,2.6.0..2.15.0): one table",
    )


def tabulate(wanted: Wanted, request: VerifyRequest, console: Console) -> Result:
    """Run the cases over each release, and print the table; an interrupted run goes on where it stopped.

    Raises:
        UsageError: options that do not go together, or no release. MpsBuildError: nothing can be run here now.
    """
    _check(wanted)
    from mps_build.verify.releases.sweep import Sweep, chosen  # needs what only a simulation needs

    path = wanted.known_issues or (request.suite or data_root() / "tests" / "device") / "known_issues.yaml"
    issues = load_issues(path)
    if not wanted.is_chosen:
        request = replace(request, only=selection_of(issues), skip=SLOW)
    if "--case-timeout" not in (word.partition("=")[0] for word in wanted.given):
        request = replace(request, case_seconds=_CASE_SECONDS)
    request = replace(request, any_release=True)
    releases = chosen(wanted.releases, _listed)
    question = {**request.selection(), "macos": wanted.macos}
    folder = (wanted.folder or work_folder() / "releases" / digest_of(question)[:12]).absolute()
    sweep = Sweep(request=request, releases=releases, macos=wanted.macos, folder=folder, console=console)
    sweep.check()
    kept = sweep.kept()
    console.print(sweep.estimate(kept), style="bold")
    runs = dict(kept)
    interrupted = False
    with Workspace(root=folder).held(), kept_awake():
        try:
            for run in sweep.run():
                runs[run.release] = run
                if run.cause:
                    console.warn(f"torch {run.release}: {run.cause}")
        except KeyboardInterrupt:
            interrupted = True
        every = [runs.get(at, Run(release=at, cause="was not reached")) for at in releases]
        table = make_table(issues, every, macos=wanted.macos)
        _write(table, wanted)
    _print(table, console)
    return _ended(table, folder, wanted, is_interrupted=interrupted)


def _check(wanted: Wanted) -> None:
    given = {word.partition("=")[0] for word in wanted.given if word.startswith("--")}
    if unfit := sorted(given - _OPTIONS):
        raise UsageError(f"{', '.join(unfit)} and --releases exclude each other", hint="leave one of them out")
    if wanted.target is not None:
        raise UsageError(
            f"{wanted.target}: --releases names the torch",
            hint=f"nox -s verify_mps -- --releases {wanted.releases} --simulated",
        )
    if "--simulated" not in given:
        raise UsageError(
            "--releases runs official macOS wheels on Linux: say so",
            hint=f"nox -s verify_mps -- --releases {wanted.releases} --simulated",
        )
    from mps_build.simulation.session import check_macos  # needs what only a simulation needs

    check_macos(wanted.macos)


def _listed() -> tuple[Version, ...]:
    """Return every release of the package index that has a macOS wheel for a Python that runs here."""
    from mps_build.verify.bisection.official import OfficialReleases
    from mps_build.verify.bisection.versions import Index

    index = Index(arguments=OfficialReleases.target, environ=fetch_environ(os.environ))
    return tuple(version for python in OfficialReleases.pythons for version in index.versions(python, nightlies=False))


def _command(wanted: Wanted) -> str:
    """Return the command that made a table, without where it writes."""
    words = list(wanted.given)
    for name in ("--html", "--markdown", "--json", "--record"):
        while name in words:
            del words[words.index(name) : words.index(name) + 2]
        words = [word for word in words if not word.startswith(f"{name}=")]
    return f"nox -s verify_mps -- {shlex.join(words)}"


def _write(table: Table, wanted: Wanted) -> None:
    text = page.markdown(table, command=_command(wanted))
    if wanted.markdown is not None:
        write_whole(wanted.markdown, text)
    if wanted.html is not None:
        write_whole(wanted.html, page.html(table, command=_command(wanted)))
    job_summary(text)


def _print(table: Table, console: Console) -> None:
    console.print()
    rows = [
        (
            row.id,
            row.title[:40],
            row.claimed or "",
            *page.ends(row),
            " ".join(page.mark(row.cells[at.release]) or "." for at in table.columns),
        )
        for row in page.rows_seen(table)
    ]
    if rows:
        console.table(("issue", "what", "claimed", "first bad", "first good", " ".join(page.heads(table))), rows)
    console.print(page.LEGEND)
    console.print(page.summary(table) or "nothing was seen", style="bold")


def _ended(table: Table, folder: Path, wanted: Wanted, *, is_interrupted: bool) -> Result:
    document: dict[str, Any] = {**table.document(), "folder": str(folder)}
    again = as_called(f"to go on: nox -s verify_mps -- {shlex.join(wanted.given)}")
    if is_interrupted:
        return Result(document=document, exit_code=exit_status(), cause="interrupted", hint=again)
    if failed := [each for each in table.columns if each.state == "not_run"]:
        names = ", ".join(each.release for each in failed)
        hint = f"{names}: not run here, and nothing follows about it: {failed[0].cause}"
        return Result(document=document, exit_code=OwnFault.exit_code, cause=OwnFault.cause, hint=hint)
    return Result(document=document)
