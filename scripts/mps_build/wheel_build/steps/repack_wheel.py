"""Built tree + the last wheel -> the next one: only members whose contents changed are written anew."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from mps_build.common.process import Command

from ..backend import Backend
from ..ninja import ninja_of
from ..zip_members import carry, compressed, recorded

_OF_PYTHON = (".py", ".pyi")


def make_commands(
    backend: Backend, *, python: Path, source: Path, build: Path, environ: Mapping[str, str], overrides: Path, jobs: int
) -> tuple[Command, ...]:
    """Return what brings the edited tree up to date, short of packing it."""
    if backend == "setuptools":
        whole = {**environ, "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": str(overrides)}
        return (Command(argv=(str(python), "setup.py", "build"), cwd=source, environ=whole),)
    return (
        Command(argv=(ninja_of(build), "-C", str(build), f"-j{jobs}"), cwd=source, environ=environ),
        Command(argv=("cmake", "--install", str(build), "--prefix", str(staging(build))), cwd=source, environ=environ),
    )


def staging(build: Path) -> Path:
    """Return where scikit-build-core's era installs to between two wheels: cmake then copies only what is newer."""
    return build / "mps-build-staging"


def files_of(backend: Backend, *, source: Path, build: Path, previous: Path) -> Mapping[str, Path] | None:
    """Return the file behind each member of the last wheel; None where the next would have other members."""
    with zipfile.ZipFile(previous) as wheel:
        members = {info.filename for info in wheel.infolist() if not info.is_dir()}
    members = {name for name in members if not name.split("/")[0].endswith((".dist-info", ".data"))}
    if backend == "setuptools":
        trees = sorted(build.glob("lib.*"))
        found = _below(trees[0]) if len(trees) == 1 else {}
        return found if set(found) == members else None
    installed = _below(staging(build))
    packages = {name.split("/")[0] for name in members}
    own = {
        str(path.relative_to(source)): path
        for package in packages
        for path in (source / package).rglob("*")
        if path.suffix in _OF_PYTHON and "__pycache__" not in path.parts
    }
    others = {name: source / name for name in members if (source / name).is_file()}
    found = {**others, **own, **installed}
    return found if set(found) == members else None


def repack_wheel(previous: Path, files: Mapping[str, Path], *, output: Path) -> tuple[Path, tuple[str, ...]]:
    """Write the wheel with these files' contents to `output` and return it, with the names of what changed."""
    output.mkdir(parents=True, exist_ok=True)
    destination, beside = output / previous.name, output / f".{previous.name}.part"
    changed: dict[str, tuple[str, str]] = {}
    with zipfile.ZipFile(previous) as source, zipfile.ZipFile(beside, "w") as target:
        rows = recorded(source)
        for info in source.infolist():
            name = info.filename
            data = files[name].read_bytes() if name in files else None
            row = _row(data) if data is not None else None
            new = zipfile.ZipInfo(name, date_time=info.date_time)
            new.external_attr, new.create_system = info.external_attr, info.create_system
            if name.endswith(".dist-info/RECORD"):
                new.compress_type = zipfile.ZIP_DEFLATED
                target.writestr(new, _record(source.read(info).decode("utf-8"), changed))
            elif row is None or row == rows.get(name):
                carry(target, new, compressed(source, info), like=info)
            else:
                assert data is not None
                changed[name] = row
                # Stored: finish_wheel compresses it, once.
                target.writestr(new, data)
    beside.replace(destination)
    return destination, tuple(sorted(changed))


def _below(folder: Path) -> dict[str, Path]:
    return {
        str(path.relative_to(folder)): path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def _row(data: bytes) -> tuple[str, str]:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest}", str(len(data))


def _record(text: str, changed: Mapping[str, tuple[str, str]]) -> str:
    """Return a RECORD with other rows for what changed. RECORD comes last in every wheel, as PEP 427 asks."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in csv.reader(io.StringIO(text)):
        writer.writerow([row[0], *changed[row[0]]] if row[0] in changed else row)
    return out.getvalue()
