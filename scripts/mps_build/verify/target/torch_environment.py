"""Wheel -> interpreter: a venv kept by wheel, Python and extras; for a Python that is not ours, an overlay."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from mps_build.common.errors import BuildEnvironmentError, UsageError, disk_full
from mps_build.common.opening import open_regular, open_to_append
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.reporter import Reporter
from mps_build.common.wheels.cache import WheelCache, own_folder
from mps_build.common.wheels.limited_pip import STATUS
from mps_build.common.wheels.pip_call import limited_pip, run_pip
from mps_build.common.workspace import remove_tree

from .interpreter import Interpreter

OLDEST_PYTEST = Version("7")
PYTEST = ("pytest>=7,<10",)
_READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """Where environments are kept, and how pip reaches the world; `environ` forbids bytecode (see make_overlay)."""

    cache: Path
    environ: Mapping[str, str]
    log: Path
    reporter: Reporter
    offline: bool = False


# Beside numpy, which an interpreter that is not ours has or has not.
SWEEP_EXTRAS = ("expecttest", "pyyaml")


def sweep_requirements(wheel: Path) -> tuple[str, ...]:
    """Return what upstream's operator samples import (torch.testing._internal); only the full sweep uses them.

    >>> sweep_requirements(Path("torch-2.2.2-cp311-none-macosx_11_0_arm64.whl"))
    ('numpy<2', 'expecttest', 'pyyaml')
    """
    _, version, _, _ = parse_wheel_filename(wheel.name)
    # Compiled against numpy 1 up to 2.2: https://github.com/pytorch/pytorch/issues/107302
    return ("numpy<2" if version < Version("2.3") else "numpy", *SWEEP_EXTRAS)


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def fetch_wheel(requirement: str, interpreter: Interpreter, shop: Shop) -> Path:
    """Return the wheel that pip takes for a requirement on this machine.

    Raises:
        UsageError: nothing of that name and version is for this Python on this machine.
        BuildEnvironmentError: the index could not be asked.
    """
    wheels = own_folder(shop.cache / "wheels") / f"{interpreter.short}-{interpreter.machine}"
    kept = WheelCache(wheels)
    if (found := _kept_wheel(requirement, kept, offline=shop.offline)) is not None:
        return found
    if shop.offline:
        raise BuildEnvironmentError(
            f"{requirement} is not in {wheels}, and --offline does not allow fetching it",
            hint="run once without --offline",
        )
    pip = (*_pip(shop), "--python", str(interpreter.executable))
    with kept.beside() as fresh:
        argv = (*pip, "download", "--no-deps", "--only-binary=:all:", "-d", str(fresh), requirement)
        shop.reporter.started(f"Fetch {requirement}")
        try:
            run_pip(Command(argv=argv, environ=shop.environ), log=shop.log, tell=shop.reporter.line)
        except CommandFailed as failure:
            raise _no_wheel(requirement, failure) from failure
        finally:
            shop.reporter.done()
        return kept.put(requirement, next(fresh.glob("*.whl")))


def make_environment(
    wheel: Path, sha256: str, interpreter: Interpreter, shop: Shop, *, extras: tuple[str, ...] = ()
) -> Path:
    """Return the Python of a venv that holds the wheel, its requirements and pytest; made once, then found again.

    By `venv` and pip, not uv: where an index is mirrored to disk, only pip knows.

    Raises:
        BuildEnvironmentError: pip cannot install it.
    """
    wanted = (*PYTEST, *extras)
    key = hashlib.sha256(os.fsencode("\n".join((sha256, interpreter.version, str(interpreter.executable), *wanted))))
    venv = shop.cache / "environments" / key.hexdigest()[:20]
    python = venv / "bin" / "python"
    with _held(venv):
        if (venv / _READY).is_file() and python.exists():
            return python
        remove_tree(venv)
        _make_venv(interpreter.executable, venv, shop)
        pip = (*limited_pip(python), "--disable-pip-version-check", "--no-input")
        _install(f"Install {wheel.name}", (*pip, "install"), (str(wheel), *wanted), shop)
        (venv / _READY).write_bytes(os.fsencode(f"{wheel.name}\n"))
    return python


def make_overlay(interpreter: Interpreter, shop: Shop, *, extras: tuple[str, ...] = ()) -> Path:
    """Return a folder with pytest for an interpreter that is not ours: it goes on PYTHONPATH, nothing goes in.

    Raises:
        BuildEnvironmentError: pip cannot fill it.
    """
    key = f"{interpreter.implementation.lower()}-{interpreter.short}-{interpreter.platform}-{interpreter.machine}"
    key = "-".join((key, *extras))
    overlay = shop.cache / "overlays" / key
    with _held(overlay):
        if (overlay / _READY).is_file():
            return overlay
        remove_tree(overlay)
        # pip looks at that interpreter and writes beside it; without bytecode its own folders stay as they are.
        pip = (
            *_pip(shop),
            "--python",
            str(interpreter.executable),
            "install",
            "--no-compile",
            "--target",
            str(overlay),
        )
        _install(
            f"Fetch pytest for {interpreter.executable}", (*pip, "--target", str(overlay)), (*PYTEST, *extras), shop
        )
        (overlay / _READY).write_bytes(os.fsencode(f"{interpreter.executable}\n"))
    return overlay


def _kept_wheel(requirement: str, kept: WheelCache, *, offline: bool) -> Path | None:
    """Return a wheel that an exact requirement got before; `==2.13.0` takes a local version such as 2.13.0+cpu too.

    A cache that an older mps-build filled has no hashes: without a network it is used all the same.
    """
    exact = re.fullmatch(r"torch==([\w.+!]+)", requirement.replace(" ", ""))
    if not exact:
        return None
    wanted = SpecifierSet(f"=={exact[1]}", prereleases=True)
    found = {parse_wheel_filename(path.name)[1]: path.name for path in kept.folder.glob("torch-*.whl")}
    fitting = (found[version] for version in sorted(found, reverse=True) if version in wanted)
    return next((path for name in fitting if (path := kept.file(name, unnoted=offline)) is not None), None)


def _install(what: str, pip: tuple[str, ...], wanted: tuple[str, ...], shop: Shop) -> None:
    """Run a `pip install`.

    Raises:
        BuildEnvironmentError: it failed; the message holds its last lines.
    """
    index = ("--no-index",) if shop.offline else ()
    shop.reporter.started(what)
    try:
        command = Command(argv=(*pip, *index, *wanted), environ=shop.environ)
        run_pip(command, log=shop.log, tell=shop.reporter.line)
    except CommandFailed as failure:
        if full := disk_full("\n".join(failure.tail), during=what):
            raise full from failure
        raise BuildEnvironmentError(
            f"{what}: {failure}:\n" + "\n".join(failure.tail[-6:]), hint=f"the whole output is in {failure.log}"
        ) from failure
    finally:
        shop.reporter.done()


def _pip(shop: Shop) -> tuple[str, ...]:
    """Return a pip of ours: the session's venv may have none (uv makes them without)."""
    venv = shop.cache / "pip" / f"{sys.version_info.major}.{sys.version_info.minor}"
    with _held(venv):
        if not (venv / _READY).is_file():
            remove_tree(venv)
            _make_venv(Path(sys.executable), venv, shop)
            (venv / _READY).write_text("")
    return (*limited_pip(venv / "bin" / "python"), "--disable-pip-version-check", "--no-input")


