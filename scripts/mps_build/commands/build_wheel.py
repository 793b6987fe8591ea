"""Build a recipe's wheel and audit it; the wheel and its receipt end in wheelhouse/.

Steps whose receipt still holds are skipped, so the same command again after an interruption goes on,
and after success takes seconds.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mps_build.build.failure import explained
from mps_build.common.console import Console, human_bytes, human_seconds
from mps_build.common.errors import CompileError, DiskFull, UsageError
from mps_build.common.result import Result

if TYPE_CHECKING:  # the loop of --editable begins with ninja, and does not wait for all of this
    from mps_build.build.editable_state import Remembered
    from mps_build.build.finish import Delivered
    from mps_build.build.pipeline import Pipeline
    from mps_build.build.plan import BuildRequest
    from mps_build.common.receipts import Receipt
    from mps_build.common.workspace import Workspace

EXAMPLES = (
    "",
    "v2.6.0 --python 3.11,3.12,3.13",
    "sample",
    "nightly --ref <40-hex commit>",
    "v2.6.0 --profile develop --set USE_DISTRIBUTED=0",
    "v2.6.0 --source ~/pytorch --editable",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", nargs="?", metavar="RECIPE", help="v2.6.0, 2.6, sample, nightly, a path")
    parser.add_argument("--python", metavar="X.Y[,X.Y]", help="Pythons to build for (default: the recipe's)")
    parser.add_argument("--profile", choices=("release", "develop"), help="default: release; develop with --editable")
    parser.add_argument(
        "--source", metavar="SOURCE", help="your own tree as it stands, a tarball, or an address at HEAD"
    )
    parser.add_argument("--repo", metavar="URL", help="another repository (a folder, file:// or https://)")
    parser.add_argument("--ref", metavar="REF", help="another commit, branch or tag")
    parser.add_argument("--patch", metavar="FILE", type=Path, action="append", default=[], help="after the recipe's")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], dest="settings")
    parser.add_argument("--jobs", metavar="N", type=int, help="compilers at once (default: from cores and memory)")
    parser.add_argument("--allow-jit-shaders", action="store_true", help="accept Metal kernels compiled at first use")
    parser.add_argument("--without-metal4", action="store_true", help="accept a wheel without the Metal 4 kernels")
    parser.add_argument("--version-label", metavar="WORD", help="a word in the wheel's local version")
    parser.add_argument("--official-version", action="store_true", help="no local version: named as the official wheel")
    parser.add_argument("--wheelhouse", metavar="DIR", type=Path, help="where the wheel goes (default: wheelhouse/)")
    parser.add_argument("--cache", choices=("ccache", "sccache"), help="a compiler cache in front of every compiler")
    parser.add_argument("--shared-cache", action="store_true", help="sccache: use the fleet's store for a release too")
    parser.add_argument("--editable", action="store_true", help="edit, build, import: no wheel (implies develop)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be built, and whether it could")
    parser.add_argument("--host", metavar="FILE", type=Path, help="with --dry-run: a recorded host in this one's place")
    parser.add_argument("--offline", action="store_true", help="use only what the cache holds")


def run(arguments: argparse.Namespace, console: Console) -> Result:
    if arguments.host and not arguments.dry_run:
        raise UsageError("--host replays a recorded host: only with --dry-run", hint="build on the host itself")
    if arguments.editable and arguments.profile == "release":
        raise UsageError("--editable is a build that changes under your hands: no release", hint="leave --profile out")
    arguments.profile = arguments.profile or ("develop" if arguments.editable else "release")
    if arguments.editable and not arguments.dry_run:
        from mps_build.build.editable_state import recall

        if found := recall(arguments):
            return _rebuilt(found, console)
    from mps_build.build.forecast import forecast
    from mps_build.build.pipeline import Pipeline
    from mps_build.build.request import plan
    from mps_build.host.probes.probers import RecordedProber

    if arguments.host:  # said first: a host that cannot build is an error already in the plan
        console.print(f"recorded on {RecordedProber(arguments.host).recorded_on}")
    request, workspace = plan(arguments)
    at = f" at {request.commit[:12]}" if request.commit else ""
    console.print(f"{request.recipe.name}: {request.repository}{at}", style="bold")
    if request.cross:
        console.print("not a Mac: cross-built with zig, without MPS; see docs/sample.md")
    if arguments.dry_run:
        told = forecast(request, workspace)
        console.table(("", ""), [(name.replace("_", " "), _words(value)) for name, value in told.items()])
        return Result(document={"dry_run": True, **told})
    for warning in request.cache_warnings:
        console.warn(warning)
    if arguments.editable:
        return _editable(arguments, request, workspace, console)
    build = Pipeline(request, workspace=workspace, console=console)
    try:
        delivered = build.build()
    except CompileError as error:
        raise _explained(error, arguments, request, workspace) from error
    _print_result(delivered, build, console)
    return Result(document=_document(request, delivered, build))


def _editable(arguments: argparse.Namespace, request: BuildRequest, workspace: Workspace, console: Console) -> Result:
    """The first run of --editable, or one after something else than the source changed."""
    from mps_build.build.editable import EditableBuild

    try:
        found, version, place = EditableBuild(request, workspace=workspace, console=console).make(arguments)
    except CompileError as error:
        raise _explained(error, arguments, request, workspace) from error
    console.print()
    console.table(("step", "time"), [(title, human_seconds(seconds)) for title, seconds in console.timings])
    console.print(f"{found.module} {version}, imported from {place}")
    _print_loop(found, console)
    return Result(document={**_told(found), "version": version, "steps": None})


def _rebuilt(found: Remembered, console: Console) -> Result:
    """Every further run: ninja, and what it does not know of."""
    from mps_build.build.steps.rebuild_editable import rebuild

    with found.workspace.held():
        try:
            steps = rebuild(found.editable, log=found.workspace.logs / "rebuild.log", reporter=console)
        except CompileError as error:
            text = (found.workspace.logs / "rebuild.log").read_text(encoding="utf-8", errors="replace")
            lines = [line for line in text.splitlines() if ": error:" in line or ": fatal error:" in line]
            tail = lines[:8] or text.splitlines()[-12:]
            raise CompileError("\n".join([str(error), *tail]), hint=error.hint) from error
    console.print(f"{found.module} is made anew: {steps} steps of ninja")
    _print_loop(found, console)
    return Result(document={**_told(found), "steps": steps})


def _print_loop(found: Remembered, console: Console) -> None:
    console.print(f"import it: {found.editable.python} -c 'import {found.module}'")
    console.print(f"next: edit {found.editable.root}, and the same command again")
    if found.module == "torch":
        console.print(f"      nox -s verify_mps -- --python '{found.editable.python}' --op NAME")


def _told(found: Remembered) -> dict[str, Any]:
    editable = found.editable
    return {"recipe": found.recipe, "tree": str(editable.root), "python": str(editable.python)}


def _explained(
    error: CompileError, arguments: argparse.Namespace, request: BuildRequest, workspace: Workspace
) -> CompileError | DiskFull:
    """Return the error with the known cause, if there is one, else with the first error of the log."""
    found_logs = (path for kind in ("compile_wheel", "editable") for path in workspace.logs.glob(f"{kind}-*.log"))
    logs = sorted(found_logs, key=lambda path: path.stat().st_mtime)
    if not logs:
        return error
    shell = f"nox -s shell -- {_words_given(arguments)} opens a shell in this build's environment"
    return explained(error, logs[-1], release=request.recipe.release, hint=f"{error.hint}; {shell}")


def _words_given(arguments: argparse.Namespace) -> str:
    """Return the arguments as they were typed, for another verb that takes the same."""
    return shlex.join(getattr(arguments, "given", ()) or [arguments.recipe or ""])


def _print_result(delivered: tuple[Delivered, ...], build: Pipeline, console: Console) -> None:
    rows = []
    for each in delivered:
        rows.append((each.wheel.path.name, human_bytes(each.wheel.size), each.python, str(each.audit["kind"])))
    console.print()
    console.table(("wheel", "size", "python", "kind"), rows)
    console.table(("step", "time"), [(title, human_seconds(seconds)) for title, seconds in console.timings])
    for receipt in build.ledger.receipts:
        if receipt.step == "compile_wheel" and not receipt.skipped:
            _print_compile(receipt, console)
    console.print(f"in {delivered[0].wheel.path.parent}")
    verb = "verify_mps" if build.request.contents.rules == "torch" else "audit_wheel"
    console.print(f"next: nox -s {verb} -- '{delivered[0].wheel.path}'")


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={each}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return "-" if value is None else str(value)


def _print_compile(receipt: Receipt, console: Console) -> None:
    slowest = [f"{name.rsplit('/', 1)[-1]} {human_seconds(seconds)}" for name, seconds in receipt.facts["slowest"][:4]]
    console.print(f"longest steps: {', '.join(slowest)}")
    cache = receipt.facts["cache"]
    if cache:
        console.print(f"compiler cache: {cache['hits']} hits, {cache['misses']} misses ({cache['hit_rate']:.0%})")
        if not cache["hits"]:
            console.warn("nothing came from the compiler cache; a first build fills it, a second one should hit")


def _document(request: BuildRequest, delivered: tuple[Delivered, ...], build: Pipeline) -> dict[str, Any]:
    return {
        "recipe": request.recipe.name,
        "commit": request.commit,
        "profile": request.profile,
        "wheels": [
            {
                "path": str(each.wheel.path),
                "size": each.wheel.size,
                "sha256": each.wheel.sha256,
                "python": each.python,
                "verdict": each.audit["verdict"],
                "kind": each.audit["kind"],
                "receipt": str(each.receipt),
            }
            for each in delivered
        ],
        "steps": [
            {"step": each.step, "skipped": each.skipped, "seconds": each.seconds} for each in build.ledger.receipts
        ],
    }
