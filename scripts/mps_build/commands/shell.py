"""Open a shell, or run one command, in the exact environment of a build.

The environment is the build's venv, its variables and its source.

The source is fetched and patched and the environment made first, if they are not there yet.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.process import Command, run_interactive
from mps_build.common.reporting import Result
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


_PROMPT = "(mps-build) "


@dataclass(frozen=True, slots=True, kw_only=True)
class BareShell:
    """How a shell is started: its words, and the variables that keep its start-up files away."""

    argv: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)


def bare_shell(program: str, *, folder: Path) -> BareShell:
    """Return how `program` starts as a shell in the environment it inherits, without its start-up files.

    Homebrew's and conda's lines in ~/.zshrc put their folders in front of PATH; macOS' /etc/zprofile sorts PATH anew
    (path_helper), for login shells alone.

    Args:
        folder: for zsh, which has no option for a prompt of ours: a start-up folder that holds nothing but it.
    """
    name = Path(program).name
    if name == "zsh":
        # -d: nothing of /etc but zshenv; ZDOTDIR: our file in the place of ~/.zshenv and ~/.zshrc.
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".zshrc").write_text(f"PROMPT='{_PROMPT}%1~ %# '\n", encoding="utf-8")
        return BareShell(argv=(program, "-d", "-i"), variables={"ZDOTDIR": str(folder)})
    if name == "bash":
        return BareShell(argv=(program, "--noprofile", "--norc", "-i"), variables={"PS1": f"{_PROMPT}\\W \\$ "})
    if name == "fish":
        return BareShell(argv=(program, "--no-config", "-i"))
    if name in ("tcsh", "csh"):
        return BareShell(argv=(program, "-f"))
    # POSIX: an interactive sh, dash or ksh reads the file that ENV names.
    return BareShell(argv=(program, "-i"), variables={"ENV": "", "PS1": f"{_PROMPT}$ "})
