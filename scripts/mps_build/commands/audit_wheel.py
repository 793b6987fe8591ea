"""Check what a wheel, a requirement or an installed torch contains.

It works on any system, and runs nothing of the wheel.

WHEEL is a file, or a requirement such as torch==2.15.0, fetched for macOS arm64 and the newest
Python that has it. Files are held to the strict profile, what we ship and what official wheels have
kept since 2.12; fetched ones to the official profile, where the known defects of old official
wheels are warnings, and any other is an error. Other wheels are held to the rules that any Mac
wheel must keep. `--python PATH` without a WHEEL reads the torch that an interpreter has, which is
only used to find it. The exit status is 0 if the wheel is accepted, 9 if it is rejected.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass
from pathlib import Path

from ..common.console import Console
from ..common.errors import AuditRejected, UsageError
from ..common.files import write_whole
from ..common.reporting import Result
from ..inspection.audit import Audit, Expectation, audit_installed, audit_wheel
from ..inspection.audit.model import PROFILES, Profile
from ..inspection.audit.render import as_junit, as_sarif, fact_rows, finding_lines, verdict_line
from .shared.options import add_findings
from .shared.wheels import add_nightly_options, chosen_nightly, find_installed, find_wheel

TASK = ("inspection", 1)
FIRST = ("--profile", "--python", "--quick", "--junit", "--sarif")
EXITS = (9,)
DOCUMENT = "profile:string quick:boolean kind:string verdict:string findings:array facts:object"
EXAMPLES = (
    "wheelhouse/torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl",
    "torch==2.15.0",
    "torch==2.6.0 --python 3.12 --profile strict",
    "--python ~/venv/bin/python",
    "--quick --json audit.json torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    wheel: str | None
    profile: Profile | None
    quick: bool
    python: str | None
    nightly: bool
    index: str | None
    commit: str | None
    allow_jit_shaders: bool
    without_metal4: bool
    junit: Path | None
    sarif: Path | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("wheel", metavar="WHEEL", nargs="?", help="a .whl file, or a requirement such as torch==2.15.0")
    parser.add_argument("--profile", choices=PROFILES, help="default: strict for a file, official for a requirement")
    parser.add_argument("--quick", action="store_true", help="check names and headers only (under a second)")
    parser.add_argument(
        "--python",
        metavar="X.Y|PATH",
        help="the Python version of a requirement (default: the newest), or an interpreter with torch installed",
    )
    add_nightly_options(parser)
    parser.add_argument("--commit", metavar="SHA", help="the commit that the wheel must be built from")
    parser.add_argument(
        "--allow-jit-shaders", action="store_true", help="allow Metal kernels that are compiled at first use"
    )
    parser.add_argument("--without-metal4", action="store_true", help="allow a wheel without the Metal 4 kernels")
    add_findings(parser)


def run(options: Options, console: Console) -> Result:
    """Audit the wheel and print its findings; the exit status is 9 if it is rejected."""
    audit = _audit(options, console)
    print_audit(audit, console)
    if options.junit is not None:
        write_whole(options.junit, as_junit(audit))
    if options.sarif is not None:
        write_whole(options.sarif, as_sarif(audit, exit_code=0 if audit.verdict == "accepted" else 9))
    if audit.verdict == "accepted":
        return Result(document=audit.document())
    return Result(
        document=audit.document(),
        exit_code=AuditRejected.exit_code,
        cause=AuditRejected.cause,
        hint="each finding above says what is wrong and why; warnings alone do not reject a wheel",
    )


def _audit(options: Options, console: Console) -> Audit:
    expectation = _expectation(options)
    if options.nightly or options.index:
        return _audit_nightly(options, expectation, console)
    if options.wheel is None:
        if options.python is None:
            raise UsageError("no WHEEL", hint="give a .whl file, or a requirement such as torch==2.15.0")
        root, info = find_installed(options.python)
        return audit_installed(
            root,
            info,
            profile=options.profile or "official",
            expectation=expectation,
            quick=options.quick,
            reporter=console,
        )
    path, is_fetched = find_wheel(options.wheel, options.python, console)
    return audit_wheel(
        path,
        profile=options.profile or ("official" if is_fetched else "strict"),
        expectation=expectation,
        quick=options.quick,
        reporter=console,
    )


def _audit_nightly(options: Options, expectation: Expectation | None, console: Console) -> Audit:
    from ..common.wheels.download import MACOS_PLATFORM, PYTHONS

    pythons = (options.python,) if options.python else PYTHONS
    requirement, python = chosen_nightly(
        options.wheel, nightly=options.nightly, index=options.index, pythons=pythons, platform=MACOS_PLATFORM
    )
    console.print(f"nightly: {requirement} for Python {python}")
    path, _ = find_wheel(requirement, python, console)
    profile = options.profile or "official"
    return audit_wheel(path, profile=profile, expectation=expectation, quick=options.quick, reporter=console)


def print_audit(audit: Audit, console: Console) -> None:
    """Print facts, findings and, last, the verdict."""
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    title, *rows = fact_rows(audit.facts_document)
    console.table(title, rows)
    console.print()
    for text, style in finding_lines(audit.findings, width=width):
        console.print(text, style=style)
    if audit.findings:
        console.print()
    text, style = verdict_line(audit)
    console.print(text, style=style)


def _expectation(options: Options) -> Expectation | None:
    if not (options.commit or options.allow_jit_shaders or options.without_metal4):
        return None
    commit = options.commit
    if commit is not None and (len(commit) != 40 or set(commit) - set("0123456789abcdef")):
        raise UsageError(
            f"--commit {commit}: is not a full commit",
            hint="give all 40 digits: a short hash may match several commits",
        )
    return Expectation(
        commit=commit, allow_jit_shaders=options.allow_jit_shaders, without_metal4=options.without_metal4
    )
