"""Ask a torch whether MPS on this Mac gives right answers: a suite in child processes, then one verdict.

WHEEL_OR_REQUIREMENT is a wheel's path or a requirement (torch==2.13.0): it gets a venv of its own, kept
for the next time. --python PATH alone is an interpreter that has a torch already: nothing is installed
into it. With both, --python chooses the Python of the venv.

`--device cpu` rehearses the suite on the CPU and `--device cuda` on another accelerator; neither says
anything about MPS.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mps_build.common.console import Console, human_seconds
from mps_build.common.errors import KnownIssuesOnly, MpsBuildError, UsageError
from mps_build.common.records.verification import Case, Record, to_json
from mps_build.common.result import Result
from mps_build.verify import Verification, VerifyRequest
from mps_build.verify.options import (
    add_run_options,
    add_torch_options,
    add_verdict_options,
    torch_fields,
    verdict_fields,
    words,
)
from mps_build.verify.reports import html, junit, markdown

EXAMPLES = (
    "torch==2.13.0",
    "wheelhouse/torch-2.6.0-cp311-cp311-macosx_11_0_arm64.whl --full --html report.html",
    "--python ~/venv/bin/python",
    "--python ~/venv/bin/python --device cpu --only issue-131750",
    "--python ~/venv/bin/python --device cpu --plant fault.py:rounded",
)
_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_torch_options(parser)
    parser.add_argument("--full", action="store_true", help="also what needs much memory or minutes")
    parser.add_argument("--only", metavar="ID[,ID]", default="", help="only these cases (ids or shell patterns)")
    parser.add_argument("--layer", metavar="NAME[,NAME]", default="", help="only these layers of the suite")
    parser.add_argument("--op", metavar="NAME", help="only cases that dispatch this operator (aten.add.Tensor)")
    parser.add_argument("--case-timeout", metavar="SECONDS", type=float, default=120.0, help="least time of a case")
    parser.add_argument(
        "--suite", metavar="DIR", type=Path, help="another suite of the form that tests/device/README.md tells"
    )
    parser.add_argument("--resume", metavar="DIR", type=Path, help="go on with an interrupted run: its record's folder")
    add_run_options(parser)
    add_verdict_options(parser)


def run(arguments: argparse.Namespace, console: Console) -> Result:
    return concluded(Verification(_request(arguments), console), arguments, console, verb="verify_mps")


def concluded(
    verification: Verification, arguments: argparse.Namespace, console: Console, *, verb: str, resumes: bool = True
) -> Result:
    """Run it to a record, however it ends; write the reports that were asked for, and tell the end."""
    with terminated_as_interrupted():
        try:
            record = verification.run()
        except KeyboardInterrupt:
            given = list(getattr(arguments, "given", ()))
            if resumes and verification.suite_run.cases and "--resume" not in given:
                given += ["--resume", str(verification.folder)]
            hint = f"to go on: nox -s {verb} -- {shlex.join(given)}"
            record = verification.interrupted_record().model_copy(update={"hint": hint})
            console.print(f"interrupted: {hint}", style="bold")
        except MpsBuildError:
            if verification.refusal is not None:
                write_reports(arguments, verification.refusal)
                console.print(f"record   {verification.folder / 'record.json'}")
            raise
    write_reports(arguments, record)
    print_end(record, verification.folder / "record.json", console)
    return Result(document=to_json(record), exit_code=record.exit_code, cause=record.cause, hint=record.hint)


def write_reports(arguments: argparse.Namespace, record: Record) -> None:
    """Write every report that was asked for, and GitHub's job summary where there is one."""
    for path, render in (
        (arguments.junit, junit.render),
        (arguments.html, html.render),
        (arguments.markdown, markdown.render),
    ):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(render(record), encoding="utf-8")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(markdown.render(record))


def _request(arguments: argparse.Namespace) -> VerifyRequest:
    if arguments.case_timeout <= 0:
        raise UsageError("--case-timeout takes a number above 0")
    fields = {**torch_fields(arguments, "verify_mps"), **verdict_fields(arguments)}
    if arguments.resume is not None:
        fields["folder"] = arguments.resume
    return VerifyRequest(
        **fields,
        full=arguments.full,
        only=words(arguments.only),
        layers=words(arguments.layer),
        op=arguments.op,
        case_seconds=arguments.case_timeout,
        resume=arguments.resume is not None,
        suite=arguments.suite.absolute() if arguments.suite else None,
    )


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does: children killed, the partial record written."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def print_end(record: Record, path: Path, console: Console) -> None:
    console.print()
    console.print(record.statement, style="bold")
    new = [case for case in record.cases if case.outcome in ("failed", "crashed", "timeout")]
    known = [case for case in record.cases if case.outcome == "known"]
    for title, cases in (("New failures", new), ("Known issues", known)):
        if cases:
            lines = [[case.id, ", ".join(case.issue), case.outcome, _short(case)] for case in cases[:_SHOWN]]
            if len(cases) > _SHOWN:
                lines.append([f"and {len(cases) - _SHOWN} more", "", "", ""])
            console.table(("case", "issue", "outcome", "what"), lines, title=title)
    unexpected = [case.id for case in record.cases if case.outcome == "unexpected_pass"]
    if unexpected:
        console.print(f"passed though a known issue says otherwise: {', '.join(unexpected[:_SHOWN])}")
    counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(record.counts.items())) or "no case ran"
    rows = [
        (
            "verdict",
            f"{record.verdict}{' (partial)' if record.partial else ''}{f': {record.cause}' if record.cause else ''}",
        ),
        ("torch", f"{record.torch.version or 'unknown'} at {(record.torch.commit or 'an unknown commit')[:12]}"),
        ("cases", counts),
        ("time", human_seconds(record.seconds)),
        ("record", str(path)),
    ]
    if record.plant:
        rows.insert(1, ("plant", record.plant))
    console.table(("", ""), rows)
    if record.message:
        console.print(record.message, style="bold red")
    for note in record.notes:
        console.warn(note)
    if record.hint:
        console.print(f"next: {record.hint}")
    elif record.exit_code != KnownIssuesOnly.exit_code:
        console.print(f"next: `nox -s compare -- OLDER_RECORD {path}` shows what changed since another run")


def _short(case: Case) -> str:
    return " ".join((case.reason or "").split())[:120]
