"""Wheel -> interpreter: one venv for one torch, kept, and over it what a command needs besides.

A torch with its libraries is 0.7 to 1 GB, and several commands want the same one with different packages beside it. So
the venv of a torch holds it and pytest; a second one, which finds the first's packages by a .pth file, holds the rest.
pip counts what the first has as installed; where another version is needed, the second's comes first on the path.
A Python that is not ours gets nothing into it: what it lacks goes into a folder beside it.
https://docs.python.org/3/library/site.html
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from mps_build.common.errors import BuildEnvironmentError, disk_full
from mps_build.common.files import locked
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.pip_call import (
    Limits,
    certificate_fault,
    forbidden_by_settings,
    limited_pip,
    limits_of_run,
    refused_unchecked,
    run_pip,
)
from mps_build.common.workspace import remove_tree

from .interpreter import Interpreter


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentStore:
    """Where environments are kept, and how pip reaches the world.

    `environ` forbids bytecode: pip looks at interpreters that are not ours (make_overlay).
    What it brings will run; `trust` takes it without a hash of the index too.
    `wants_cuda`: torch is to run on a GPU of NVIDIA's.
    """

    cache: Path
    environ: Mapping[str, str]
    log: Path
    reporter: Reporter
    offline: bool = False
    trust: bool = False
    wants_cuda: bool = False

    @property
    def limits(self) -> Limits:
        """What pip is held to."""
        return limits_of_run(trust=self.trust)


OLDEST_PYTEST = Version("7")
PYTEST = ("pytest>=7,<10",)
_READY = "ready"
_LAYER = "mps-build-torch.pth"


def make_environment(
    wheel: Path, sha256: str, interpreter: Interpreter, store: EnvironmentStore, *, extras: tuple[str, ...] = ()
) -> Path:
    """Return the Python of a venv that has the wheel, its requirements, pytest and `extras`; made once, then found.

    By `venv` and pip, not uv: where an index is mirrored to disk, only pip knows.

    Raises:
        BuildEnvironmentError: pip cannot install it.
    """
    key = _key(sha256, interpreter.version, str(interpreter.base or interpreter.executable), *PYTEST)
    venv = store.cache / "environments" / key
    with _held(venv):
        if not _is_ready(venv):
            remove_tree(venv)
            _make_venv(interpreter.executable, venv, store)
            _install(f"Install {wheel.name}", _pip_of(venv, store), (str(wheel), *PYTEST), store)
            (venv / _READY).write_bytes(os.fsencode(f"{wheel.name}\n"))
    return _lay_over(venv, wheel, extras, store) if extras else venv / "bin" / "python"


def _lay_over(base: Path, wheel: Path, extras: tuple[str, ...], store: EnvironmentStore) -> Path:
    """Return the Python of a venv that has `extras` and sees all that `base` has.

    The wheel is named again: a package that would bring another torch is refused, as in one venv.
    """
    venv = base.with_name(f"{base.name}-{_key(*extras)[:8]}")
    with _held(venv):
        if not _is_ready(venv):
            remove_tree(venv)
            _make_venv(base / "bin" / "python", venv, store, "--without-pip")
            (own,), (theirs,) = (list(each.glob("lib/python*/site-packages")) for each in (venv, base))
            (own / _LAYER).write_bytes(os.fsencode(f"{theirs}\n"))
            _install(
                f"Install {', '.join(extras)} beside {wheel.name}", _pip_of(venv, store), (str(wheel), *extras), store
            )
            (venv / _READY).write_bytes(os.fsencode(f"{', '.join(extras)}\n"))
    return venv / "bin" / "python"


def _key(*parts: str) -> str:
    return hashlib.sha256(os.fsencode("\n".join(parts))).hexdigest()[:20]


def _is_ready(venv: Path) -> bool:
    return (venv / _READY).is_file() and (venv / "bin" / "python").exists()


def _pip_of(venv: Path, store: EnvironmentStore) -> tuple[str, ...]:
    return (
        *limited_pip(venv / "bin" / "python", limits=store.limits),
        "--disable-pip-version-check",
        "--no-input",
        "install",
    )


def make_overlay(interpreter: Interpreter, store: EnvironmentStore) -> Path:
    """Return a folder with pytest for an interpreter that is not ours: it goes on PYTHONPATH, nothing goes in.

    Raises:
        BuildEnvironmentError: pip cannot fill it.
    """
    key = f"{interpreter.implementation.lower()}-{interpreter.short}-{interpreter.platform}-{interpreter.machine}"
    overlay = store.cache / "overlays" / key
    with _held(overlay):
        if (overlay / _READY).is_file():
            return overlay
        remove_tree(overlay)
        # pip looks at that interpreter and writes beside it; without bytecode its own folders stay as they are.
        pip = (
            *own_pip(store),
            "--python",
            str(interpreter.executable),
            "install",
            "--no-compile",
            "--target",
            str(overlay),
        )
        _install(f"Fetch pytest for {interpreter.executable}", pip, PYTEST, store)
        (overlay / _READY).write_bytes(os.fsencode(f"{interpreter.executable}\n"))
    return overlay


class _Progress:
    """Which package pip is at, from what it prints: one line a package, then all their names once more."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter, self._count = reporter, 0

    def heard(self, line: str) -> None:
        """Take a line of pip's."""
        word, _, rest = line.strip().partition(" ")
        if word in ("Collecting", "Processing"):
            self._count += 1
        if word in ("Collecting", "Processing", "Downloading"):
            self._reporter.advanced(self._count, note=f"{word.lower()} {Path(rest.split(' (')[0]).name}")
        elif line.startswith("Installing collected packages"):
            self._reporter.advanced(self._count, note="unpacking")


