"""Try a macOS recipe on Linux: patches, lock, configure, C++.

Its patches are applied to a real tree, its locked requirements resolved for a Mac and installed here, the tree is
configured, and each C++ file that a patch touches is compiled. --wheel goes on to a Linux wheel that computes;
--darwin configures for macOS arm64 with MPS on, with zig and a stub SDK, and compiles C++ to Mach-O, with --wheel
everything, Objective-C++ too, to an audited wheel that is compared with the official one;
--companions builds torchvision and torchaudio against that Linux wheel, or against --torch.

Everything lies below work/rehearsal/ and is made once: run the same command again to continue where it stopped.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mps_build.common.console import Console, human_seconds
from mps_build.common.cores import usable_cores
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError, CompileError, DiskFull, UsageError
from mps_build.common.process import Command, capture
from mps_build.common.receipts import StepResult
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.recipe.locks import lock_of
from mps_build.common.recipe.model import Recipe
from mps_build.common.reporting import Result
from mps_build.wheel_build.failure import explained
from mps_build.wheel_build.rehearsal.companions import plan_trial, rehearse_companions
from mps_build.wheel_build.rehearsal.darwin import rehearse_darwin
from mps_build.wheel_build.rehearsal.linux import rehearse_linux
from mps_build.wheel_build.rehearsal.lock_trial import try_lock_for_mac
from mps_build.wheel_build.rehearsal.session import Rehearsal, rehearsal_folder
from mps_build.wheel_build.rehearsal.source import choose_origin
from mps_build.wheel_build.rehearsal.whole.rehearsal import Whole, rehearse_whole

from .shared.options import add_jobs, count

TASK = ("without_a_mac", 3)
FIRST = ("--wheel", "--darwin", "--source", "--only", "--cache")
EXITS = (3, 4, 5, 6, 7, 8)
DOCUMENT = (
    "recipe:string mode:string tree:string not_proved:array|string cpu_seconds:number tried:array "
    "steps:array ?wheel:string|null ?audit:object ?parity:object"
)
EXAMPLES = (
    "v2.6.0",
    "v2.6.0 --wheel",
    "v2.6.0 --darwin --draw 60 --seed 1",
    "v2.6.0 --darwin --wheel --cache ccache",
    "v1.13.1 --darwin",
    "v2.6.0 --companions",
)
NOT_PROVED = (
    "not proved by any of this: that all Objective-C++ compiles (`--darwin --wheel` does that), that Metal does "
    "(it needs Apple's compiler), that the wheel loads on a Mac, that MPS gives right answers"
)
# A whole rehearsal compiles the Objective-C++, against declarations of ours.
NOT_PROVED_WHOLE = (
    "not proved by any of this: that Metal compiles (it needs Apple's compiler), "
    "that the wheel loads on a Mac, that MPS gives right answers"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    recipe: str
    wheel: bool
    darwin: bool
    companions: bool
    torch: Path | None
    source: tuple[str, ...]
    only: tuple[str, ...]
    tree: Literal["debian", "git"] | None
    draw: int
    seed: int
    jobs: int
    mirror: str | None
    cache: Literal["ccache"] | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("recipe", metavar="RECIPE", help="v2.6.0, 2.6, a path")
    parser.add_argument("--wheel", action="store_true", help="also build a Linux wheel, import it and compute with it")
    parser.add_argument(
        "--darwin",
        action="store_true",
        help="configure for macOS arm64 with zig and a stub SDK; with --wheel: the whole build, compared",
    )
    parser.add_argument(
        "--companions", action="store_true", help="build torchvision and torchaudio against the Linux wheel"
    )
    parser.add_argument(
        "--cache", choices=("ccache",), help="with --darwin --wheel: use a compiler cache in the Debian root"
    )
    parser.add_argument(
        "--torch", metavar="WHEEL", type=Path, help="with --companions: a torch wheel for the root's Python"
    )
    parser.add_argument(
        "--source",
        metavar="NAME=PATH",
        action="append",
        default=[],
        help="with --companions: another source than Debian's tarball",
    )
    parser.add_argument(
        "--only", metavar="NAME", action="append", default=[], help="with --companions: build only this one"
    )
    parser.add_argument(
        "--tree",
        choices=("debian", "git"),
        help="Debian's source package, or the pinned commit (default: what there is)",
    )
    parser.add_argument(
        "--draw",
        metavar="N",
        type=count,
        default=60,
        help="with --darwin: number of torch_cpu files to compile (default: 60)",
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, default=1, help="with --darwin: seed of the choice of files (default: 1)"
    )
    add_jobs(parser, default=usable_cores())
    parser.add_argument(
        "--mirror", metavar="ADDRESS", help="the Debian archive (default: the one this host's apt uses)"
    )


def run(options: Options, console: Console) -> Result:
    """Run the rehearsal that the options choose, and print what each part shows."""
    recipe = find_recipe(options.recipe)
    if recipe.source.kind == "embedded":
        raise UsageError(
            f"{recipe.name} needs no rehearsal",
            hint=f"it can be built on this system: nox -s build_wheel -- {recipe.name}",
        )
    if (options.torch or options.source or options.only) and not options.companions:
        raise UsageError("--torch, --source and --only need --companions", hint="add --companions")
    trial = (
        plan_trial(recipe, torch=options.torch, sources=options.source, only=options.only)
        if options.companions
        else None
    )
    mode = _mode(options)
    rehearsal = Rehearsal(recipe, mode=mode, jobs=options.jobs, console=console)
    origin = choose_origin(recipe, needs_root=mode != "linux", wanted=options.tree)
    wheel: Path | None = None
    whole: Whole | None = None
    with console.step("Lock for a Mac"):
        _try_lock(rehearsal, recipe, console)
    try:
        with rehearsal.workspace.held():
            if trial:
                torch = trial.torch.path if trial.torch else _torch_for_companions(rehearsal, mirror=options.mirror)
                rehearse_companions(rehearsal, trial, torch=torch, mirror=options.mirror)
            elif mode == "darwin-wheel":
                whole = rehearse_whole(rehearsal, mirror=options.mirror, cache=options.cache is not None)
            elif options.darwin:
                rehearse_darwin(rehearsal, count=options.draw, seed=options.seed, mirror=options.mirror)
            else:
                wheel = rehearse_linux(rehearsal, origin=origin, wheel=options.wheel, mirror=options.mirror)
    except CompileError as error:
        raise _explained(error, rehearsal) from error
    # Ours too: what packs, finishes and compares a wheel is this process.
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu_seconds = round(sum(each.ru_utime + each.ru_stime for each in used), 1)
    not_proved = NOT_PROVED_WHOLE if whole else NOT_PROVED
    _print_result(rehearsal, wheel, console, cpu_seconds=cpu_seconds, not_proved=not_proved)
    document = {
        **rehearsal.document(),
        "mode": mode,
        "tree": origin,
        "not_proved": not_proved,
        "cpu_seconds": cpu_seconds,
    }
    if whole:
        console.print(f"wheel: {whole.made.wheel.path}\nparity: {whole.page}")
        name = shlex.quote(str(whole.made.wheel.path))
        console.print(f"next: nox -s verify_mps -- {name} --simulated --trust --quick")
        return Result(document={**document, **whole.document()})
    return Result(document={**document, "wheel": str(wheel) if wheel else None})


def _mode(options: Options) -> str:
    """Return what is rehearsed, as the work folder names it.

    Raises:
        UsageError: options that do not go together.
    """
    if options.companions and (options.wheel or options.darwin):
        raise UsageError(
            "--companions cannot be combined with --wheel and --darwin", hint="leave --wheel and --darwin out"
        )
    if options.cache and not (options.darwin and options.wheel):
        raise UsageError("--cache is for the whole build", hint="add --darwin --wheel")
    if options.darwin and options.wheel:
        return "darwin-wheel"
    return next((name for name in ("darwin", "wheel", "companions") if getattr(options, name)), "linux")


def _torch_for_companions(rehearsal: Rehearsal, *, mirror: str | None) -> Path:
    """Return the wheel of `rehearse --wheel`, made if it is not there yet."""
    first = Rehearsal(rehearsal.recipe, mode="wheel", jobs=rehearsal.jobs, console=rehearsal.console)
    with first.workspace.held():
        wheel = rehearse_linux(first, origin="debian", wheel=True, mirror=mirror)
    assert wheel is not None  # wheel=True ends with one, or raises
    rehearsal.tried += first.tried
    rehearsal.ledger.receipts += first.ledger.receipts
    return wheel


def _try_lock(rehearsal: Rehearsal, recipe: Recipe, console: Console) -> None:
    version = recipe.default_python
    lock = lock_of(recipe, version)
    scratch = rehearsal_folder() / "pip"
    python = scratch / "venv" / "bin" / "python"
    environ = fetch_environ(os.environ)
    if not capture(Command(argv=(str(python), "-m", "pip", "--version"), environ=environ)).ok:
        argv = (sys.executable, "-m", "venv", "--clear", str(python.parents[1]))
        made = capture(Command(argv=argv, environ=environ), timeout_seconds=120)
        if not made.ok:
            reason = made.stderr.strip() or made.stdout.strip()
            raise BuildEnvironmentError(
                f"no venv could be made: {reason}", hint="on Debian: apt-get install python3-venv"
            )

    def resolve() -> StepResult:
        built = try_lock_for_mac(
            lock, python=python, version=version, macos=recipe.host.macos, scratch=scratch, environ=environ
        )
        return StepResult(facts={"built": built})

    inputs = {"lock": lock.text, "python": version, "macos": recipe.host.macos}
    receipt = rehearsal.ledger.run("lock_for_a_mac", version=1, inputs=inputs, action=resolve)
    built = receipt.facts["built"]
    wheels = f"{lock.name} resolves for macOS {recipe.host.macos} arm64"
    result = wheels + (f"; built from source there: {', '.join(built)}" if built else "")
    rehearsal.note("lock for a Mac", result, "every file is available with the hash in the lock", receipt)
    console.line(result)


def _explained(error: CompileError, rehearsal: Rehearsal) -> CompileError | DiskFull:
    """Return the error with the known cause, if there is one, else with the first error of the log."""
    logs = sorted(rehearsal.workspace.logs.glob("compile*.log"), key=lambda path: path.stat().st_mtime)
    if not logs or "works" in str(error) or "triage" in error.document:
        return error
    return explained(error, logs[-1], release=rehearsal.recipe.release, document=rehearsal.document())


def _print_result(
    rehearsal: Rehearsal, wheel: Path | None, console: Console, *, cpu_seconds: float, not_proved: str
) -> None:
    console.print()
    rows = [(each.what, each.result, each.proves) for each in rehearsal.tried]
    console.table(("tried", "result", "proves"), rows)
    console.table(("step", "time"), [(title, human_seconds(seconds)) for title, seconds in console.timings])
    console.print(f"{human_seconds(cpu_seconds)} of CPU, all programs together")
    console.print(not_proved)
    if wheel:
        console.print(f"wheel: {wheel}")
        console.print("it runs only in the Debian root, because it needs its libraries")
