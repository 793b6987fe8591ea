"""List which operators MPS runs itself, through a composite, or not.

SOURCE is a recipe, an unpacked PyTorch tree, a wheel (.whl), a requirement such as torch==2.6.0 (fetched for macOS
arm64), or what --json wrote before. A tree is read by its own torchgen and by the registrations in its C++ files; a
wheel by its headers, the torchgen that it carries, and what its library's machine code registers. --record adds what
a record of verify_mps measured of each operator: right, wrong, refused, fell back.
"""

from __future__ import annotations

import argparse
import os
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..common.console import Console
from ..common.environment import fetch_environ
from ..common.errors import SourceError, UsageError
from ..common.files import write_whole
from ..common.git import check_machine, git, mirror_of
from ..common.json_text import load_json
from ..common.page import whole_page
from ..common.process import capture
from ..common.recipe.catalogue import find_recipe
from ..common.recipe.model import Recipe
from ..common.records.device_record import load_record
from ..common.reporting import Result
from ..common.workspace import Workspace, cache_folder, expanded, work_folder
from ..inspection.coverage.model import Facts, from_document
from ..inspection.coverage.render import CSS, WORDS, page_body, summary, table_rows, transitions
from ..inspection.coverage.rules import (
    ALWAYS,
    Change,
    Measured,
    Row,
    classify,
    compare,
    compare_kernels,
    count,
    gaps,
    measure,
    totals,
)
from ..inspection.coverage.tree import NEEDED, facts_of_tree
from ..inspection.coverage.wheel import facts_of_wheel, read_compiled
from .shared.options import add_offline, add_trust
from .shared.wheels import find_wheel

TASK = ("inspection", 2)
FIRST = ("--against", "--show", "--python", "--html", "--record")
DOCUMENT = "facts:object counts:object operators:array ?against:object ?changes:array ?kernel_changes:array"
EXAMPLES = (
    "v2.6.0 --against v2.15.0",
    "~/pytorch --html coverage.html",
    "torch==2.15.0 --json coverage.json",
    "v2.6.0 --against torch==2.6.0",
    "torch==2.15.0 --record record.json",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    source: str
    against: str | None
    html: Path | None
    record: Path | None
    python: str | None
    show: int
    offline: bool
    trust: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("source", metavar="SOURCE", help="a recipe, a tree, a wheel, a requirement, or a .json of ours")
    parser.add_argument("--against", metavar="OTHER", help="what to compare it with: any of the same kinds")
    parser.add_argument("--html", metavar="FILE", type=Path, help="also write an HTML page")
    parser.add_argument(
        "--record", metavar="RECORD", type=Path, help="a record of verify_mps: also show what was measured"
    )
    parser.add_argument("--python", metavar="X.Y", help="the Python of requirements (default: the newest they have)")
    parser.add_argument(
        "--show", metavar="N", type=int, default=20, help="number of names to show of each kind (default: 20)"
    )
    add_offline(parser)
    add_trust(parser)


def run(options: Options, console: Console) -> Result:
    """Read the operators of one or two sources, and print what MPS runs and what changed."""
    record = load_record(options.record) if options.record else None
    facts = _facts(options.source, options, console)
    other = _facts(options.against, options, console) if options.against else None
    rows = classify(facts)
    on_cpu = frozenset(row.name for row in rows if row.status == ALWAYS)
    measured = measure(record, (row.name for row in rows), on_cpu=on_cpu) if record else {}
    changes = compare(facts, other) if other else ()
    others = classify(other) if other else ()
    _print(facts, rows, other, others, changes, console, options.show)
    if record and _minor(record.torch.version) != _minor(facts.version):
        console.warn(f"the record is of torch {record.torch.version}, the operators are of {facts.version}")
    if record:
        _print_measured(measured, record.statement, console, options.show)
    if options.html:
        against = (other, others, changes) if other else None
        body = page_body(facts, rows, measured, against, record.statement if record else _statement(facts))
        page = whole_page(
            f"Operators on MPS: {facts.label}", body, css=CSS, footer=f"Written by mps-build {__version__}."
        )
        _write(options.html, page)
        console.print(f"page: {options.html}")
    document: dict[str, Any] = {
        "facts": facts.document(),
        "counts": _counts(rows),
        "operators": [row.document() | _found(measured, row.name) for row in rows],
    }
    if other:
        document["against"] = {"facts": other.document(), "counts": _counts(others)}
        document["changes"] = [change.document() for change in changes]
        document["kernel_changes"] = [change.document() for change in compare_kernels(facts, other)]
    return Result(document=document)


def _minor(version: str | None) -> list[str]:
    """Return major and minor: a tree calls itself 2.6.0a0, its wheel 2.6.0 or 2.6.0+mps.g1eba9b3."""
    return (version or "").split(".")[:2]


def _found(measured: dict[str, Measured], name: str) -> dict[str, Any]:
    return measured[name].document() if name in measured else {}


def _statement(facts: Facts) -> str:
    how = "its own torchgen and its C++ files" if facts.kind == "source" else "its headers, torchgen and machine code"
    return f"Read from {how}: what is registered, not whether its answers are right. Nothing was run on a Mac."


def _counts(rows: tuple[Row, ...]) -> dict[str, Any]:
    counts = count(rows)
    return {
        "overloads": dict(counts.overloads),
        "operators": dict(counts.families),
        "with_cpu_kernel": counts.cpu,
        "of_these_on_mps": counts.cpu_on_mps,
    }


def _facts(source: str, options: Options, console: Console) -> Facts:
    """Return the facts of whatever kind of thing an argument names."""
    path = expanded(source)
    if path.is_dir():
        return facts_of_tree(path.resolve())
    if path.suffix == ".json":
        return from_document(load_json(path), named=str(path))
    if path.suffix == ".whl" or any(sign in source for sign in "=<>~!"):
        # The wheel's own torchgen runs, which is a program.
        python = None if path.exists() else options.python
        wheel, _ = find_wheel(source, python, console, runs=True, trust=options.trust)
        return facts_of_wheel(wheel, read_compiled(wheel, console))
    recipe = find_recipe(source)
    if recipe.source.kind == "embedded":
        raise UsageError(f"{recipe.name} is not PyTorch: it has no operators", hint="name a release, as v2.6.0")
    label = f"PyTorch {recipe.version}, source"
    built = Workspace(root=work_folder() / recipe.name).source
    if (built / NEEDED[0]).is_dir():
        return facts_of_tree(built, label=f"{label} in {built}")
    return _of_commit(recipe, label, options, console)


def _of_commit(recipe: Recipe, label: str, options: Options, console: Console) -> Facts:
    """Return the facts of a recipe's pinned commit, of which only what is needed is unpacked."""
    if recipe.commit is None:
        raise UsageError(f"{recipe.name} pins no commit", hint="give a tree, or build it first")
    environ = fetch_environ(os.environ)
    log = work_folder() / "op_coverage.log"
    mirror = mirror_of(recipe.source.repository or "", cache=cache_folder(), environ=environ, log=log)
    console.started(f"Fetch {recipe.name}", unit="bytes")
    mirror.fetch(recipe.commit, offline=options.offline, on_bytes=console.advanced)
    console.done()
    with tempfile.TemporaryDirectory(prefix="mps-build-coverage-") as name:
        root = Path(name).resolve()
        unpack_needed(mirror.path, recipe.commit, root, environ)
        return facts_of_tree(root, label=label)


def unpack_needed(repository: Path, commit: str, root: Path, environ: Mapping[str, str]) -> None:
    """Put into `root` the files of a commit that coverage reads.

    Raises:
        SourceError: one of them is not there.
    """
    packed = root / "tree.tar"
    words = ("archive", "--format=tar", "-o", str(packed), commit, "--", *NEEDED)
    made = capture(git(*words, cwd=repository, environ=environ), timeout_seconds=300)
    if not made.ok:
        check_machine(made.stderr, during="while git reads the tree")
        hint = "torchgen is there from 1.12 on, the first release with MPS"
        raise SourceError(f"{commit[:12]} cannot be read as PyTorch: {made.stderr.strip()}", hint=hint)
    with tarfile.open(packed) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                (root / member.name).parent.mkdir(parents=True, exist_ok=True)
                (root / member.name).write_bytes(content.read())
    packed.unlink()


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error}", hint="give a file in an existing folder") from error


