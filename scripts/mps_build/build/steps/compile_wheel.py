"""Configured tree -> wheel: one command for both eras, `python -m build`, watched through ninja's counters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from mps_build.common.errors import CompileError
from mps_build.common.process import Command, CommandFailed, Reporter, run_logged
from mps_build.common.workspace import remove_tree

from .configure import Backend, forwarded

_NINJA = re.compile(r"^\[(\d+)/(\d+)\] ?(.*)")


def build_command(
    backend: Backend,
    *,
    python: Path,
    source: Path,
    build: Path,
    output: Path,
    environ: Mapping[str, str],
    overrides: Path,
) -> Command:
    """Return the call that compiles and packs.

    No isolation: the environment is the locked one. The dependency check is skipped because old
    releases list requirements (dataclasses, future) that no supported Python wants.
    """
    argv = [str(python), "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check"]
    argv += ["--outdir", str(output)]
    if backend == "setuptools":
        whole = {**environ, "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": str(overrides)}
        return Command(argv=(*argv, str(source)), cwd=source, environ=whole)
    given = config_settings(python=python, build=build, environ=environ, overrides=overrides)
    argv += [f"-C{name}={value}" for name, value in given.items()]
    return Command(argv=(*argv, str(source)), cwd=source, environ=environ)


def config_settings(*, python: Path, build: Path, environ: Mapping[str, str], overrides: Path) -> dict[str, str]:
    """Return what scikit-build-core is told: the folder that was configured, and the same values as there."""
    defines = forwarded(environ) | {
        "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": str(overrides),
        "Python_EXECUTABLE": str(python),
    }
    return {"build-dir": str(build), **{f"cmake.define.{name}": value for name, value in defines.items()}}


def compile_wheel(command: Command, *, output: Path, log: Path, reporter: Reporter) -> Path:
    """Run the build and return the one wheel it made in `output` (emptied before).

    Raises:
        CompileError: the build failed, or made no wheel, or several. `tail` holds the last lines.
    """
    remove_tree(output)
    output.mkdir(parents=True)
    run_build(command, log=log, reporter=reporter)
    wheels = sorted(output.glob("*.whl"))
    if len(wheels) != 1:
        names = ", ".join(wheel.name for wheel in wheels) or "none"
        raise CompileError(f"the build ended well but made not one wheel: {names}", hint=f"see {log}")
    return wheels[0]


def run_build(command: Command, *, log: Path, reporter: Reporter, title: str = "Compile") -> int:
    """Run a build, its progress read from ninja's counters; return how many steps ninja had.

    Raises:
        CompileError: it failed. `log` holds all of its output.
    """
    log.unlink(missing_ok=True)
    reporter.started(title)
    steps = 0

    def watch(line: str) -> None:
        nonlocal steps
        if match := _NINJA.match(line.strip()):
            done, total, what = match.groups()
            steps = int(total)
            reporter.advanced(int(done), total=steps, note=_short(what))

    try:
        run_logged(command, log=log, on_line=watch)
    except CommandFailed as failure:
        raise CompileError(f"the build failed ({_reason(failure)})", hint=f"the whole output is in {log}") from failure
    reporter.done()
    return steps


def _short(what: str) -> str:
    """Return the file a ninja line speaks of, without its folders."""
    return what.rsplit("/", 1)[-1][:48]


def _reason(failure: CommandFailed) -> str:
    return f"exit {failure.exit_code}" if failure.exit_code >= 0 else f"signal {-failure.exit_code}"
