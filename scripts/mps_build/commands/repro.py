"""Write one failure of a record as a script of its own, and as an issue's text.

The script needs torch and the standard library only: it asks the device a few public calls, cut down to what still
fails, compares the answer with float64 on the CPU, and ends with 1 where it is wrong. Where the record's device is
here, it shows what still fails; else the script follows from the record.

RECORD may also be a document of verify_kernels (--json), and CASE the name of one of its kernels.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.console import Console
from ..common.environment import fetch_environ
from ..common.errors import UsageError
from ..common.files import write_whole
from ..common.json_text import load_json
from ..common.recipe.catalogue import data_root
from ..common.records.device_record import FAILED, Case, Record, Simulated, load_record
from ..common.records.kernels import is_kernels, load_kernels
from ..common.reporting import Result
from ..common.workspace import cache_folder
from ..kernels.report import repro as kernel_repro
from ..verify.reports.reduction import ReductionDevice, find_python, reduce_case
from ..verify.reports.repro import embed, render_issue, render_script, said_of
from ..verify.target.environments import EnvironmentStore
from .shared.options import add_inject

TASK = ("verify", 5)
DOCUMENT = "case:string script:string issue:string"
EXAMPLES = (
    "work/verify/20261121T194015-mps-25322/record.json issue-131750",
    "record.json issue-131750 --output repro.py --issue issue.md",
    "kernels.json remainder_dense_float_float",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    record: Path
    case: str
    output: Path | None
    issue: Path | None
    device: str | None = None
    inject: str | None = None
    python: Path | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("record", metavar="RECORD", type=Path, help="a record of verify_mps, or its folder")
    parser.add_argument("case", metavar="CASE", help="the id of the case")
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help="where to write the script (default: repro_<case>.py)"
    )
    parser.add_argument(
        "--issue",
        metavar="FILE",
        type=Path,
        help="where to write the issue's text (default: FILE.md beside the script)",
    )
    parser.add_argument(
        "--device", help="the device on which to find what still fails (default: the record's, if here)"
    )
    add_inject(parser, "a fault to hold around the work on the device")
    parser.add_argument(
        "--python", metavar="FILE", type=Path, help="a Python with torch (default: the record's, where we made it)"
    )


def run(options: Options, console: Console) -> Result:
    """Write the script and the issue's text.

    Raises:
        UsageError: the record has no such case.
    """
    path = options.record / "record.json" if options.record.is_dir() else options.record
    if is_kernels(load_json(path, hint="`verify_mps` and `verify_kernels --json` write what is read here")):
        return _kernel(load_kernels(path), options, console)
    record = load_record(path)
    case = _find(record, options.case)
    if case.file is None or case.is_event:
        raise UsageError(f"{case.id}: is an event of the run, not a case: it cannot be repeated", hint=case.reason)
    script_path, issue_path = _paths(options, case.id)
    suite = data_root() / "tests" / "device"
    with _device(record, options, console) as on:
        short = reduce_case(suite, record, case, on, said_of(record, case))
    if short.script is None and case.is_drawn:
        raise UsageError(
            f"{case.id}: {short.refused}", hint="--python names a Python with torch; --device asks another"
        )
    script = short.script or render_script(record, case, embed(suite, case.file, case.id))
    write_whole(script_path, script)
    issue = render_issue(record, case, script, script_path.name, facts=short.facts, why_long=short.refused)
    write_whole(issue_path, issue)
    console.table(("", ""), [("script", str(script_path)), ("issue's text", str(issue_path))])
    if short.script is None:
        console.warn(f"the script holds the suite's own frame: {short.refused}")
    elif not short.ran_on:
        console.warn("nothing was run on a device: the script follows from the record alone")
    if case.outcome in ("passed", "skipped"):
        console.warn(f"{case.id} {case.outcome} in this record: the script will not show a failure")
    console.print(f"next: {_command(record, script_path)}")
    lines = len(script.splitlines())
    document = {"case": case.id, "script": str(script_path), "issue": str(issue_path), "lines": lines}
    return Result(document={**document, "not_reduced": short.refused or None})


# A record is somebody's file: what the index or Debian has is fetched for it, no tree, wheel or program that it names.
_VERSION = re.compile(r"\d+(?:\.\d+)+")


def _simulated(record: Record) -> Simulated | None:
    """Return the simulated device of a record, if it is one that can be had anew in minutes."""
    simulated = record.simulated
    if simulated is None or simulated.source is not None or simulated.torch != "debian":
        return None
    is_plain = _VERSION.fullmatch(simulated.release) and re.fullmatch(r"\d+(?:\.\d+)*", simulated.macos)
    return simulated if is_plain else None


def _command(record: Record, script: Path) -> str:
    """Return what runs the script where the record's device is."""
    name = shlex.quote(str(script))
    if (simulated := _simulated(record)) is None:
        return f"python {name}"
    release = f"torch=={simulated.release}" if simulated.official else f"v{simulated.release}"
    return f"nox -s simulate -- {release} --macos {simulated.macos} -- python {name}"


@contextmanager
def _device(record: Record, options: Options, console: Console) -> Iterator[ReductionDevice]:
    """Yield where the case is reduced: on a simulated device where the record is of one, and no other is named."""
    python = find_python(record, options.python, cache_folder(), os.environ)
    simulated = _simulated(record)
    if simulated is None or python is not None or options.device is not None:
        yield ReductionDevice(python=python, device=options.device, fault=options.inject)
        return
    from ..verify.simulated_suites import simulated_python  # needs what only a simulation needs

    store = EnvironmentStore(
        cache=cache_folder() / "verify",
        environ={**fetch_environ(os.environ), "PYTHONDONTWRITEBYTECODE": "1"},
        log=cache_folder() / "logs" / "repro.log",
        reporter=console,
    )
    with simulated_python(simulated, store) as target:
        yield ReductionDevice(
            python=target.interpreter.executable, fault=options.inject, variables=target.environ.variables
        )


def _paths(options: Options, name: str) -> tuple[Path, Path]:
    stem = f"repro_{re.sub(r'[^A-Za-z0-9]+', '_', name)}"
    script = options.output or Path(f"{stem}.py")
    return script, options.issue or script.with_name(f"{script.name.removesuffix('.py')}.md")


def _kernel(document: dict[str, Any], options: Options, console: Console) -> Result:
    row = kernel_repro.find_row(document, options.case)
    script_path, issue_path = _paths(options, row["name"])
    script = kernel_repro.render_script(document, row)
    write_whole(script_path, script)
    write_whole(issue_path, kernel_repro.render_issue(document, row, script, script_path.name))
    console.table(("", ""), [("script", str(script_path)), ("issue's text", str(issue_path))])
    if row["outcome"] in ("passed", "skipped", "not_bound"):
        console.warn(f"{row['name']} {row['outcome'].replace('_', ' ')} in this record: there is nothing wrong to show")
    console.print(f"next: python {script_path}")
    return Result(document={"case": row["name"], "script": str(script_path), "issue": str(issue_path)})


def _find(record: Record, case_id: str) -> Case:
    found = next((case for case in record.cases if case.id == case_id), None)
    if found is not None:
        return found
    near = difflib.get_close_matches(case_id, [case.id for case in record.cases], n=3)
    bad = [case.id for case in record.cases if case.outcome in (*FAILED, "known")][:5]
    hint = f"perhaps {', '.join(near)}" if near else f"what failed in it: {', '.join(bad) or 'nothing'}"
    raise UsageError(f"the record has no case {case_id}", hint=hint)