def _print(
    facts: Facts,
    rows: tuple[Row, ...],
    other: Facts | None,
    others: tuple[Row, ...],
    changes: Sequence[Change],
    console: Console,
    most: int,
) -> None:
    sides = [count(rows)] + ([count(others)] if other else [])
    columns = ["status", "overloads", "operators"] + (["overloads there", "operators there"] if other else []) + [""]
    console.table(columns, table_rows(sides))
    console.print()
    for each, counts in zip([facts] + ([other] if other else []), sides, strict=True):
        console.print(summary(each, counts), style="bold")
        for text in (*each.checks, *each.notes):
            console.warn(text)
        if each.kernels:
            listed = ", ".join(f"{len(names)} in {section}" for section, names in sorted(each.kernels.items()))
            console.print(f"Metal kernels: {listed}", style="dim")
    if other:
        console.print()
        moved = [(WORDS[before], WORDS[after], *rest) for before, after, *rest in transitions(changes)]
        console.table(("from", "to", "overloads", "which"), moved, title=f"{len(changes)} differ")
        for change in changes[:most]:
            console.print(f"  {change.name}: {change.reason}", style="dim")
        if len(changes) > most:
            console.print(f"  and {len(changes) - most} more: --json or --html has them all", style="dim")
        for kernels in compare_kernels(facts, other):
            reported = f"{len(kernels.only_left)} only here, {len(kernels.only_right)} only there"
            console.print(f"Metal kernels in {kernels.section}: {kernels.left}, {kernels.right} there; {reported}")
        return
    console.print()
    lacking = [row.name for row in gaps(rows)]
    shown = ", ".join(lacking[:most]) + (f" and {len(lacking) - most} more" if len(lacking) > most else "")
    console.print(f"CPU and CUDA have a kernel, MPS does not run it ({len(lacking)}): {shown}")


def _print_measured(measured: dict[str, Measured], statement: str, console: Console, most: int) -> None:
    console.print()
    console.print(statement, style="dim")
    rows = []
    for word, number in totals(measured.values()).items():
        names = [name for name, each in measured.items() if each.word == word]
        rows.append((word, str(number), ", ".join(names[:most]) + (" …" if len(names) > most else "")))
    console.table(("measured", "overloads", "which"), rows)
