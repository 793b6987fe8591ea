"""What every verification of a torch shares: which one, on which device, where the record goes, and how it ends."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.console import Console, human_seconds
from mps_build.common.errors import KnownIssuesOnly, MpsBuildError, UsageError
from mps_build.common.files import write_whole
from mps_build.common.records.device_record import Case, Record, Simulated, to_json
from mps_build.common.reporting import Result, job_summary
from mps_build.verify import Verification
from mps_build.verify.reports import html, junit, markdown
from mps_build.verify.reports.words import explanation_words, found_in, further_cause, one_line, torch_words
from mps_build.verify.target.interpreter import callers_python

from .options import add_accept, add_inject, add_junit, add_offline, add_trust, amount
from .wheels import add_nightly_options, chosen_nightly


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchOptions:
    """Which torch is tested, on which device, how it is run, and where the record goes."""

    target: str | None
    nightly: bool
    index: str | None
    python: str | None
    device: str
    inject: str | None
    memory_limit: float | None
    host: Path | None
    record: Path | None
    offline: bool
    trust: bool
    html: Path | None
    given: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictOptions(TorchOptions):
    """What bears on a verdict of cases, and its other reports."""

    accept: str | None
    allow_virtual: bool
    known_issues: Path | None
    junit: Path | None
    markdown: Path | None


def add_torch_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which torch is tested, on which device."""
    parser.add_argument(
        "target",
        nargs="?",
        metavar="WHEEL_OR_REQUIREMENT",
        help="a .whl file, or torch==2.15.0 (default: the torch of your own environment)",
    )
    add_nightly_options(parser)
    parser.add_argument(
        "--python", metavar="PATH", help="the interpreter under test (with a wheel, a version such as 3.12 will do)"
    )
    parser.add_argument(
        "--device",
        choices=("mps", "cuda", "cpu"),
        default="mps",
        help="the device (default: mps; cpu and cuda only rehearse)",
    )


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add how it is run, and where the record goes."""
    add_inject(parser, "hold a fault around device operations, to see it noticed (docs/verify/injected_faults.md)")
    parser.add_argument("--memory-limit", metavar="GB", type=amount, help="memory limit of the process under test")
    parser.add_argument("--host", metavar="FILE", type=Path, help="check a recorded host instead of this one")
    parser.add_argument("--record", metavar="DIR", type=Path, help="folder for the record and the logs")
    add_offline(parser)
    add_trust(parser)
    parser.add_argument("--html", metavar="FILE", type=Path, help="also write a self-contained HTML page")


def add_verdict_options(parser: argparse.ArgumentParser) -> None:
    """Add what bears on a verdict of cases, and its other reports."""
    add_accept(parser)
    parser.add_argument("--allow-virtual", action="store_true", help="also run on a virtual Mac (without a verdict)")
    parser.add_argument(
        "--known-issues", metavar="FILE", type=Path, help="use this file instead of the suite's known_issues.yaml"
    )
    add_junit(parser)
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="also write a summary as Markdown")


def torch_fields(options: TorchOptions, *, simulated: Simulated | None = None) -> dict[str, Any]:
    """Return the fields of a `VerifyRequest` that the first two groups give.

    Args:
        simulated: a device that brings its own Python and torch.

    Raises:
        UsageError: no torch is named and the caller's own Python has none, or a limit is not above 0.
    """
    python, target = options.python, options.target if simulated is None else None
    if options.nightly or options.index:
        target = chosen_nightly(
            target, nightly=options.nightly, index=options.index, pythons=(_version(python),), platform=None
        )[0]
    if target is None and python is None and options.host is None and simulated is None:
        python = str(callers_python(os.environ))
    memory: float | None = options.memory_limit
    if memory is not None and memory <= 0:
        raise UsageError("--memory-limit takes a number above 0")
    return {
        "target": target,
        "python": python,
        "device": options.device,
        "fault": options.inject,
        "memory_bytes": int(memory * 1_000_000_000) if memory is not None else None,
        "host_file": options.host,
        "folder": options.record,
        "offline": options.offline,
        "trust": options.trust,
        "simulated": simulated,
    }


def _version(python: str | None) -> str:
    """Return the Python for which a nightly is wanted: the one named by version, else ours."""
    if python is not None and not re.fullmatch(r"3\.\d+t?", python):
        raise UsageError(
            f"--python {python}: a nightly goes into an environment of its own", hint="name a version: --python 3.12"
        )
    return python or f"{sys.version_info[0]}.{sys.version_info[1]}"


def verdict_fields(options: VerdictOptions) -> dict[str, Any]:
    """Return the fields of a `VerifyRequest` that the last group gives."""
    return {
        "accept_known": options.accept == "known",
        "allow_virtual": options.allow_virtual,
        "known_issues": options.known_issues,
    }


def words(text: str) -> tuple[str, ...]:
    """Return the words of a list such as `resnet50,bert`."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


_SHOWN = 20


def concluded(
    verification: Verification, options: VerdictOptions, console: Console, *, command: str, resumes: bool = True
) -> Result:
    """Run it to a record, however it ends; write the reports that were requested, and print the end."""
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
    """Write every report that was requested, and GitHub's job summary where there is one."""
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
    if record.fault:
        rows.insert(1, ("injected fault", record.fault))
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
