"""Whether a wheel can be installed by an interpreter on this machine, read from its name alone."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from mps_build.common.errors import UsageError
from mps_build.common.opening import fault_of

from .interpreter import Interpreter


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
