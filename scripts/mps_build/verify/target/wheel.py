"""The wheel of the torch under test: what its name says, whether it fits, and how it is fetched."""

from __future__ import annotations

import hashlib
import re
import signal
import zipfile
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from mps_build.common.errors import BuildEnvironmentError, UsageError, disk_full
from mps_build.common.files import fault_of, open_regular
from mps_build.common.process import Command, CommandFailed
from mps_build.common.wheels.download import WheelCache, own_folder
from mps_build.common.wheels.limited_pip import STATUS
from mps_build.common.wheels.pip_call import certificate_fault, forbidden_by_settings, refused_unchecked, run_pip

from .environments import EnvironmentStore, own_pip
from .interpreter import Interpreter
from .torch_build import BuildQuery, choose_build


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedWheel:
    """A wheel of torch by its name."""

    path: Path
    version: str
    tags: frozenset[Tag]

    @property
    def pythons(self) -> tuple[str, ...]:
        """The Python versions it is for, as `3.11` or `3.13t`; empty for a py3 wheel."""
        found = {_python_of(tag) for tag in self.tags if tag.interpreter.startswith("cp")}
        return tuple(sorted(found, key=lambda name: (int(name.rstrip("t").split(".")[1]), name)))

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platform tags in the wheel's name, sorted."""
        return tuple(sorted({tag.platform for tag in self.tags}))


def name_wheel(path: Path) -> NamedWheel:
    """Return what a wheel's name says.

    Raises:
        UsageError: no such file, no wheel, not torch.
    """
    if fault := fault_of(path):
        raise UsageError(f"{path}: {fault}", hint="give a wheel, a requirement (torch==2.13.0), or --python PATH")
    try:
        name, version, _, tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise UsageError(
            f"{path}: {error}", hint="keep the name that the wheel was built with: pip reads the platform from it"
        ) from error
    if canonicalize_name(name) != "torch":
        raise UsageError(f"{path}: is a wheel of {name}, not of torch", hint="verify_mps judges torch")
    if not zipfile.is_zipfile(path):
        raise UsageError(f"{path}: is not a complete zip file", hint="fetch or build it again; audit_wheel says more")
    return NamedWheel(path=path, version=str(version), tags=tags)


def check_fit(wheel: NamedWheel, interpreter: Interpreter) -> None:
    """Refuse a wheel that this interpreter cannot install.

    Raises:
        UsageError: the wheel is for another platform or another Python.
    """
    if not any(_platform_fits(platform, interpreter) for platform in wheel.platforms):
        raise UsageError(
            f"{wheel.path.name}: is for {', '.join(wheel.platforms)}; this Python is for {interpreter.platform}",
            hint="`nox -s audit_wheel` reads any wheel anywhere; to verify it, take it to a machine that it is for",
        )
    if wheel.pythons and interpreter.short not in wheel.pythons and not _abi3_fits(wheel, interpreter):
        wanted = " or ".join(wheel.pythons)
        raise UsageError(
            f"{wheel.path.name}: is for Python {wanted}; {interpreter.executable} is {interpreter.short}",
            hint=f"choose another: --python {wheel.pythons[-1]}",
        )


def _python_of(tag: Tag) -> str:
    digits = tag.interpreter.removeprefix("cp")
    return f"{digits[0]}.{digits[1:]}{'t' if tag.abi.endswith('t') else ''}"


def _abi3_fits(wheel: NamedWheel, interpreter: Interpreter) -> bool:
    minor = int(interpreter.short.rstrip("t").split(".")[1])
    oldest = [int(_python_of(tag).rstrip("t").split(".")[1]) for tag in wheel.tags if tag.abi == "abi3"]
    return bool(oldest) and min(oldest) <= minor and not interpreter.short.endswith("t")


def _platform_fits(platform: str, interpreter: Interpreter) -> bool:
    """True if system and machine fit; whether the system is new enough is pip's to say.

    A Python for macOS reports `macosx-14.0-arm64` or, built for both, `macosx-11-universal2`.
    """
    if platform == "any":
        return True
    system, _, rest = interpreter.platform.partition("-")
    machine = interpreter.machine if "universal" in rest or system == "macosx" else rest
    families = {"macosx": ("macosx",), "linux": ("linux", "manylinux", "musllinux"), "win": ("win",)}
    return platform.startswith(families.get(system, (system,))) and platform.endswith(
        (machine.replace("-", "_"), "universal2")
    )


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


def fetch_wheel(requirement: str, interpreter: Interpreter, store: EnvironmentStore) -> Path:
    """Return the wheel that pip takes for a requirement on this machine: a build for the CPU if there is one.

    Raises:
        UsageError: nothing of that name and version is for this Python on this machine.
        BuildEnvironmentError: the index could not be reached, or its certificate is not accepted.
        RefusedForSafety: the index gives no hash of it.
    """
    wheels = own_folder(store.cache / "wheels") / f"{interpreter.short}-{interpreter.machine}"
    kept = WheelCache(wheels)
    if (found := _kept_wheel(requirement, kept, offline=store.offline, trust=store.trust)) is not None:
        return found
    if store.offline:
        raise BuildEnvironmentError(
            f"{requirement} is not in {wheels}, and --offline does not allow fetching it",
            hint="run once without --offline",
        )
    own = own_pip(store)
    query = BuildQuery(
        pip=Path(own[0]),
        python=interpreter.executable,
        system=interpreter.system,
        environ=store.environ,
        log=store.log,
        reporter=store.reporter,
        wants_cuda=store.wants_cuda,
        needs_hash=store.limits.needs_hash,
    )
    wanted = choose_build(requirement, query)
    pip = (*own, "--python", str(interpreter.executable))
    with kept.beside() as fresh:
        argv = (*pip, "download", "--no-deps", "--only-binary=:all:", "-d", str(fresh), wanted)
        store.reporter.started(f"Fetch {requirement}")
        try:
            fetched = run_pip(Command(argv=argv, environ=store.environ), log=store.log, tell=store.reporter.line)
        except CommandFailed as failure:
            raise _no_wheel(requirement, failure) from failure
        finally:
            store.reporter.done()
        unchecked = any(each.hash is None for each in fetched)
        return kept.put(requirement, next(fresh.glob("*.whl")), unchecked=unchecked)


def audited_kind(wheel: Path) -> str | None:
    """Return the audit's word for how a macOS wheel gets its Metal kernels: `aot`, `jit` or `off`; else None."""
    from mps_build.inspection.audit import audit_wheel

    return audit_wheel(wheel, quick=True).kind if "macosx" in wheel.name else None


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
