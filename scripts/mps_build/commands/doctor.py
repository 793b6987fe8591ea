"""Check this host, or a recorded one, against one recipe or all.

It says what was found, what is required, and how to fix it.

Without a recipe it asks for the newest release. --record writes what this host answered to a
file, without names, serial numbers or addresses; --host replays such a file on any system.
Ends with 0 when nothing prevents a build, with 3 when something does: every reason at once.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.console import Console
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import UsageError
from mps_build.common.files import write_whole
from mps_build.common.interpreters import search_interpreter
from mps_build.common.recipe.catalogue import all_recipes, build_python, find_recipe, newest_stable
from mps_build.common.recipe.model import Recipe
from mps_build.common.reporting import Result
from mps_build.host.host import Host, observe
from mps_build.host.probes.probers import LiveProber, Prober, RecordedProber, RecordingProber, recorded
from mps_build.host.requirements.findings import Finding, level_style, lines_of
from mps_build.host.requirements.inspect import Buildability, blockers, buildability_of, inspect, unlocked_by, warnings
from mps_build.host.requirements.tools import build_python_findings
from mps_build.host.requirements.way import way_to_build

TASK = ("host", 1)
EXITS = (3,)
DOCUMENT = (
    "probes:array host:object recorded_on:string|null ?blockers:array ?warnings:array ?findings:array "
    "?recipe:string ?way:array ?recipes:array ?unlocked_by:object"
)
EXAMPLES = ("", "v2.6.0", "--all", "--record mac.json", "v2.9.1 --host mac.json")

_HERE = (
    ("audit_wheel -- torch==2.15.0", "audit any macOS wheel"),
    ("triage -- LOG", "find the known cause of a failed build"),
    ("rehearse -- RECIPE", "try a macOS recipe as far as Linux goes"),
    ("build_wheel -- sample", "cross-build the sample to a real macOS arm64 wheel"),
    ("verify_mps -- torch==2.15.0 --device cpu", "rehearse the device suite on the CPU"),
    ("doctor -- --host FILE", "look at a Mac that somebody recorded"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    recipe: str | None
    all: bool
    host: Path | None
    record: Path | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("recipe", nargs="?", metavar="RECIPE", help="v2.6.0, 2.6, sample, nightly, a path")
    parser.add_argument(
        "--all", action="store_true", help="check every recipe: which can be built here, and with which Xcode"
    )
    parser.add_argument("--host", type=Path, metavar="FILE", help="check a recorded host instead of this one")
    parser.add_argument("--record", type=Path, metavar="FILE", help="record this host's answers into FILE")


def run(options: Options, console: Console) -> Result:
    """Check the host, or record it; the exit status is 3 if a blocker stops the build."""
    if options.host and options.record:
        raise UsageError("--host and --record do not go together: only a live host can be recorded")
    if options.all and options.recipe:
        raise UsageError("--all asks for every recipe: leave RECIPE out")
    if options.record and not options.record.absolute().parent.is_dir():
        raise UsageError(f"--record {options.record}: there is no folder {options.record.parent}")
    recipes = all_recipes() if options.all else (_recipe(options.recipe, console),)
    prober = _prober(options)
    host = observe(prober)
    if host.recorded_on:
        console.print(f"recorded on {host.recorded_on}")
    if options.record:
        _write_recording(prober, options.record, console)
    return _all(host, recipes, console) if options.all else _one(host, recipes[0], console)


def _recipe(argument: str | None, console: Console) -> Recipe:
    """Return the requested recipe; for another patch release of a minor that has one, that one."""
    if not argument:
        return newest_stable()
    try:
        return find_recipe(argument)
    except UsageError:
        release = re.fullmatch(r"v?(\d+\.\d+)\.\d+", argument.strip())
        if not release:
            raise
    recipe = find_recipe(release.group(1))
    console.print(f"there is no recipe for {argument}; the requirements of the nearest are used: {recipe.name}")
    return recipe


def _prober(options: Options) -> Prober:
    if options.host:
        return RecordedProber(options.host)
    return RecordingProber() if options.record else LiveProber()


def _one(host: Host, recipe: Recipe, console: Console) -> Result:
    findings = (*inspect(host, recipe), *_build_python(host, recipe))
    stopping = blockers(findings)
    console.print(f"{recipe.name} on {_named(host)}", style="bold")
    way = way_to_build(host, recipe, findings)
    if way:
        console.print("To build it here, in this order:")
        for number, step in enumerate(way, 1):
            console.print(f"  {number}. {step}")
        console.print()
    for line, level in lines_of(findings):
        console.print(line, style=level_style(level))
    _print_end(host, recipe, findings, console)
    document = {
        "recipe": recipe.name,
        **_document(host),
        "blockers": stopping,
        "warnings": warnings(findings),
        "findings": [finding.document() for finding in findings],
        "way": list(way),
    }
    return _outcome(document, stopping, recipe.name)


def _build_python(host: Host, recipe: Recipe) -> tuple[Finding, ...]:
    """Return the line on the Python that a build of this recipe would take here; a recorded host is not here."""
    if host.recorded_on is not None or (host.system != "Darwin" and recipe.cross is None):
        return ()
    version = build_python(recipe)
    return tuple(build_python_findings(search_interpreter(version, environ=fetch_environ(os.environ))))


def _print_end(host: Host, recipe: Recipe, findings: Sequence[Finding], console: Console) -> None:
    stopping, warned = blockers(tuple(findings)), warnings(tuple(findings))
    only_verify = stopping and not blockers(tuple(findings), stops="build")
    console.print()
    if not stopping:
        unproved = " as far as it is recorded" if any(f.level == "not_recorded" for f in findings) else ""
        console.print(f"nothing prevents a build{unproved}; warnings: {', '.join(warned) or 'none'}", style="green")
    elif only_verify:
        console.print(f"can build, cannot verify: {', '.join(stopping)}", style="red")
    else:
        console.print(f"cannot build {recipe.name}: {', '.join(stopping)}", style="red")
    if host.system != "Darwin":
        console.print("Possible here:")
        for command, purpose in _HERE:
            console.print(f"  nox -s {command:<42} {purpose}")


def _all(host: Host, recipes: tuple[Recipe, ...], console: Console) -> Result:
    rows = buildability_of(host, recipes)
    console.print(f"every recipe on {_named(host)}", style="bold")
    console.table(("recipe", "builds here", "with", "because of"), [_row(row) for row in rows])
    unlocked = unlocked_by(host, recipes)
    for what, names in unlocked.items():
        console.print(f"{what} would unlock {len(names)} (where it runs on this macOS): {', '.join(names)}")
    buildable = [row.recipe for row in rows if not row.blockers]
    document = {**_document(host), "recipes": [row.document() for row in rows], "unlocked_by": unlocked}
    return _outcome(
        document, [] if buildable else sorted({name for row in rows for name in row.blockers}), "any recipe"
    )


def _row(row: Buildability) -> tuple[str, str, str, str]:
    return row.recipe, "no" if row.blockers else "yes", row.xcode or "-", ", ".join(row.blockers)


def _outcome(document: dict[str, Any], stopping: list[str], name: str) -> Result:
    if not stopping:
        return Result(document=document)
    return Result(
        document=document,
        exit_code=3,
        cause="host",
        hint=f"fix what stops {name}, in the order shown: {stopping[0]} first",
    )


def _document(host: Host) -> dict[str, Any]:
    probes = [{"argv": list(row.argv), "fact": dict(row.facts)} for row in host.observations]
    return {"recorded_on": host.recorded_on, "probes": probes, "host": host.document()}


def _named(host: Host) -> str:
    if host.system != "Darwin":
        return f"{host.system} ({host.arch or 'architecture unknown'})"
    return f"{host.chip or 'a Mac'}, macOS {host.macos or 'not recorded'}"


def _write_recording(prober: Prober, path: Path, console: Console) -> None:
    """Write the scrubbed recording beside and rename it, then say what was taken out."""
    document, removed = recorded(prober)
    try:
        write_whole(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise UsageError(f"--record {path}: cannot be written: {error.strerror}") from error
    taken = ", ".join(f"{count} {kind}" for kind, count in sorted(removed.items())) or "nothing"
    console.print(f"recorded {len(document['probes'])} probes in {path}; taken out: {taken}")
    console.print("read it before you send it; docs/host/recorded_macs.md says what each probe may reveal")
