"""The wheel: the official one, by the hash that its index gives, or one that the user trusts; unpacked as it is."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from mps_build.common.errors import RefusedForSafety, UsageError
from mps_build.common.receipts import StepResult, fingerprint
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.download import NoSuchWheel, fetch_wheel, parse_requirement
from mps_build.common.wheels.pip_call import limits_of_run
from mps_build.common.wheels.wheel_file import WheelFile, read_wheel
from mps_build.common.workspace import cache_folder, remove_tree

from .build import Below
from .interpreter import SUITES
from .tools import check_room, ledger, official_folder, official_log

# Below this NumPy 2 is not known to torch: https://github.com/pytorch/pytorch/issues/107302
_NUMPY_2 = Version("2.3")
_SETUPTOOLS = Version("2.2")
_GLOBAL = "libtorch_global_deps.so"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel whose code may be run.

    Attributes:
        python: the version that it is for, such as 3.11.
        requirements: what is installed with it.
    """

    path: Path
    version: Version
    python: str
    sha256: str
    requirements: tuple[str, ...]


def find_official(requirement: str, *, python: str | None, reporter: Reporter, is_trusted: bool = False) -> Wheel:
    """Return the official wheel of `torch==VERSION`, fetched once; pip has held it to the index's hash.

    Args:
        python: the version of the interpreter; None: the first of Debian's that there is a wheel for.
        is_trusted: one of which the index gives no hash may run as well.

    Raises:
        UsageError: there is no such wheel. SourceError: the index cannot be reached.
        RefusedForSafety: the index gives no hash of it.
    """
    if parse_requirement(requirement).name != "torch":
        raise UsageError(f"{requirement}: only torch is simulated", hint="such as torch==2.15.0")
    limits = limits_of_run(trust=is_trusted)
    cache, tried = cache_folder() / "wheels", (python,) if python else tuple(SUITES)
    for each in tried:
        try:
            fetched = fetch_wheel(
                requirement, python=each, cache=cache, log=official_log(), reporter=reporter, limits=limits
            )
        except NoSuchWheel:
            if python is not None:
                raise
            continue
        return _described(read_wheel(fetched.path), each)
    raise NoSuchWheel(
        f"{requirement} has no macOS arm64 wheel for Python {' or '.join(tried)}, which Debian has",
        hint="give a Python for arm64 Linux that it has one for: --interpreter PATH",
    )


def find_trusted(path: Path, *, is_trusted: bool, python: str | None) -> Wheel:
    """Return a wheel that the user names.

    Raises:
        RefusedForSafety: its code would run, and the user did not say that it may.
        UsageError: it is not a macOS arm64 wheel of torch, or is for another Python.
    """
    if not is_trusted:
        raise RefusedForSafety(
            f"{path}: its code would run with your rights, as `import torch` does",
            hint="if you know where it comes from, say so: --trust",
        )
    wheel = read_wheel(path)
    if wheel.name != "torch" or not any(
        "macosx" in tag.platform and tag.platform.endswith("arm64") for tag in wheel.tags
    ):
        raise UsageError(f"{path}: is not a macOS arm64 wheel of torch")
    version = f"{wheel.interpreter[2]}.{wheel.interpreter[3:]}"
    if python is not None and python != version:
        raise UsageError(
            f"{path}: is for Python {version}, and the interpreter is {python}",
            hint=f"give a Python {version} for arm64 Linux, or leave --interpreter out",
        )
    return _described(wheel, version)


def _described(wheel: WheelFile, python: str) -> Wheel:
    return Wheel(
        path=wheel.path,
        version=wheel.version,
        python=python,
        sha256=wheel.sha256,
        requirements=needed(wheel.requirements, version=wheel.version, python=python),
    )


def needed(requirements: Sequence[Requirement], *, version: Version, python: str) -> tuple[str, ...]:
    """Return what pip installs with a torch on a Mac, and NumPy, which it takes where it is there.

    On Linux pip would bring CUDA.
    """
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "darwin",
        "platform_system": "Darwin",
        "platform_machine": "arm64",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": "",
    }
    ours = [each for each in requirements if each.marker is None or each.marker.evaluate(environment)]
    names = [f"{each.name}{each.specifier}" for each in ours]
    # Older ones take pkg_resources, which came with the virtual environments of their Pythons.
    if version < _SETUPTOOLS and Version(python) < Version("3.12"):
        names.append("setuptools<81")
    return (*sorted(names), "numpy" if version >= _NUMPY_2 else "numpy<2", "pip")


def unpacked(wheel: Wheel, below: Below, reporter: Reporter) -> Path:
    """Return the folder that torch is imported from. Nothing of the wheel is changed.

    One file is put beside its libraries: torch/__init__.py loads it where the system is Linux.

    Raises:
        RefusedForSafety: the file is not what it was when its hash was taken.
    """
    home = official_folder() / "unpacked" / f"torch-{wheel.version}-{wheel.sha256[:12]}"

    def unpack() -> StepResult:
        if fingerprint(wheel.path)["sha256"] != wheel.sha256:
            raise RefusedForSafety(f"{wheel.path} was changed while it was read")
        remove_tree(home)
        with zipfile.ZipFile(wheel.path) as archive:
            members = archive.infolist()
            size = sum(member.file_size for member in members)
            check_room(official_folder(), size)
            reporter.started(f"Unpack the wheel ({size / 1e9:.1f} GB)", total=len(members), unit="files")
            for done, member in enumerate(members, 1):
                archive.extract(member, home)
                if done % 500 == 0:
                    reporter.advanced(done)
        libraries = home / "torch/lib"
        if not libraries.is_dir():
            raise UsageError(f"{wheel.path}: has no torch/lib")
        shutil.copyfile(below.empty, libraries / _GLOBAL)
        reporter.done()
        return StepResult(trees=(home,))

    ledger().run("unpacked", key=home.name, version=1, inputs={"sha256": wheel.sha256}, action=unpack)
    return home
