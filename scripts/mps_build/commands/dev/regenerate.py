"""Write every generated file and table of this repository.

Schemas, the reference pages, the tables of docs.

With --check nothing is changed; it fails, and names what is out of date, and each field of a recipe that no longer
means what is on record. Only in a checkout.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.files import write_whole
from mps_build.common.reporting import Result
from mps_build.common.workspace import CHECKOUT, in_checkout

from ..shared.generated import generated_files, recipe_changes

TASK = ("repository", 1)
DOCUMENT = "changed:array recipes:array"
EXAMPLES = ("", "--check")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    check: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 2 if something is out of date")


def run(options: Options, console: Console) -> Result:
    """Write the files that are out of date, or with `--check` name them.

    Raises:
        UsageError: with `--check`, a file is out of date.
    """
    if not in_checkout():
        raise UsageError("the generated files belong to a checkout", hint="git clone the repository and run it there")
    changed, fields = [], recipe_changes(CHECKOUT)
    for path, text in generated_files(CHECKOUT):
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        changed.append(str(path.relative_to(CHECKOUT)))
        if not options.check:
            write_whole(path, text)
    if options.check and changed:
        raise UsageError(
            "\n".join([f"out of date: {', '.join(changed)}", *fields]), hint="run `nox -s dev -- regenerate`"
        )
    for field in fields:
        console.print(field)
    console.print(f"{len(changed)} files written" if changed else "everything is up to date")
    return Result(document={"changed": changed, "recipes": fields})
