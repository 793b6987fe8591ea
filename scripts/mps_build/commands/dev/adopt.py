"""Check a recording that a user sent, and file it among the tests.

Refuses one that still names a person or a machine, and shows the line. Shows which answers no
parser understands. Files it under tests/recorded/hosts/ with what our rules make of it; that
expectation fails the tests until a person has read it and set `confirmed` to true.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.files import write_whole
from mps_build.common.recipe.catalogue import data_root, find_recipe, newest_stable
from mps_build.common.reporting import Result
from mps_build.host.adoption import adopt, expectation_of, faults_of, file_stem, recording_in
from mps_build.host.probes.recording import load_document

TASK = ("repository", 6)
DOCUMENT = "recording:string expectation:string"
EXAMPLES = ("mac.json", "mac.json --recipe v2.9.1 --name m3-max-15.3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    file: Path
    recipe: str | None
    name: str | None
    into: Path | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a recording, or a record that holds one")
    parser.add_argument(
        "--recipe", metavar="RECIPE", help="the recipe whose requirements are checked (default: the newest release)"
    )
    parser.add_argument("--name", metavar="NAME", help="name of the new files (default: from chip, macOS and Xcode)")
    parser.add_argument(
        "--into", type=Path, metavar="DIR", help="the folder to write to (default: tests/recorded/hosts/)"
    )


def run(options: Options, console: Console) -> Result:
    """Write the recording and its expected answers, unconfirmed, into the folder of recorded hosts.

    Raises:
        UsageError: the file is not scrubbed, or a file of that name exists.
    """
    document = recording_in(load_document(options.file), name=str(options.file))
    if faults := faults_of(document):
        raise UsageError(
            f"{options.file}: is not scrubbed:\n  " + "\n  ".join(faults),
            hint="do not send or commit it; record again with `nox -s doctor -- --record FILE`, "
            "or write XXXXXXXXXX in their place",
            document={"left_over": list(faults)},
        )
    recipe = find_recipe(options.recipe) if options.recipe else newest_stable()
    adoption = adopt(document, name=str(options.file))
    expectation = expectation_of(adoption, recipe)
    folder = options.into or _hosts_folder()
    stem = _stem(file_stem(adoption.host) if options.name is None else options.name)
    paths = folder / f"{stem}.json", folder / f"{stem}.expect.json"
    if taken := [path for path in paths if path.exists()]:
        raise UsageError(f"{taken[0]} already exists", hint="give another name with --name")
    _write(paths[0], document)
    _write(paths[1], expectation)
    _print(expectation, paths, console)
    return Result(document={"recording": str(paths[0]), "expectation": str(paths[1]), **expectation})


def _hosts_folder() -> Path:
    tests = data_root() / "tests"
    if not tests.is_dir():
        raise UsageError("this is an installed mps-build, without tests", hint="run it in a clone, or give --into DIR")
    return tests / "recorded" / "hosts"


def _stem(name: str) -> str:
    if "/" in name or name.startswith(".") or not name:
        raise UsageError(f"--name {name!r}: is not a file name")
    return name.removesuffix(".json")


def _write(path: Path, document: Any) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def _print(expectation: dict[str, Any], paths: tuple[Path, Path], console: Console) -> None:
    for argv in expectation["not_understood"]:
        console.warn(f"the output of this command was not understood: {' '.join(argv)}")
    console.table(
        ("fact", "as read"),
        [(key, str(value)) for key, value in expectation.items() if key not in ("confirmed", "not_understood")],
    )
    console.print(f"added {paths[0]}")
    console.print(f"next: read {paths[1]}; if it is right, set `confirmed` to true")
