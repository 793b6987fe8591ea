"""Build a recipe into an audited wheel.

The wheel and its receipt end in wheelhouse/.

Steps whose receipt still holds are skipped, so the same command again after an interruption goes on,
and after success takes seconds. A release takes one to three hours on a Mac and 30 GB of disk (estimated from builds
on Linux); the sample a minute and 1.1 GB.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.console import Console, human_bytes, human_seconds
from ..common.environment import fetch_environ
from ..common.errors import CompileError, DiskFull, HostError, SourceError, UsageError
from ..common.reporting import Result
from ..common.workspace import cache_folder
from ..wheel_build.failure import explained
from ..wheel_build.options import BuildOptions as Options
from .shared.options import add_build_options

if TYPE_CHECKING:  # the loop of --editable begins with ninja, and does not wait for all of this
    from mps_build.common.receipts import Receipt
    from mps_build.common.workspace import Workspace
    from mps_build.wheel_build.build_request import BuildRequest
    from mps_build.wheel_build.pipeline import Pipeline
    from mps_build.wheel_build.rebuild_editable import Remembered
    from mps_build.wheel_build.steps.finish_wheel import Delivered

add_arguments = add_build_options
TASK = ("build", 1)
FIRST = ("--python", "--profile", "--source", "--shared-cache", "--dry-run")
EXITS = (3, 4, 5, 6, 7, 8, 9, 18, 19)
DOCUMENT = (
    "?recipe:string ?commit:string|null ?profile:string ?wheels:array ?steps:array|integer|null"
    " ?dry_run:boolean ?patches_tried:string"
)
EXAMPLES = (
    "",
    "v2.6.0 --python 3.11,3.12,3.13",
    "sample",
    "nightly --ref <40-hex commit>",
    "v2.6.0 --profile develop --set USE_DISTRIBUTED=0",
    "v2.6.0 --source ~/pytorch --editable",
)


def run(options: Options, console: Console) -> Result:
    """Build, or rebuild an editable tree, or with `--dry-run` only show what would be done."""
    if options.host and not options.dry_run:
        raise UsageError(
            "--host is allowed only with --dry-run: a recorded host cannot build",
            hint="leave --host out to build on this host",
        )
    if options.editable:
        _refuse(options)
    if options.editable and not options.dry_run:
        from ..wheel_build.rebuild_editable import recall

        if found := recall(options):
            return _rebuilt(found, console)
    from mps_build.host.probes.probers import RecordedProber
    from mps_build.wheel_build.pipeline import Pipeline
    from mps_build.wheel_build.planning import forecast, plan

    if options.host:  # said first: a host that cannot build is an error already in the plan
        console.print(f"recorded on {RecordedProber(options.host).recorded_on}")
    request, workspace = plan(options)
    at = f" at {request.source.commit[:12]}" if request.source.commit else ""
    console.print(f"{request.recipe.name}: {request.source.repository}{at}", style="bold")
    if request.compilers.cross:
        console.print("not a Mac: cross-built with zig, shaders as source; see docs/build/sample.md")
        if not options.dry_run and not workspace.receipts.is_dir():
            console.print("the first build fetches 110 MB, takes a minute and 1.1 GB of disk; later ones take seconds")
    if options.dry_run:
        expected = {"dry_run": True, **forecast(request, workspace), "patches_tried": _patches_tried(request)}
        console.table(("", ""), [(name.replace("_", " "), _words(value)) for name, value in expected.items()])
        if refusal := request.host.refusal:  # last: what else is wrong is worth knowing on any system
            raise HostError(str(refusal), hint=refusal.hint, document={**expected, **refusal.document})
        return Result(document=expected)
    for warning in request.compilers.cache.warnings:
        console.warn(warning)
    if options.editable:
        return _editable(options, request, workspace, console)
    build = Pipeline(request, workspace=workspace, console=console)
    try:
        delivered = build.build()
    except CompileError as error:
        raise _explained(error, options, request, workspace) from error
    _print_result(delivered, build, console)
    return Result(document=_document(request, delivered, build))


def _patches_tried(request: BuildRequest) -> str:
    """Try the patches at the commit; return how it went where they fit, or could not be tried."""
    from ..wheel_build.patches.file import read_patch
    from ..wheel_build.patches.trial import try_at_commit

    source = request.source
    own = len(source.patches) - len(source.extra_patches)
    patches = [read_patch(path, bare=place >= own) for place, path in enumerate(source.patches)]
    if not patches:
        return "there are none"
    if source.origin != "git" or source.commit is None:
        return "not tried: the source is not unpacked before it is built"
    try:
        try_at_commit(
            patches,
            repository=source.repository,
            commit=source.commit,
            cache=cache_folder(),
            environ=fetch_environ(os.environ),
            offline=request.offline,
        )
    except SourceError as error:
        return f"not tried: {str(error).partition(' (log: ')[0]}"
    return f"they fit {source.commit[:12]}"


def _refuse(options: Options) -> None:
    """Refuse what cannot be edited in place, before a Python is looked for."""
    if options.profile == "release":
        raise UsageError(
            "--editable cannot be a release: its tree may change at any time",
            hint="leave --profile out: --editable implies develop",
        )
    first, comma, _ = (options.python or "").partition(",")
    if comma:
        raise UsageError("--editable takes one Python at a time", hint=f"--python {first}")


def _editable(options: Options, request: BuildRequest, workspace: Workspace, console: Console) -> Result:
    """The first run of --editable, or one after something else than the source changed."""
    from ..wheel_build.editable import EditableBuild
    from ..wheel_build.pipeline import Pipeline

    try:
        found, version, place = EditableBuild(Pipeline(request, workspace=workspace, console=console)).make(options)
    except CompileError as error:
        raise _explained(error, options, request, workspace) from error
    console.print()
    console.table(("step", "time"), [(title, human_seconds(seconds)) for title, seconds in console.timings])
    console.print(f"{found.module} {version}, imported from {place}")
    _print_loop(found, console)
    return Result(document={**_summary(found), "version": version, "steps": None})


def _rebuilt(found: Remembered, console: Console) -> Result:
    """Every further run: ninja, and what it does not know of."""
    from ..wheel_build.rebuild_editable import rebuild

    with found.workspace.held():
        try:
            steps = rebuild(found.editable, log=found.workspace.logs / "rebuild.log", reporter=console)
        except CompileError as error:
            text = (found.workspace.logs / "rebuild.log").read_text(encoding="utf-8", errors="replace")
            lines = [line for line in text.splitlines() if ": error:" in line or ": fatal error:" in line]
            tail = lines[:8] or text.splitlines()[-12:]
            raise CompileError("\n".join([str(error), *tail]), hint=error.hint) from error
    console.print(f"{found.module} is rebuilt: {steps} steps of ninja")
    _print_loop(found, console)
    return Result(document={**_summary(found), "steps": steps})


def _print_loop(found: Remembered, console: Console) -> None:
    console.print(f"import it: {found.editable.python} -c 'import {found.module}'")
    console.print(f"next: edit {found.editable.root}, then run the same command again")
    if found.module == "torch":
        console.print(f"      nox -s verify_mps -- --python '{found.editable.python}' --op NAME")


def _summary(found: Remembered) -> dict[str, Any]:
    editable = found.editable
    return {"recipe": found.recipe, "tree": str(editable.root), "python": str(editable.python)}


def _explained(
    error: CompileError, options: Options, request: BuildRequest, workspace: Workspace
) -> CompileError | DiskFull:
    """Return the error with the known cause, if there is one, else with the first error of the log."""
    found_logs = (path for kind in ("compile_wheel", "editable") for path in workspace.logs.glob(f"{kind}-*.log"))
    logs = sorted(found_logs, key=lambda path: path.stat().st_mtime)
    if not logs:
        return error
    shell = f"nox -s shell -- {_words_given(options)} opens a shell in this build's environment"
    return explained(error, logs[-1], release=request.recipe.release, hint=f"{error.hint}; {shell}")


def _words_given(options: Options) -> str:
    """Return the arguments as they were typed, for another command that takes the same."""
    return shlex.join(options.given or (options.recipe or "",))


def _print_result(delivered: tuple[Delivered, ...], build: Pipeline, console: Console) -> None:
    rows = []
    for each in delivered:
        rows.append((each.wheel.path.name, human_bytes(each.wheel.size), each.python, str(each.audit["kind"])))
    console.print()
    console.table(("wheel", "size", "python", "kind"), rows)
    console.table(("step", "time"), [(title, human_seconds(seconds)) for title, seconds in console.timings])
    for receipt in build.context.ledger.receipts:
        if receipt.step == "compile_wheel" and not receipt.skipped:
            _print_compile(receipt, console)
    console.print(f"in {delivered[0].wheel.path.parent}")
    is_torch = build.context.request.wheel.contents.rules == "torch"
    for line in following_lines(delivered[0].wheel.path, is_torch=is_torch, on_mac=sys.platform == "darwin"):
        console.print(line)


def following_lines(wheel: Path, *, is_torch: bool, on_mac: bool) -> Iterator[str]:
    """Yield what to do with the wheel; only a Mac's pip takes it."""
    name = shlex.quote(str(wheel))
    if on_mac:
        yield f"install it: pip install {name}"
    else:
        yield f"it is for a Mac with Apple silicon: copy it there, then `pip install {shlex.quote(wheel.name)}`"
    yield f"next: nox -s {'verify_mps' if is_torch and on_mac else 'audit_wheel'} -- {name}"
    if is_torch:
        yield f"on Linux, without a Mac, its own code: nox -s verify_mps -- {name} --simulated --trust --quick"
        yield f"its Metal kernels: nox -s verify_kernels -- {name}"


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
            console.warn("no hit in the compiler cache: expected for a first build, not for a second one")


def _document(request: BuildRequest, delivered: tuple[Delivered, ...], build: Pipeline) -> dict[str, Any]:
    return {
        "recipe": request.recipe.name,
        "commit": request.source.commit,
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
            {"step": each.step, "skipped": each.skipped, "seconds": each.seconds}
            for each in build.context.ledger.receipts
        ],
    }
