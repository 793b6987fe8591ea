"""Which torch the companions are built for: the recipe's own wheel, found by its receipts, or one that is given."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from mps_build.common.errors import UsageError
from mps_build.common.json_text import read_json
from mps_build.common.opening import fault_of
from mps_build.common.receipts import fingerprint
from mps_build.common.recipe.model import Recipe

System = Literal["macos", "linux"]
_PLATFORMS: dict[System, str] = {"macos": r"macosx_\d+_\d+_arm64", "linux": r"(many)?linux\w*_(x86_64|aarch64)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchWheel:
    """A torch wheel that fits the recipe; `python` as recipes spell it, `version` with its local part."""

    path: Path
    version: str
    python: str
    local: str | None


def given_wheel(path: Path, recipe: Recipe, *, python: str | None, system: System) -> TorchWheel:
    """Return the wheel at `path`, if companions of this recipe can be built for it, by its name.

    Raises:
        UsageError: no such file, not torch, another release, another Python, another system; every reason at once.
    """
    if fault := fault_of(path):
        raise UsageError(f"--torch {path}: {fault}", hint=f"nox -s build_wheel -- {recipe.name} makes one")
    try:
        name, version, _, tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise UsageError(f"--torch {path.name}: {error}", hint="keep the name that the wheel was built with") from error
    if name != "torch":
        raise UsageError(
            f"--torch {path.name}: is a wheel of {name}", hint="give the torch that companions are built for"
        )
    reasons = []
    release = recipe.release
    if release is None or version.release != release.release:
        reasons.append(f"is torch {version.public}; {recipe.name} and its companions are of {recipe.version}")
    pythons = {_python_of(tag.interpreter, tag.abi) for tag in tags}
    platforms = sorted({tag.platform for tag in tags})
    if not any(re.fullmatch(_PLATFORMS[system], platform) for platform in platforms):
        wanted = "macOS on arm64" if system == "macos" else "Linux"
        reasons.append(f"is for {', '.join(platforms)}; required: one for {wanted}")
    found = next(iter(pythons))
    if len(pythons) > 1 or found not in recipe.pythons:
        reasons.append(f"is for {_spelled(pythons)}; {recipe.name} is for {', '.join(recipe.pythons)}")
    elif python is not None and found != python:
        reasons.append(f"is for Python {found}, --python asks for {python}")
    if not zipfile.is_zipfile(path):
        reasons.append("is not a complete zip file")
    if reasons:
        hint = f"nox -s build_wheel -- {recipe.name} makes one that fits"
        if system == "macos" and all(platform.startswith(("linux", "manylinux")) for platform in platforms):
            hint += f"; to try companions on Linux: nox -s rehearse -- {recipe.name} --companions --torch WHEEL"
        raise UsageError(f"--torch {path.name}: " + "; ".join(reasons), hint=hint)
    return TorchWheel(path=path.absolute(), version=str(version), python=found, local=version.local)


def built_wheel(recipe: Recipe, *, python: str, receipts: Path, wheelhouse: Path) -> TorchWheel:
    """Return the wheel that build_wheel made last of this recipe: by its receipts, else the one in the wheelhouse.

    Raises:
        UsageError: there is none, or the wheelhouse holds several and no receipt tells which is the last.
    """
    delivered = sorted(_delivered(receipts, python), key=lambda row: row[0])
    if delivered:
        return given_wheel(delivered[-1][1], recipe, python=python, system="macos")
    found = list(_in_wheelhouse(recipe, python, wheelhouse))
    if len(found) == 1:
        return given_wheel(found[0], recipe, python=python, system="macos")
    if found:
        listed = "".join(f"\n  {path}" for path in found)
        raise UsageError(
            f"{wheelhouse} holds {len(found)} torch wheels of {recipe.name} for Python {python}:{listed}",
            hint="say which with --torch WHEEL",
        )
    raise UsageError(
        f"no torch of {recipe.name} for Python {python} has been built (searched {receipts} and {wheelhouse})",
        hint=f"nox -s build_wheel -- {recipe.name} --python {python}, or give one: --torch WHEEL",
    )


def _delivered(receipts: Path, python: str) -> Iterable[tuple[str, Path]]:
    """Yield (when, wheel) of each delivery that still holds."""
    for receipt in receipts.glob(f"deliver_wheel-*-{python}.json"):
        document = _json(receipt)
        for output in document.get("outputs", ()):
            path = Path(str(output.get("path", "")))
            if path.suffix == ".whl" and path.is_file() and fingerprint(path)["sha256"] == output.get("sha256"):
                yield str(document.get("started", "")), path


def _in_wheelhouse(recipe: Recipe, python: str, wheelhouse: Path) -> Iterable[Path]:
    for receipt in sorted(wheelhouse.glob("torch-*.whl.receipt.json")):
        document, wheel = _json(receipt), receipt.with_name(receipt.name.removesuffix(".receipt.json"))
        declared = document.get("recipe")
        of_recipe = isinstance(declared, dict) and declared.get("version") == recipe.version
        if of_recipe and document.get("python") == python and wheel.is_file():
            yield wheel


def _json(path: Path) -> dict[str, Any]:
    try:
        document = read_json(path)
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _python_of(interpreter: str, abi: str) -> str:
    match = re.fullmatch(r"cp(\d)(\d+)", interpreter)
    return f"{match[1]}.{match[2]}{'t' if abi.endswith('t') else ''}" if match else interpreter


def _spelled(pythons: Iterable[str]) -> str:
    return ", ".join(f"Python {each}" for each in sorted(pythons))
