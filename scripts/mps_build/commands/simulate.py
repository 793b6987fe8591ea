"""Run a program with an `mps` device on Linux, without a Mac: PyTorch's own MPS host code over a software Metal.

Without a PROGRAM the simulation of RECIPE is built, if it is not there yet, and what it covers is printed. PROGRAM
runs where you stand, with your files; `python` and `python3` in it are the simulated interpreter, and its exit status
is passed on. Nothing needs a superuser, and after the first build nothing needs a network. That build fetches 0.4 GB,
compiles for 7 CPU minutes and takes 2 GB of disk below the cache folder; later starts take seconds.

It shows what PyTorch's host code and Metal kernels do, not what a GPU or Apple's MPSGraph does: it is a rehearsal.

`torch==VERSION` in the place of RECIPE is the official macOS wheel itself: its own machine code and Metal kernels.
Without a RECIPE it is the newest release.
"""

from __future__ import annotations

import argparse
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.console import Console
from mps_build.common.cores import usable_cores, within_quota
from mps_build.common.errors import UsageError
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.reporting import Result
from mps_build.common.wheels.download import file_digest
from mps_build.common.workspace import expanded
from mps_build.simulation.builder.build import Built
from mps_build.simulation.kept import cache_key
from mps_build.simulation.libraries import libraries_of
from mps_build.simulation.official import session as official
from mps_build.simulation.official.inventory import Inventory, Lacking, read_imports, take
from mps_build.simulation.official.metal_build import lacking_in
from mps_build.simulation.official.table import read_table
from mps_build.simulation.session import (
    Coverage,
    check_line,
    check_macos,
    measure,
    program_argv,
    provide,
    run_program,
    simulated_environ,
)

from .shared.options import add_jobs, add_trust, count
from .shared.simulation import SimulationOptions, add_simulation_options, named_wheel, names_wheel

TASK = ("without_a_mac", 1)
FIRST = ("--macos", "--with", "--source", "--venv", "--timing")
EXITS = (3, 4)
EXTRA = "simulate"
DOCUMENT = (
    "release:string macos:string ?torch:string ?argv:array ?objective_files:integer ?selectors:object "
    "?registrations:integer ?library_bytes:integer ?build_cpu_seconds:number "
    "?cache_key:string ?official:boolean ?python:string ?wheel:string ?sha256:string ?imports:object ?bound:array "
    "?not_provided:array"
)
EXAMPLES = (
    "v2.6.0",
    "v2.6.0 --macos 14.4 -- python train.py",
    "v2.6.0 --with accelerate -- python -m pytest tests/",
    "v2.6.0 --timing 7 -- python train.py",
    "v2.6.0 --source ~/pytorch --rebuild",
    "v2.6.0 --source ~/pytorch --torch built -- python bug.py",
    "torch==2.15.0 -- python train.py",
    "wheelhouse/torch-2.6.0-cp311-none-macosx_11_0_arm64.whl --trust -- python train.py",
)
NEWEST = "torch"  # a requirement without a version: the newest that pip's settings allow
# What stands behind a `--` of its own is run.
TAKES_COMMAND = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(SimulationOptions):
    """What the command line says; `command` is what follows a `--`."""

    recipe: str
    rebuild: bool
    jobs: int
    packages: tuple[str, ...]
    venv: Path | None
    timing: int | None
    as_mac: bool
    cache_key: bool
    trust: bool
    interpreter: str | None
    command: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument(
        "recipe",
        metavar="RECIPE",
        nargs="?",
        default=NEWEST,
        help="torch==2.15.0 or a .whl: the macOS wheel itself (default: the newest); v2.6.0: that release's source",
    )
    add_simulation_options(parser)
    parser.add_argument("--rebuild", action="store_true", help="compile the back end again")
    add_jobs(parser, default=usable_cores())
    parser.add_argument(
        "--with", dest="packages", metavar="PACKAGE", action="append", default=[], help="install a package for PROGRAM"
    )
    parser.add_argument(
        "--venv", metavar="DIR", type=Path, help="an environment for PROGRAM's packages; made if missing"
    )
    parser.add_argument(
        "--timing",
        metavar="SEED",
        type=count,
        help="draw when commits run, and in which order threads; the same replays",
    )
    parser.add_argument(
        "--as-mac",
        action="store_true",
        help="platform.processor() and machine() answer as on a Mac: Lightning asks them",
    )
    parser.add_argument(
        "--cache-key",
        action="store_true",
        help="print the name under which a CI keeps the cache folder (MPS_BUILD_CACHE), and do nothing else",
    )
    add_trust(parser, "run a macOS wheel that is a file, and what the package index serves without a sha256")
    parser.add_argument(
        "--interpreter",
        metavar="PYTHON",
        help="what runs a wheel: 3.13, or the path of a Python for arm64 Linux (default: Debian's, 3.11 where it can)",
    )
    parser.usage = f"{parser.prog} [RECIPE] [OPTIONS] [-- PROGRAM ...]"