def _make_venv(python: Path, venv: Path, shop: Shop) -> None:
    try:
        run_logged(Command(argv=(str(python), "-m", "venv", str(venv)), environ=shop.environ), log=shop.log)
    except CommandFailed as failure:
        raise BuildEnvironmentError(
            f"{python} cannot make a venv: " + "\n".join(failure.tail[-3:]),
            hint="a Python from a system package may need its venv package (Debian: python3-venv)",
        ) from failure


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a folder while it is made: a second run waits, and then finds it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open_to_append(folder.parent / f".{folder.name}.lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _no_wheel(requirement: str, failure: CommandFailed) -> Exception:
    text = "\n".join(failure.tail)
    if full := disk_full(text, during=f"while {requirement} is fetched"):
        return full
    if failure.exit_code in (STATUS, -signal.SIGKILL):
        return BuildEnvironmentError(
            f"{requirement}: pip was ended: {failure.tail[-1].removeprefix('ERROR: ')}",
            hint="try again later, or another index; with the wheel at hand, give its path",
        )
    versions = re.search(r"from versions: ([^)]*)\)", text)
    offered = versions[1].strip() if versions else ""
    if offered and offered != "none":
        newest = ", ".join(offered.split(", ")[-6:])
        return UsageError(
            f"{requirement}: no such wheel for this Python on this machine",
            hint=f"the newest available are: {newest}; another Python may have others: --python 3.12",
        )
    if "Invalid requirement" in text or "ResolutionImpossible" in text:
        return UsageError(f"{requirement}: {failure.tail[-1] if failure.tail else 'is not a requirement'}")
    if re.search(r"connection|timed out|resolve|proxy|SSL|certificate", text, re.IGNORECASE):
        return BuildEnvironmentError(
            f"{requirement}: the package index cannot be reached:\n" + "\n".join(failure.tail[-3:]),
            hint="check the network or the proxy; with the wheel at hand, give its path",
        )
    return UsageError(
        f"{requirement}: pip finds no wheel for this Python on this machine:\n" + "\n".join(failure.tail[-3:])
    )
