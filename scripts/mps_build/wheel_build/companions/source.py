"""A companion's source: which one is asked for, and whether a tree is what it should be."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from packaging.version import Version

from mps_build.common.addresses import check_address
from mps_build.common.errors import SourceError, UsageError
from mps_build.common.home import expanded
from mps_build.common.workspace import remove_tree

from .projects import PROJECTS, Project

# Left behind by builds; copied, they would be taken for this build's (setup.py packs any .so that lies there).
_LEFTOVERS = ("*.egg-info", "__pycache__", ".mypy_cache", "*.so", "*.dylib", ".mps-build-*")
_LEFTOVERS_AT_THE_TOP = ("build", "dist")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChoice:
    """Where a companion comes from: its tag by git, a tarball, or the caller's own folder (copied, never built in)."""

    kind: Literal["git", "tarball", "folder"]
    place: str


def parse_sources(texts: Iterable[str], names: Iterable[str]) -> Mapping[str, SourceChoice]:
    """Return the choice for each companion in `names`; what no text names comes from its tag.

    Raises:
        UsageError: not NAME=PATH, another name, named twice, or nothing is there.
    """
    wanted = tuple(names)
    given: dict[str, str] = {}
    for text in texts:
        name, equals, place = text.partition("=")
        if not equals or not place:
            raise UsageError(f"--source {text!r} is not NAME=PATH", hint=f"for example: --source {wanted[0]}=PATH")
        if name not in wanted:
            raise UsageError(f"--source {text!r}: {name!r} is not built here", hint=f"built are: {', '.join(wanted)}")
        if name in given:
            raise UsageError(f"--source names {name} twice: {given[name]} and {place}")
        given[name] = place
    return {name: _choice(name, given.get(name)) for name in wanted}


def _choice(name: str, place: str | None) -> SourceChoice:
    if place is None:
        return SourceChoice(kind="git", place=PROJECTS[name].repository)
    path = expanded(place).absolute()
    if path.is_dir():
        return SourceChoice(kind="folder", place=str(path))
    if path.is_file():
        return SourceChoice(kind="tarball", place=str(path))
    if "://" in place:
        check_address(place, what=f"--source {name}:")
        return SourceChoice(kind="git", place=place)
    raise UsageError(f"--source {name}={place}: nothing is there", hint="give a folder, a tarball or a git address")


def check_tree(root: Path, project: Project, *, wanted: str) -> None:
    """Refuse a tree that is not this project at this version.

    Raises:
        SourceError: another project, no version, or another version.
    """
    marks = {mark for each in PROJECTS.values() for mark in each.marks if (root / mark).is_file()}
    try:
        version = (root / "version.txt").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        version = None
    _judge(str(root), marks, version, project=project, wanted=wanted)


def check_choice(choice: SourceChoice, project: Project, *, wanted: str) -> None:
    """Refuse what can be refused before anything is done: a folder, or a tarball, of something else.

    Raises:
        SourceError: as check_tree; or the tarball cannot be read.
    """
    place = Path(choice.place)
    if choice.kind == "folder":
        check_tree(place, project, wanted=wanted)
    elif choice.kind == "tarball":
        marks: set[str] = set()
        version = None
        try:
            with tarfile.open(place) as archive:
                for member in archive:
                    name = member.name.removeprefix("./").partition("/")[2]
                    marks |= {name} if member.isfile() else set()
                    if name == "version.txt" and (file := archive.extractfile(member)):
                        version = file.read(200).decode("utf-8", "replace")
        except (tarfile.TarError, EOFError, OSError) as error:
            raise SourceError(f"{place} cannot be unpacked: {error}", hint="download it again") from error
        _judge(str(place), marks, version, project=project, wanted=wanted)


def _judge(place: str, files: Collection[str], version: str | None, *, project: Project, wanted: str) -> None:
    if not any(mark in files for mark in project.marks):
        other = next((each.name for each in PROJECTS.values() if any(mark in files for mark in each.marks)), "")
        raise SourceError(
            f"{place} is not {project.name}'s source: it lacks {' or '.join(project.marks)}"
            + (f" (it is {other}'s)" if other else ""),
            hint=f"give the folder that holds {project.name}'s setup.py, or a tarball of one",
        )
    try:
        found = Version((version or "").strip())
    except ValueError:
        raise SourceError(
            f"{place} does not state its version (version.txt: {version!r})",
            hint="give a whole tree of a release",
        ) from None
    # torchaudio's tags say 2.6.0a0 where the wheel is 2.6.0: only the release is compared.
    if found.release != Version(wanted).release:
        raise SourceError(
            f"{place} is {project.name} {found}; the recipe's companion is {wanted}",
            hint=f"take its tag v{wanted}, or correct `companions` in a recipe file of your own",
        )


def has_mps_kernels(root: Path, project: Project) -> bool:
    """True if the project's C++ has Objective-C++ beside it: kernels for MPS (torchvision, from 0.16)."""
    return any("mps" in path.parts for path in (root / project.name / "csrc").rglob("*.mm"))


def tree_digest(root: Path) -> str:
    """Return a digest of all files that a copy takes along: names, modes and contents."""
    whole = hashlib.sha256()
    for path in _files(root):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            whole.update(f"{name}\0link\0{path.readlink()}\0".encode("utf-8", "surrogateescape"))
        else:
            executable = bool(path.stat().st_mode & 0o111)
            whole.update(f"{name}\0{executable}\0".encode("utf-8", "surrogateescape"))
            whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def copy_tree(source: Path, destination: Path) -> None:
    """Copy a folder whole, less what earlier builds left in it; setup.py writes into the copy."""
    remove_tree(destination)
    shutil.copytree(
        source, destination, symlinks=True, ignore=lambda folder, names: _left_out(source, Path(folder), names)
    )


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        left_out = {".git", *_left_out(root, Path(folder), [*folders, *names])}
        folders[:] = sorted(name for name in folders if name not in left_out)
        linked = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in sorted([*(name for name in names if name not in left_out), *linked]):
            yield Path(folder) / name


def _left_out(root: Path, folder: Path, names: Iterable[str]) -> set[str]:
    patterns = _LEFTOVERS + (_LEFTOVERS_AT_THE_TOP if folder == root else ())
    return {name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)}