def run(options: Options, console: Console) -> Result:
    """Build the simulation, then run the program, or print what is covered."""
    check_macos(options.system)
    if options.cache_key:
        return _print_key(options, console)
    if names_wheel(options.recipe):
        return _run_wheel(options, console)
    if options.interpreter:
        raise UsageError("--interpreter is for a wheel", hint="such as torch==2.15.0")
    if not options.command and (options.packages or options.venv or options.timing is not None):
        raise UsageError("--with, --venv and --timing are for a program: it stands behind `--`")
    version = find_recipe(options.recipe).version
    source = expanded(options.source) if options.source else None
    built = provide(
        version,
        source=source,
        torch=options.torch,
        rebuild=options.rebuild,
        trust=options.trust,
        jobs=options.jobs,
        reporter=console,
    )
    if options.command:
        venv = expanded(options.venv).absolute() if options.venv else None
        check_line(venv)
        libraries = libraries_of(built, packages=options.packages, folder=venv, reporter=console, trust=options.trust)
        argv = program_argv(built, options.command, libraries=libraries)
        environ = simulated_environ(
            built,
            macos=options.system,
            environ=within_quota(_environ(options)),
            timing=options.timing,
            libraries=libraries,
        )
        status = run_program(argv, environ=environ)
        document = {"release": version, "macos": options.system, "argv": list(argv)}
        return Result(document=document, exit_code=status, cause=None if status == 0 else "program")
    covered = measure(built, macos=options.system)
    _print(built, covered, console, options=options)
    return Result(document=document_of(built, covered, macos=options.system))


def _print_key(options: Options, console: Console) -> Result:
    """Print the name of what this target leaves in the cache folder; nothing is fetched for it."""
    if not names_wheel(options.recipe):
        target = f"v{find_recipe(options.recipe).version}"
    elif options.recipe.endswith(".whl"):
        target = file_digest(Path(named_wheel(options.recipe))) or ""
        if not target:
            raise UsageError(f"{options.recipe}: cannot be read", hint="name a wheel that is there")
    else:
        target = named_wheel(options.recipe)
        if "==" not in target:
            raise UsageError(
                "--cache-key needs a version: only an index knows the newest", hint="such as torch==2.15.0"
            )
    key = cache_key(target, packages=options.packages)
    console.print(key)
    return Result(document={"release": target, "macos": options.system, "cache_key": key})


def _environ(options: Options) -> dict[str, str]:
    """Return the environment that a program's is made from."""
    timing = {} if options.timing is None else {"MPS_BUILD_TIMING": str(options.timing)}
    return {**os.environ, **({"MPS_BUILD_AS_MAC": "1"} if options.as_mac else {}), **timing}


