"""The end of a verification: its record however it ends, the reports, and what a person reads last."""

from __future__ import annotations

import shlex
from pathlib import Path

from mps_build.common.console import Console, human_seconds
from mps_build.common.errors import KnownIssuesOnly, MpsBuildError
from mps_build.common.files import write_whole
from mps_build.common.records.device_record import Case, Record, to_json
from mps_build.common.result import Result
from mps_build.common.summary import job_summary
from mps_build.verify import Verification
from mps_build.verify.reports import html, junit, markdown
from mps_build.verify.reports.words import explanation_words, found_in, further_cause, one_line, torch_words

from .torch_options import VerdictOptions

_SHOWN = 20


def concluded(
    verification: Verification, options: VerdictOptions, console: Console, *, command: str, resumes: bool = True
) -> Result:
    """Run it to a record, however it ends; write the reports that were asked for, and tell the end."""
    try:
        record = verification.run()
    except KeyboardInterrupt:
        given = list(options.given)
        if resumes and verification.suite_run.cases and "--resume" not in given:
            given += ["--resume", str(verification.folder)]
        hint = f"to go on: nox -s {command} -- {shlex.join(given)}"
        record = verification.interrupted_record().model_copy(update={"hint": hint})
    except MpsBuildError:
        if verification.refusal is not None:
            write_reports(options, verification.refusal)
            console.print(f"record   {verification.folder / 'record.json'}")
        raise
    write_reports(options, record)
    print_end(record, verification.folder / "record.json", console)
    return Result(document=to_json(record), exit_code=record.exit_code, cause=record.cause, hint=record.hint)


def write_reports(options: VerdictOptions, record: Record) -> None:
    """Write every report that was asked for, and GitHub's job summary where there is one."""
    for path, render in (
        (options.junit, junit.render),
        (options.html, html.render),
        (options.markdown, markdown.render),
    ):
        if path is not None:
            write_whole(path, render(record))
    job_summary(markdown.render(record))


def print_end(record: Record, path: Path, console: Console) -> None:
    """Print what a run shows: the statement, the failed cases, the known issues, the verdict, and what to do next."""
    console.print()
    console.print(record.statement, style="bold")
    new = [case for case in record.cases if case.is_new]
    known = [case for case in record.cases if case.outcome == "known"]
    for title, cases in (("New findings", new), ("Known issues", known)):
        if found := found_in(record, cases):
            lines = [
                [one.id, one.words, ", ".join(one.first.issue), _outcome(one.first), _short(one.first)]
                for one in found[:_SHOWN]
            ]
            if len(found) > _SHOWN:
                lines.append([f"and {len(found) - _SHOWN} more", "", "", "", ""])
            console.table(("finding", "found by", "issue", "outcome", "what"), lines, title=title)
    unexpected = [case.id for case in record.cases if case.outcome == "unexpected_pass"]
    if unexpected:
        console.print(f"passed, although listed as a known issue: {', '.join(unexpected[:_SHOWN])}")
    counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(record.counts.items())) or "no case ran"
    partial = " (partial)" if record.partial else ""
    rows = [
        ("verdict", f"{record.verdict}{partial}{f': {why}' if (why := further_cause(record)) else ''}"),
        ("torch", torch_words(record)),
        ("cases", counts),
        ("time", human_seconds(record.seconds)),
        ("record", str(path)),
    ]
    if record.plant:
        rows.insert(1, ("plant", record.plant))
    if words := explanation_words(record):
        rows.insert(-2, ("failures", words))
    console.table(("", ""), rows)
    if record.message and record.cause != "interrupted":  # that stands behind the verdict already
        console.print(record.message, style="bold red")
    for note in record.notes:
        console.warn(note)
    if record.hint:
        console.print(record.hint if record.cause == "interrupted" else f"next: {record.hint}")
    elif record.exit_code != KnownIssuesOnly.exit_code:
        console.print(f"next: `nox -s compare -- OLDER_RECORD {path}` shows what changed since another run")
    if record.cause != "interrupted":
        console.print(one_line(record), style="bold")


def _outcome(case: Case) -> str:
    return f"{case.outcome}: {case.known_issue}" if case.known_issue else case.outcome


def _short(case: Case) -> str:
    return " ".join((case.reason or "").split())[:120]
