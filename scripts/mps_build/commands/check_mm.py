"""Check Objective-C++ of MPS on any system: selectors, types, enums, version guards.

FILE may be new, or of a tree; it is compiled with the tree's own flags against our declarations, nothing of Apple's.
The tree is the one that FILE lies in, --source, or, for a release without a tree, the headers of its official wheel
(--recipe alone, or --source torch-….whl); it need not be configured. Without FILE: what was changed in the tree.

Exit 0, or 8 with diagnostics. A selector that no official wheel uses and our data lacks is reported as unknown: it is
not a mistake. What passes is right by syntax, types and names; that it computes right, only a Mac can show.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.console import Console
from mps_build.common.cores import usable_cores
from mps_build.common.errors import UsageError
from mps_build.common.plain_text import plain
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.recipe.model import Recipe
from mps_build.common.reporting import Result
from mps_build.common.workspace import Workspace, expanded, work_folder
from mps_build.wheel_build.mm.check import (
    Report,
    changed_files,
    check_files,
    existing_files,
    make_checker,
    oldest_macos,
    recipe_of,
)
from mps_build.wheel_build.mm.diagnostics import Diagnostic
from mps_build.wheel_build.mm.tree import MpsTree, find_tree, read_tree, read_wheel_headers

from .shared.options import add_jobs
from .shared.wheels import find_wheel

TASK = ("without_a_mac", 4)
FIRST = ("--source", "--base", "--recipe", "--target", "--jobs")
EXITS = (8,)
EXTRA = "check_mm"
DOCUMENT = "files:array base:string|null diagnostics:array unknown:array"
EXAMPLES = (
    "aten/src/ATen/native/mps/operations/UnaryOps.mm",
    "--source ~/pytorch --base origin/main",
    "Eye.mm --recipe v2.15.0",
    "New.mm --source ~/pytorch --recipe v2.6.0 --json found.json",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    files: tuple[Path, ...]
    source: Path | None
    recipe: str | None
    base: str | None
    target: str | None
    jobs: int
    annotations: bool
    allow_none: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument(
        "files", metavar="FILE", nargs="*", type=Path, help="the .mm or .h files to check (default: the changed ones)"
    )
    parser.add_argument("--source", metavar="TREE", type=Path, help="a PyTorch tree, or an official torch-….whl")
    parser.add_argument(
        "--recipe", metavar="V", help="the recipe whose deployment target is used (default: that of the tree's release)"
    )
    parser.add_argument("--base", metavar="REF", help="without FILE: compare with this commit (default: upstream's)")
    parser.add_argument("--target", metavar="X.Y", help="the oldest macOS, such as 14.0 (default: the recipe's)")
    parser.add_argument("--allow-none", action="store_true", help="exit with 0 if no file has changed (for workflows)")
    parser.add_argument("--annotations", action="store_true", help="also print annotations for GitHub Actions")
    add_jobs(parser, default=usable_cores())


def run(options: Options, console: Console) -> Result:
    """Check the files and print each diagnostic; the exit status is 8 if there is an error."""
    folder = work_folder() / "check_mm"
    named = find_recipe(options.recipe) if options.recipe else None
    files = existing_files(options.files)
    tree = _tree(options, named, files, folder, console)
    base = None
    if not files:
        files, base = changed_files(tree.root, base=options.base)
        if not files and options.allow_none:
            console.print(f"no MPS file of {tree.root} differs from {base[:12]}: nothing was checked")
            return Result(document={"files": [], "base": base, "diagnostics": [], "unknown": []})
        if not files:
            raise UsageError(
                f"nothing to check: no MPS file of {tree.root} differs from {base[:12]}",
                hint="name files, or the commit to compare with: --base REF",
            )
    recipe = named or recipe_of(tree)
    target = options.target or oldest_macos(recipe)
    checker = make_checker(tree, target=target, folder=folder, reporter=console)
    report = check_files(checker, files, jobs=options.jobs, reporter=console)
    _print(report, console)
    if options.annotations:
        for each in (*report.diagnostics, *report.unknown):
            console.workflow_command(annotation(each))
    document: dict[str, Any] = {
        "files": list(report.files),
        "source": str(options.source or tree.root),
        "headers": "wheel" if tree.is_wheel else "tree",
        "base": base,
        "recipe": recipe.name if recipe else None,
        "deployment_target": target,
        "diagnostics": [each.document() for each in report.diagnostics],
        "unknown": [each.document() for each in report.unknown],
        "cpu_seconds": report.cpu_seconds,
    }
    if report.diagnostics:
        return Result(document=document, exit_code=8, cause="compile", hint="fix them, then run the same command again")
    return Result(document=document)


def _tree(options: Options, recipe: Recipe | None, files: tuple[Path, ...], folder: Path, console: Console) -> MpsTree:
    source = expanded(options.source) if options.source else None
    if source is None:
        found = {tree for file in files if (tree := find_tree(file))}
        if len(found) > 1:
            raise UsageError(
                "the files belong to several trees", hint="check one tree at a time, or name it with --source"
            )
        source = next(iter(found), None)
    if source is None and recipe is not None:
        built = Workspace(root=work_folder() / recipe.name).source
        source = built if built.is_dir() else None
    if source is None and recipe is not None:
        wheel, _ = find_wheel(f"torch=={recipe.version}", None, console)
        return read_wheel_headers(wheel, folder / "wheels")
    if source is None:
        raise UsageError(
            "no tree: the files belong to none" if files else "no file and no tree",
            hint="--source TREE, or --recipe v2.15.0 for the headers of its official wheel",
        )
    if source.suffix == ".whl":
        if not source.is_file():
            raise UsageError(f"--source {source} is not a file", hint="a PyTorch tree, or a torch-….whl for macOS")
        return read_wheel_headers(source, folder / "wheels")
    if not source.is_dir():
        raise UsageError(f"--source {source} is not a folder", hint="a PyTorch tree, or a torch-….whl for macOS")
    return read_tree(source.resolve())


def annotation(each: Diagnostic) -> str:
    """Return a diagnostic as GitHub shows it beside the line of a pull request.

    >>> annotation(Diagnostic(file="a.mm", line=3, column=4, severity="unknown", text="50% new"))
    '::notice file=a.mm,line=3,col=4::50%25 new'
    """
    level = {"error": "error", "warning": "warning"}.get(each.severity, "notice")
    text = _escaped(each.text, {"%": "%25", "\n": "%0A"})
    file = _escaped(each.file, {"%": "%25", "\n": "%0A", ":": "%3A", ",": "%2C"})
    return f"::{level} file={file},line={each.line},col={each.column}::{text}"


def _escaped(text: str, table: dict[str, str | int | None]) -> str:
    return plain(text).translate(str.maketrans(table))


def _print(report: Report, console: Console) -> None:
    for each in report.diagnostics:
        console.print(f"{each.file}:{each.line}:{each.column}: {each.severity}: {each.text}")
    for each in report.unknown:
        console.print(f"{each.file}:{each.line}:{each.column}: unknown: {each.text}", style="yellow")
    files = f"{len(report.files)} file{'s' if len(report.files) != 1 else ''}"
    wrong = len(report.diagnostics)
    result = f"{wrong} diagnostic{'s' if wrong != 1 else ''} in {files}" if wrong else f"{files}: nothing wrong"
    unknown = f", {len(report.unknown)} unknown to us" if report.unknown else ""
    console.print(f"{result}{unknown} ({report.cpu_seconds:.1f} s of CPU)", style="bold")
