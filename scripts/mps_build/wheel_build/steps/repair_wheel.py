"""Wheel -> wheel: on macOS, delocate copies in what the wheel must carry and signs it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from mps_build.common.errors import BuildEnvironmentError, CompileError
from mps_build.common.process import Command, CommandFailed, capture, run_logged
from mps_build.common.workspace import remove_tree

_MODULE = "delocate.cmd.delocate_wheel"
_PROGRAM = Path(__file__).with_name("delocate_stored.py")


def check_delocate(python: Path) -> None:
    """Refuse an interpreter without delocate: before the compile, which takes an hour, and not after it.

    Raises:
        BuildEnvironmentError: it is not installed there.
    """
    asked = capture(Command(argv=(str(python), "-c", f"import {_MODULE}")), timeout_seconds=60)
    if not asked.ok:
        why = (asked.stderr.strip().splitlines() or [f"exit {asked.exit}"])[-1]
        raise BuildEnvironmentError(
            f"delocate, which repairs and signs the wheel, does not run under {python}: {why}",
            hint=f"{python} -m pip install 'delocate>=0.13' (on a Mac it is installed with mps-build)",
        )


def repair_wheel(
    wheel: Path,
    *,
    python: Path,
    output: Path,
    environ: Mapping[str, str],
    exclude: tuple[str, ...],
    log: Path,
    ignore_missing: bool = False,
    wrap: Callable[[Command], Command] = lambda command: command,
) -> Path:
    """Return the repaired wheel in `output`; its members are stored, and finish_wheel compresses them.

    Args:
        python: an interpreter with delocate (the tool's own, not the build's).
        exclude: libraries of another wheel (torch, for companions) that must not be copied in:
            https://github.com/pytorch/vision/issues/4401
        ignore_missing: a companion's `@rpath/libtorch.dylib` leads nowhere until torch is loaded, and delocate stops
            at it before it looks at `exclude`; what else is missing, the audit tells (P5).
        wrap: brings the command to where delocate's tools are.

    Raises:
        CompileError: delocate failed; its last words are in the message.
    """
    remove_tree(output)
    output.mkdir(parents=True)
    program = _PROGRAM.read_text(encoding="utf-8")
    argv = [str(python), "-c", program, "--require-archs", "arm64", "-v", "-w", str(output)]
    argv += ["--ignore-missing-dependencies"] if ignore_missing else []
    for name in exclude:
        argv += ["-e", name]
    try:
        run_logged(wrap(Command(argv=(*argv, str(wheel)), environ=environ)), log=log)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        raise CompileError(f"delocate failed:\n{text}", hint=f"the whole output is in {log}") from failure
    return next(output.glob("*.whl"))
