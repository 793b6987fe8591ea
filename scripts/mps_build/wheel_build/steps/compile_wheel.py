"""Configured tree -> wheel: one command for both eras, `python -m build`, watched through ninja's counters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mps_build.common.errors import CompileError
from mps_build.common.process import Command
from mps_build.common.reporter import Reporter
from mps_build.common.workspace import remove_tree

from ..backend import Backend, config_settings
from ..ninja import run_build


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
        raise CompileError(f"the build ended without an error, but did not make one wheel: {names}", hint=f"see {log}")
    return wheels[0]
