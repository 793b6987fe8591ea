"""The wheel of the torch under test: fetched once by the requirement that names it, with what it needs beside it."""

from __future__ import annotations

import hashlib
import re
import signal
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from mps_build.common.errors import BuildEnvironmentError, UsageError, disk_full
from mps_build.common.opening import open_regular
from mps_build.common.process import Command, CommandFailed
from mps_build.common.wheels.cache import WheelCache, own_folder
from mps_build.common.wheels.limited_pip import STATUS
from mps_build.common.wheels.pip_call import certificate_fault, forbidden_by_settings, refused_unchecked, run_pip

from .interpreter import Interpreter
from .kept_environment import own_pip
from .shop import Shop
from .torch_build import Asking, choose_build


def full_requirements(wheel: Path) -> tuple[str, ...]:
    """Return what `--full` has beside torch: numpy, whose arrays some cases make tensors of.

    >>> full_requirements(Path("torch-2.2.2-cp311-none-macosx_11_0_arm64.whl"))
    ('numpy<2',)
    """
    _, version, _, _ = parse_wheel_filename(wheel.name)
    # Compiled against numpy 1 up to 2.2: https://github.com/pytorch/pytorch/issues/107302
    return ("numpy<2" if version < Version("2.3") else "numpy",)


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def fetch_wheel(requirement: str, interpreter: Interpreter, shop: Shop) -> Path:
    """Return the wheel that pip takes for a requirement on this machine: a build for the CPU if there is one.

    Raises:
        UsageError: nothing of that name and version is for this Python on this machine.
        BuildEnvironmentError: the index could not be asked, or its certificate is not accepted.
        RefusedForSafety: the index gives no hash of it.
    """
    wheels = own_folder(shop.cache / "wheels") / f"{interpreter.short}-{interpreter.machine}"
    kept = WheelCache(wheels)
    if (found := _kept_wheel(requirement, kept, offline=shop.offline, trust=shop.trust)) is not None:
        return found
    if shop.offline:
        raise BuildEnvironmentError(
            f"{requirement} is not in {wheels}, and --offline does not allow fetching it",
            hint="run once without --offline",
        )
    own = own_pip(shop)
    asking = Asking(
        pip=Path(own[0]),
        python=interpreter.executable,
        system=interpreter.system,
        environ=shop.environ,
        log=shop.log,
        reporter=shop.reporter,
        wants_cuda=shop.wants_cuda,
        needs_hash=shop.limits.needs_hash,
    )
    wanted = choose_build(requirement, asking)
    pip = (*own, "--python", str(interpreter.executable))
    with kept.beside() as fresh:
        argv = (*pip, "download", "--no-deps", "--only-binary=:all:", "-d", str(fresh), wanted)
        shop.reporter.started(f"Fetch {requirement}")
        try:
            fetched = run_pip(Command(argv=argv, environ=shop.environ), log=shop.log, tell=shop.reporter.line)
        except CommandFailed as failure:
            raise _no_wheel(requirement, failure) from failure
        finally:
            shop.reporter.done()
        unchecked = any(each.hash is None for each in fetched)
        return kept.put(requirement, next(fresh.glob("*.whl")), unchecked=unchecked)


def _kept_wheel(requirement: str, kept: WheelCache, *, offline: bool, trust: bool) -> Path | None:
    """Return a wheel that an exact requirement got before; `==2.13.0` takes a local version such as 2.13.0+cpu too.

    A cache that an older mps-build filled has no hashes: without a network it is used all the same.
    """
    exact = re.fullmatch(r"torch==([\w.+!]+)", requirement.replace(" ", ""))
    if not exact:
        return None
    wanted = SpecifierSet(f"=={exact[1]}", prereleases=True)
    found = {parse_wheel_filename(path.name)[1]: path.name for path in kept.folder.glob("torch-*.whl")}
    fitting = (found[version] for version in sorted(found, reverse=True) if version in wanted)
    return next((path for name in fitting if (path := kept.file(name, unnoted=offline, unchecked=trust))), None)


def _no_wheel(requirement: str, failure: CommandFailed) -> Exception:
    text = "\n".join(failure.tail)
    if full := disk_full(text, during=f"while {requirement} is fetched"):
        return full
    if forbidden := forbidden_by_settings(text, wanted=requirement):
        return forbidden
    if unchecked := refused_unchecked(text, wanted=requirement):
        return unchecked
    if fault := certificate_fault(text, wanted=requirement):
        return BuildEnvironmentError(fault[0], hint=fault[1])
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
