"""What one call of build_companions asks for: which torch, which companions from where, and how they are built."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from mps_build.common.environment import Toolchain
from mps_build.common.errors import SourceError, UsageError
from mps_build.common.files import fault_of
from mps_build.common.git import check_address
from mps_build.common.interpreters import FoundPython
from mps_build.common.json_text import read_json
from mps_build.common.process import Command
from mps_build.common.receipts import fingerprint
from mps_build.common.recipe.model import Recipe, Variable
from mps_build.common.workspace import expanded, remove_tree

# What the build of a Mac wheel sets for any project; the rest of a recipe's environment is torch's own.
_OF_THE_TARGET = frozenset({"MACOSX_DEPLOYMENT_TARGET", "_PYTHON_HOST_PLATFORM", "ARCHFLAGS"})
_NOT_THE_HOSTS = "never the library that happens to be on the host; torchvision reads images through Pillow"
System = Literal["macos", "linux"]
_PLATFORMS: dict[System, str] = {"macos": r"macosx_\d+_\d+_arm64", "linux": r"(many)?linux\w*_(x86_64|aarch64)"}
# Left behind by builds; copied, they would be taken for this build's (setup.py packs any .so that lies there).
_LEFTOVERS = ("*.egg-info", "__pycache__", ".mypy_cache", "*.so", "*.dylib", ".mps-build-*")
_LEFTOVERS_AT_THE_TOP = ("build", "dist")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionPlan:
    """One call, checked.

    Attributes:
        sources: companion -> where it comes from, in the order in which they are built.
        interpreter: a rehearsal's own; None takes `python`, or finds the recipe's Python on this host.
        python: the Python that was found for the plan.
        wrap: brings a command to the place where it runs (a rehearsal's runs inside a root).
        complete: done to the build's torch once it is installed, with its site-packages; a rehearsal's lacks headers.
        overlaid: variables in the place of a project's own (a rehearsal cannot force MPS).
        repaired: delocate looks at the wheel: on a Mac.
        recorded_on: when the host was recorded that stands in for this one; None for this one.
        excused: the audit's rules that a wheel of another system cannot keep.
    """

    recipe: Recipe
    torch: TorchWheel
    sources: Mapping[str, SourceChoice]
    toolchain: Toolchain
    jobs: int
    wheelhouse: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    offline: bool = False
    interpreter: Path | None = None
    python: FoundPython | None = None
    wrap: Callable[[Command], Command] = lambda command: command
    complete: Callable[[Path], None] | None = None
    completed_from: str = ""
    overlaid: tuple[Variable, ...] = ()
    for_macos: bool = True
    repaired: bool = True
    excused: frozenset[str] = frozenset()
    recorded_on: str | None = None

    def project(self, name: str) -> Project:
        """Return how a companion ("torchvision", "torchaudio") is built."""
        return PROJECTS[name]

    def variables(self, name: str) -> tuple[Variable, ...]:
        """Return the environment that a companion's build gets: the target's, the project's, the caller's."""
        target = target_variables(self.recipe) if self.for_macos else ()
        rows = (*target, *PROJECTS[name].variables, *self.overlaid)
        return tuple({variable.name: variable for variable in rows}.values())

    def version(self, name: str, *, commit: str | None, dirty: bool) -> str:
        """Return the version that a companion is built as: its own, with a local part that names its torch.

        So two builds against two commits of one release have two names. What did not come from the tag says so too.
        """
        parts = [self.torch.local or "mps"]
        if self.sources[name].kind != "git":
            parts.append(f"g{commit[:7]}" if commit else self.sources[name].kind)
        parts += ["dirty"] if dirty else []
        return f"{self.recipe.companions[name]}+{'.'.join(parts)}"


def chosen_companions(recipe: Recipe, only: tuple[str, ...]) -> tuple[str, ...]:
    """Return the companions to build, in the order in which they are known here.

    Raises:
        UsageError: the recipe names none, not this one, or one that nobody here knows how to build.
    """
    if not recipe.companions:
        raise UsageError(
            f"{recipe.name} names no companions",
            hint='take a release, or add to your own recipe file: `companions: {torchvision: "X.Y.Z"}`',
        )
    unknown = [name for name in (*only, *recipe.companions) if name not in PROJECTS]
    if unknown:
        raise UsageError(
            f"mps-build does not know how to build {', '.join(unknown)}", hint=f"known: {', '.join(PROJECTS)}"
        )
    missing = [name for name in only if name not in recipe.companions]
    if missing:
        named = ", ".join(f"{name} {version}" for name, version in recipe.companions.items())
        raise UsageError(f"{recipe.name} names no {', '.join(missing)}", hint=f"its companions: {named}")
    return tuple(name for name in PROJECTS if name in (only or tuple(recipe.companions)))


# The companions: where each is developed, what its build is given, what its wheel must hold.


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One companion.

    Attributes:
        marks: files of which a source tree of this project has one.
        extensions: patterns of compiled members; a wheel needs one of each.
    """

    name: str
    repository: str
    marks: tuple[str, ...]
    extensions: tuple[str, ...]
    variables: tuple[Variable, ...]

    def missing_extensions(self, members: Iterable[str]) -> tuple[str, ...]:
        """Return the patterns that no member fits."""
        names = tuple(members)
        return tuple(pattern for pattern in self.extensions if not any(fnmatchcase(name, pattern) for name in names))


def _variables(rows: Mapping[str, tuple[str, str]]) -> tuple[Variable, ...]:
    return tuple(Variable(name=name, value=value, reason=reason) for name, (value, reason) in rows.items())


PROJECTS: Mapping[str, Project] = {
    "torchvision": Project(
        name="torchvision",
        repository="https://github.com/pytorch/vision.git",
        marks=("torchvision/__init__.py",),
        extensions=("torchvision/_C*.so",),
        variables=_variables(
            {
                "FORCE_MPS": ("1", "its MPS kernels, also where the building Mac shows no GPU (a virtual machine)"),
                "FORCE_CUDA": ("0", "no CUDA on macOS"),
                "TORCHVISION_USE_PNG": ("0", _NOT_THE_HOSTS),
                "TORCHVISION_USE_JPEG": ("0", _NOT_THE_HOSTS),
                "TORCHVISION_USE_WEBP": ("0", _NOT_THE_HOSTS),
                "TORCHVISION_USE_NVJPEG": ("0", "no CUDA on macOS"),
                "TORCHVISION_USE_FFMPEG": ("0", "never the FFmpeg that happens to be on the host"),
                "TORCHVISION_USE_VIDEO_CODEC": ("0", "no CUDA on macOS"),
            }
        ),
    ),
    "torchaudio": Project(
        name="torchaudio",
        repository="https://github.com/pytorch/audio.git",
        marks=("src/torchaudio/__init__.py", "torchaudio/__init__.py"),
        extensions=("torchaudio/lib/*torchaudio*.so",),
        variables=_variables(
            {
                "USE_CUDA": ("0", "no CUDA on macOS"),
                "USE_OPENMP": ("0", "a second OpenMP beside torch's would be loaded"),
                "USE_FFMPEG": ("0", "its build downloads FFmpeg; torchcodec has taken its place"),
                "BUILD_SOX": ("0", "its build downloads SoX, which a Mac does not have when it runs"),
                "BUILD_CPP_TEST": ("0", "no C++ tests in a wheel"),
                # Without it the audit's P5 speaks, as it does of the official torchaudio 2.6.0.
                "LDFLAGS": ("-Wl,-rpath,@loader_path", "its second library finds the first one beside it"),
            }
        ),
    ),
}


def target_variables(recipe: Recipe) -> tuple[Variable, ...]:
    """Return what a recipe's environment says of the Mac that the wheel is for."""
    return tuple(variable for variable in recipe.environment if variable.name in _OF_THE_TARGET)


# Which torch the companions are built for: the recipe's own wheel, found by its receipts, or one that is given.


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


# A companion's source: which one is requested, and whether a tree is what it should be.


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChoice:
    """Where a companion comes from: its tag by git, a tarball, or the caller's own folder (copied, never built in)."""

    kind: Literal["git", "tarball", "folder"]
    place: str


def parse_sources(texts: Iterable[str], names: Iterable[str]) -> Mapping[str, SourceChoice]:
    """Return the choice for each companion in `names`; what no text names comes from its tag.

    Raises:
        UsageError: not NAME=PATH, another name, a repeated name, or nothing is there.
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
            raise UsageError(f"--source names {name} two times: {given[name]} and {place}")
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