def _run_wheel(options: Options, console: Console) -> Result:
    given: dict[str, object] = {
        "--source": options.source,
        "--torch": options.torch,
        "--rebuild": options.rebuild,
        "--venv": options.venv,
    }
    given |= {"--with": options.packages}
    if unfit := [name for name, value in given.items() if value]:
        raise UsageError(
            f"{', '.join(unfit)}: not for an official wheel",
            hint="packages: `nox -s simulate -- … -- pip install NAME`",
        )
    if options.timing is not None and not options.command:
        raise UsageError("--timing is for a program: it stands behind `--`")
    ready = official.prepare(
        official.Request(target=named_wheel(options.recipe), is_trusted=options.trust, interpreter=options.interpreter),
        console,
    )
    release = str(ready.wheel.version)
    if options.command:
        # Not among what the program prints.
        words = f"torch {release}, the macOS wheel's own code, answers as macOS {options.system}; this is a rehearsal"
        Console(to_stderr=True).print(words, style="dim")
        status = official.run(ready, options.command, environ=_environ(options), macos=options.system)
        document = {"release": release, "macos": options.system, "official": True, "argv": list(options.command)}
        return Result(document=document, exit_code=status, cause=None if status == 0 else "program")
    taken = take(read_imports(ready.site), read_table())
    absent = lacking_in(ready.metal, ready.site)
    _print_wheel(ready, taken, absent, console, target=options.recipe)
    return Result(
        document={
            "release": release,
            "macos": options.system,
            "official": True,
            "python": ready.interpreter.version,
            "wheel": ready.wheel.path.name,
            "sha256": ready.wheel.sha256,
            "selectors": {
                "needed": absent.sent_selectors,
                "implemented": absent.sent_selectors - len(absent.selectors),
                "missing": list(absent.selectors),
            },
            "imports": dict(taken.kinds),
            "bound": [list(each) for each in taken.bound],
            "not_provided": [list(each) for each in taken.missing],
        }
    )


def _print_wheel(ready: official.Official, taken: Inventory, absent: Lacking, console: Console, *, target: str) -> None:
    rows = [("wheel", ready.wheel.path.name), ("sha256", ready.wheel.sha256), ("Python", ready.interpreter.version)]
    rows += [(f"imports of macOS: {kind}", str(count)) for kind, count in taken.kinds.items()]
    sent = absent.sent_selectors
    rows += [("selectors that it sends", f"{sent - len(absent.selectors)} of {sent} implemented")]
    console.table(("what", "value"), rows)
    for name, library in taken.missing:
        console.print(f"not provided: {name} of {library}")
    for name in (*absent.classes, *absent.symbols, *absent.selectors):
        console.print(f"the software Metal does not have {name}")
    console.print("its MPS back end runs its own Metal kernels over a software Metal; this is a rehearsal")
    console.print(f"run a program with it: nox -s simulate -- {shlex.quote(target)} -- python FILE.py", style="bold")


def document_of(built: Built, covered: Coverage, *, macos: str) -> dict[str, Any]:
    """Return what is covered as JSON."""
    return {
        "release": built.release.version,
        "macos": macos,
        "torch": "built" if built.site else "debian",
        "objective_files": built.objective_files,
        "selectors": {"needed": covered.needed, "implemented": covered.implemented, "missing": list(covered.missing)},
        "registrations": covered.registrations,
        "library_bytes": built.library.stat().st_size,
        "build_cpu_seconds": built.cpu_seconds,
    }


def _print(built: Built, covered: Coverage, console: Console, *, options: Options) -> None:
    rows = [
        ("Objective-C++ files of the MPS back end", str(built.objective_files)),
        ("selectors that they send", f"{covered.implemented} of {covered.needed} implemented"),
        ("operators registered for mps", str(covered.registrations)),
        ("Linux's torch", f"built from {built.tree}" if built.site else "Debian's, without MPS"),
        ("library", f"{built.library.stat().st_size / 1e6:.1f} MB"),
        ("built in", f"{built.cpu_seconds:.0f} CPU seconds"),
    ]
    console.table(("covered", "count"), rows)
    if covered.missing:
        console.print(f"not implemented: {', '.join(covered.missing)}")
    console.print(
        f"PyTorch {built.release.version} answers as on macOS {options.system}; this is a rehearsal: "
        "a GPU's numbers, MPSGraph's own faults and timing do not show here"
    )
    words = [f"v{built.release.version}", *(("--source", str(options.source)) if options.source else ())]
    words += ["--torch", options.torch] if options.torch else []
    console.print(f"run a program with it: nox -s simulate -- {shlex.join(words)} -- python FILE.py", style="bold")
