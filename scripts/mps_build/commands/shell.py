"""Open a shell, or run one command, in the exact environment of a build.

The environment is the build's venv, its variables and its source.

The source is fetched and patched and the environment made first, if they are not there yet.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass

from mps_build.common.console import Console
from mps_build.common.process import Command, run_interactive
from mps_build.common.reporting import Result
from mps_build.wheel_build.bare_shell import bare_shell
from mps_build.wheel_build.options import BuildOptions
from mps_build.wheel_build.pipeline import Pipeline
from mps_build.wheel_build.planning import plan

from .shared.options import add_build_options

TASK = ("build", 3)
FIRST = ("--python", "--source", "--editable", "--profile", "--set")
EXITS = (3, 4, 5, 6)
DOCUMENT = "argv:array cwd:string environment:object"
EXAMPLES = ("v2.6.0", "v2.6.0 -- cmake --version", "sample -- ninja -C build -t commands")

# What stands behind a `--` of its own is run; without it, your shell.
TAKES_COMMAND = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(BuildOptions):
    """What the command line says; `command` is what follows a `--`."""

    command: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    add_build_options(parser)
    parser.usage = f"{parser.prog} [RECIPE] [OPTIONS] [-- COMMAND ...]"


def run(options: Options, console: Console) -> Result:
    """Prepare source and environment, then run the command; its exit status is the command's."""
    request, workspace = plan(options)
    build = Pipeline(request, workspace=workspace, console=console)
    tree, environment = build.prepare(request.pythons[0])
    terminal = {name: os.environ[name] for name in ("TERM", "SHELL", "USER", "LOGNAME") if name in os.environ}
    environ = {**environment.environ, **terminal}
    argv = options.command
    if not argv:
        started = bare_shell(os.environ.get("SHELL", "/bin/sh"), folder=workspace.root / "shell")
        argv, environ = started.argv, {**environ, **started.variables}
    console.print(f"in {tree.root}: {' '.join(argv)}")
    status = run_interactive(Command(argv=argv, cwd=tree.root, environ=environ))
    document = {"argv": list(argv), "cwd": str(tree.root), "environment": dict(environment.environ)}
    return Result(document=document, exit_code=status, cause=None if status == 0 else "command")
