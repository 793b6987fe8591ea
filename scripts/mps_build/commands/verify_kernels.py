"""Run a wheel's Metal kernels on this machine, without a Mac, and compare their results.

TARGET is a file, or a requirement such as torch==2.15.0, fetched for macOS arm64. `--python PATH` without a TARGET
reads the torch that an interpreter has. Every kernel's bitcode is compiled for this machine's processor and run
between protected pages, several ways; results are held against torch on the CPU in float64, and each layout against
the dense form of its operator. What no contract binds is counted as not_bound, never as passed. Kernels that MPSGraph
builds at run time are in no wheel, and out of reach.

The exit status is 0 if all that ran is right, 10 with findings, 11 with known issues only, 2 if nothing was verified,
20 if a part of ours failed on a kernel (`misfit`), 21 if no kernel may run here.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..common.console import Console
from ..common.cores import usable_cores
from ..common.errors import OwnFault, RefusedForSafety, UsageError
from ..common.files import write_whole
from ..common.records.kernels import load_kernels
from ..common.reporting import Result
from ..common.workspace import cache_folder, expanded
from ..kernels.code.compiler import require_llvm
from ..kernels.execution.large_host import NOTHING, host_code_of
from ..kernels.execution.selection import Choice
from ..kernels.execution.verify_all import FOUND, KernelRow, Request, load_fault, verify, workers_of
from ..kernels.read.host_code import HostCode
from ..kernels.read.library import BASIC, Library
from ..kernels.read.wheel import NoKernels, read_installed, read_libraries
from ..kernels.report import document, exchange, page
from .shared.kernels import environment, reference_python, require_linux, torch_version
from .shared.options import add_accept, add_findings, add_inject, add_trust
from .shared.wheels import find_installed, find_wheel

TASK = ("without_a_mac", 2)
FIRST = ("--quick", "--kernel", "--op", "--large", "--html")
EXITS = (10, 11, 20, 21)
EXTRA = "kernels"
DOCUMENT = (
    "target:string torch:string|null verdict:string seed:integer coverage:object libraries:object "
    "kernels:array ?fault:string ?plant:string ?reason:string ?concurrency:object"
)
EXAMPLES = (
    "torch==2.15.0",
    "torch==2.15.0 --quick",
    "wheelhouse/torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl --op exp",
    "torch==2.13.0 --kernel 'hypot_*' --json kernels.json",
    "torch==2.15.0 --kernel 'exp_dense_*' --inject fault.py:swapped",
)
_SHOWN = 20
KNOWN_ONLY = 11
_SAID = {
    "verified": "verified: no finding in what was run",
    "findings": "findings",
    "known_issues_only": "known_issues_only: every wrong answer is a known issue",
    "misfit": "not verified: a part of mps-build failed on what it was given",
    "refused": "refused: its kernels hold what no Metal kernel has, and were not run",
    "not_verified": "not verified: no kernel was run",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    target: str | None
    python: str | None
    kernel: str | None
    op: str | None
    quick: bool
    large: bool
    seed: int
    inject: str | None
    html: Path | None
    beside: tuple[Path, ...]
    accept: str | None
    trust: bool
    junit: Path | None
    sarif: Path | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument(
        "target", metavar="TARGET", nargs="?", help="a .whl file, or a requirement such as torch==2.15.0"
    )
    parser.add_argument(
        "--python",
        metavar="X.Y|PATH",
        help="the Python version of a requirement (default: the newest), or an interpreter with a torch for macOS",
    )
    parser.add_argument("--kernel", metavar="PATTERN", help="only kernels whose name matches this shell pattern")
    parser.add_argument("--op", metavar="NAME", help="only kernels of this operator (aten name: exp, add, softmax)")
    parser.add_argument(
        "--quick", action="store_true", help="one kernel of each operator and form, all types of dense forms"
    )
    parser.add_argument("--large", action="store_true", help="only tensors past 2**31 and 2**32 bytes and elements")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="other inputs (default: 0)")
    add_inject(parser, "a function from a kernel's LLVM IR to another: must be found")
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="also write a page: findings, and errors by function and type"
    )
    parser.add_argument(
        "--beside",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="with --html: the --json of another release, drawn as a line of its own (may be repeated)",
    )
    add_trust(parser)
    add_findings(parser)
    add_accept(parser)


def run(options: Options, console: Console) -> Result:
    """Execute the kernels that the options select; the exit status is 10 if one is wrong."""
    require_llvm()
    beside = [load_kernels(path) for path in options.beside]  # a wrong file is named before hours of work, not after
    require_linux()
    fault = load_fault(str(expanded(options.inject))) if options.inject else None
    try:
        libraries, name, version, host = _libraries(options, console)
    except NoKernels as reason:
        console.print(str(reason), style="bold")
        empty = document.document_of([], target=options.target or options.python or "", version=None, seed=options.seed)
        return Result(document={**empty, "reason": str(reason)}, exit_code=2, cause="not_verified", hint=reason.hint)
    request = Request(
        libraries=libraries,
        version=version,
        python=reference_python(console, trust=options.trust),
        environ=environment(),
        cache=cache_folder() / "kernels",
        choice=Choice(pattern=options.kernel, operator=options.op, is_quick=options.quick),
        seed=options.seed,
        fault=fault,
        is_large=options.large,
        host=host,
    )
    rows = verify(request, console)
    ended = _concluded(rows, beside, options, console, name=name, version=version)
    together = {"cores": usable_cores(), "processes": workers_of(request), "threads": 1}
    return replace(ended, document={**ended.document, "concurrency": together})


def _libraries(options: Options, console: Console) -> tuple[tuple[Library, ...], str, str | None, HostCode]:
    """Return the Metal libraries (metal_basic first), what to call their origin, torch's version, and with `--large`
    what its host code asks."""
    host = NOTHING
    if options.target is None:
        if options.python is None:
            raise UsageError("no TARGET", hint="give a .whl file, or a requirement such as torch==2.15.0")
        root, info = find_installed(options.python)
        found, name, version = read_installed(root), str(root), info.partition("-")[2].removesuffix(".dist-info")
        if options.large:
            host = host_code_of(root, is_installed=True)
    else:
        path, _ = find_wheel(options.target, options.python, console, runs=True, trust=options.trust)
        found, name = read_libraries(path), path.name
        version = torch_version(path.name) or ""
        if options.large:
            host = host_code_of(path)
    return tuple(sorted(found, key=lambda each: each.name != BASIC)), name, version or None, host


def _concluded(
    rows: list[KernelRow],
    beside: list[dict[str, Any]],
    options: Options,
    console: Console,
    *,
    name: str,
    version: str | None,
) -> Result:
    """Print tables and the verdict, write the page, and return the document."""
    result = document.document_of(rows, target=name, version=version, seed=options.seed)
    verdict, exit_code = document.verdict_of(rows)
    if exit_code == KNOWN_ONLY and options.accept == "known":
        exit_code = 0
    if options.inject:
        result["fault"] = result["plant"] = _fault_result(rows)  # `plant`: its old name, written until 0.3
        exit_code = {"caught": 10, "missed": 0}.get(result["fault"], 2)
    _print_tables(rows, console)
    if options.html is not None:
        write_whole(options.html, page.render([result, *beside]))
    if options.junit is not None:
        write_whole(options.junit, exchange.as_junit(result))
    if options.sarif is not None:
        write_whole(options.sarif, exchange.as_sarif(result, exit_code=exit_code))
    counted = Counter(row.outcome.replace("_", " ") for row in document.once(rows))
    console.print()
    console.print(", ".join(f"{number} {outcome}" for outcome, number in counted.most_common()))
    injected = f"; the injected fault was {result['fault'].replace('_', ' ')}" if options.inject else ""
    console.print(f"{name}: {_SAID[verdict]} ({_share(rows)}){injected}", style="bold")
    return Result(document=result, exit_code=exit_code, cause=_cause(exit_code), hint=_hint(exit_code))


def _print_tables(rows: list[KernelRow], console: Console) -> None:
    columns = ("family", "kernels", "compiled", "bound", "run", "wrong", "known")
    libraries = dict.fromkeys(row.library for row in rows)
    for library in libraries:
        members = [row for row in rows if row.library == library and not row.is_twin]
        if library != BASIC and BASIC in libraries:
            found = document.beside_basic([row for row in rows if row.library == library], rows)
            changed, new = found["changed"], found["new"]
            console.print(
                f"{library}: {found['same']} kernels have the same instructions as in {BASIC}; "
                f"{changed['kernels']} have others ({changed['run']} run); "
                f"{new['kernels']} are in it alone ({new['run']} run)"
            )
        if members:
            table = document.family_rows(members, _SHOWN if library == BASIC else _SHOWN // 2)
            console.table(columns, table, title=library if len(libraries) > 1 else None)
    lines = document.finding_lines(rows)
    for line in lines[:_SHOWN]:
        console.print()
        console.print(line)
    if len(lines) > _SHOWN:
        console.print(f"and {len(lines) - _SHOWN} findings more; --json FILE has them all")
    candidates = document.candidate_rows(rows)
    if candidates:
        console.print()
        console.table(document.CANDIDATE_COLUMNS, candidates)
    known = document.known_rows(rows)
    if known:
        more = [[f"and {len(known) - _SHOWN} more: --json FILE has them all"]] if len(known) > _SHOWN else []
        console.print()
        console.table(document.KNOWN_COLUMNS, [*known[:_SHOWN], *more], title=f"Known issues: {len(known)} kernels")
        for issue, link in document.known_links(rows).items():
            console.print(f"{issue}: {link}")


def _fault_result(rows: list[KernelRow]) -> str:
    """Return caught, missed, not_exercised (it changed no kernel that ran), or error (its IR is not accepted)."""
    outcomes = {row.outcome for row in rows if row.outcome != "skipped"}
    if outcomes & set(FOUND):
        return "caught"
    if outcomes & {"passed", "known"}:
        return "missed"
    return "error" if outcomes & {"not_compiled", "refused", "misfit"} else "not_exercised"


def _share(rows: list[KernelRow]) -> str:
    """Return how many kernels passed of how many there are, each counted once, whatever libraries hold it."""
    own = document.once(rows)
    return f"{sum(row.outcome == 'passed' for row in own)} of {len(own)} kernels passed"


def _cause(exit_code: int) -> str | None:
    causes = {10: "regressed", 11: "known_issues", 2: "not_verified"}
    return {**causes, **{each.exit_code: each.cause for each in (OwnFault, RefusedForSafety)}}.get(exit_code)


def _hint(exit_code: int) -> str | None:
    return {
        10: "each finding names its kernel, its inputs and the seed: --kernel NAME --seed N runs it again",
        11: "all findings are known issues of this release",
        2: "no selected kernel could be run: `reason` of each says why (--json FILE)",
        20: "please report the kernels that are `misfit`, with the wheel's name: nothing is said against them",
        21: "docs/security.md says what a kernel may hold",
    }.get(exit_code)