def _install(what: str, pip: tuple[str, ...], wanted: tuple[str, ...], store: EnvironmentStore) -> None:
    """Run a `pip install`.

    Raises:
        BuildEnvironmentError: it failed; the message holds its last lines.
        UsageError: pip's settings do not allow what is wanted.
        RefusedForSafety: the index gives no hash of a package.
    """
    index = ("--no-index",) if store.offline else ()
    store.reporter.started(what, unit="packages")
    try:
        command = Command(argv=(*pip, *index, *wanted), environ=store.environ)
        heard = _Progress(store.reporter).heard
        run_pip(command, log=store.log, tell=store.reporter.line, on_line=heard, every=False)
    except CommandFailed as failure:
        if full := disk_full("\n".join(failure.tail), during=what):
            raise full from failure
        text = "\n".join(failure.tail)
        if forbidden := forbidden_by_settings(text, wanted=", ".join(wanted)):
            raise forbidden from failure
        if unchecked := refused_unchecked(text, wanted=what):
            raise unchecked from failure
        if fault := certificate_fault(text, wanted=what):
            raise BuildEnvironmentError(fault[0], hint=fault[1]) from failure
        raise BuildEnvironmentError(
            f"{what}: {failure}:\n" + "\n".join(failure.tail[-6:]), hint=f"the whole output is in {failure.log}"
        ) from failure
    finally:
        store.reporter.done()


def own_pip(store: EnvironmentStore) -> tuple[str, ...]:
    """Return a pip of ours: the session's venv may have none (uv makes them without)."""
    venv = store.cache / "pip" / f"{sys.version_info.major}.{sys.version_info.minor}"
    with _held(venv):
        if not (venv / _READY).is_file():
            remove_tree(venv)
            _make_venv(Path(sys.executable), venv, store)
            (venv / _READY).write_text("")
    return (*limited_pip(venv / "bin" / "python", limits=store.limits), "--disable-pip-version-check", "--no-input")


def _make_venv(python: Path, venv: Path, store: EnvironmentStore, *options: str) -> None:
    try:
        run_logged(Command(argv=(str(python), "-m", "venv", *options, str(venv)), environ=store.environ), log=store.log)
    except CommandFailed as failure:
        raise BuildEnvironmentError(
            f"{python} cannot make a venv: " + "\n".join(failure.tail[-3:]),
            hint="a Python from a system package may need its venv package (Debian: python3-venv)",
        ) from failure


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a folder while it is made: a second run waits, and then finds it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.parent / f".{folder.name}.lock"):
        yield
