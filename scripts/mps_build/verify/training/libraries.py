"""Which Accelerate and Transformers go with a torch, and the Python that has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename
from packaging.version import Version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from mps_build.common import strict_yaml
from mps_build.common.errors import BuildEnvironmentError, UsageError
from mps_build.common.json_text import parse_json
from mps_build.common.known_issues import Range, Text
from mps_build.common.process import Command, capture

from ..target.environments import EnvironmentStore
from ..target.interpreter import Interpreter, SuiteEnviron
from ..target.resolve import Target, prepare_target
from .request import TrainingRequest

TABLE = Path(__file__).with_name("versions.yaml")
LIBRARIES = ("accelerate", "transformers")


def _version(text: str) -> str:
    try:
        Version(text)
    except ValueError:
        raise ValueError(f'no version: "{text}"') from None
    return text


Exact = Annotated[str, AfterValidator(_version)]


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Oldest(_Declared):
    """The first torch for which anything is offered, and why."""

    torch: Exact
    reason: Text
    link: Text


class LibrarySet(_Declared):
    """Versions that go together, for the torches and Pythons of two ranges."""

    accelerate: Exact
    transformers: Exact
    torch: Range
    python: Range

    def fits(self, torch: Version, python: Version) -> bool:
        """Return whether this set of libraries works with a torch and a Python."""
        return SpecifierSet(self.torch).contains(torch) and SpecifierSet(self.python).contains(python)


class Beside(_Declared):
    """What else is installed for a range of torches."""

    torch: Range
    requirements: tuple[Text, ...]


class Floor(_Declared):
    """What a library asks for from one of its versions on."""

    since: Exact = Field(alias="from")
    torch: Exact
    python: Exact


class Floors(_Declared):
    """The oldest torch and Python of each library's versions."""

    accelerate: tuple[Floor, ...] = Field(min_length=1)
    transformers: tuple[Floor, ...] = Field(min_length=1)

    def of(self, library: str, version: str) -> Floor | None:
        """Return the row that holds for a version; None for one older than all rows."""
        rows: tuple[Floor, ...] = getattr(self, library)
        held = [row for row in rows if Version(row.since) <= Version(Version(version).base_version)]
        return held[-1] if held else None


class Tested(_Declared):
    """One run of `verify_training` that ended well."""

    torch: Exact
    python: Text
    accelerate: Exact
    transformers: Exact
    device: Literal["mps", "cuda", "cpu"]
    host: Text
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]


class Versions(_Declared):
    """The whole of versions.yaml."""

    schema_version: Literal[1]
    oldest: Oldest
    sets: tuple[LibrarySet, ...] = Field(min_length=1)
    beside: tuple[Beside, ...]
    floors: Floors
    tested: tuple[Tested, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """What is installed beside a torch: exact versions of the libraries, and what they need."""

    accelerate: str
    transformers: str
    beside: tuple[str, ...]

    def requirements(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Return what pip installs; Transformers' Trainer needs Accelerate, which does not need Transformers."""
        wanted = [f"accelerate=={self.accelerate}"]
        if "transformers" in parts:
            wanted.append(f"transformers=={self.transformers}")
        return (*wanted, *self.beside)


def load_versions(path: Path = TABLE) -> Versions:
    """Return the table, or raise a UsageError that lists every fault with its line."""
    return strict_yaml.load(path, Versions)


def refuse_old_torch(table: Versions, torch: str | None, given: dict[str, str] | None = None) -> None:
    """Refuse a torch for which neither library promises anything on MPS, or that is too old for a named version.

    Raises:
        UsageError: it is older than the table's oldest, or than what such a version needs.
    """
    release = _release(torch)
    if release is not None and release < Version(table.oldest.torch):
        raise UsageError(
            f"torch {torch} is too old for Accelerate and Transformers on MPS: "
            f"{table.oldest.reason} ({table.oldest.link})",
            hint=f"take torch {table.oldest.torch}.1 or later",
        )
    if release is not None and given:
        found = next((row for row in table.sets if SpecifierSet(row.torch).contains(release)), None)
        for library, version in given.items():
            _check_given(table, library, version, torch=release, python=None, found=found)


def choose(table: Versions, *, torch: str, python: str, given: dict[str, str] | None = None) -> Libraries:
    """Return the libraries for a torch and a Python; `given` names versions that the caller wants instead.

    Raises:
        UsageError: the torch, or the Python, is too old for the table or for a version that was named.
    """
    refuse_old_torch(table, torch)
    release, running = _release(torch), python_release(python)
    if release is None:
        raise UsageError(f"torch {torch!r}: is not in the table of supported versions", hint="see versions.yaml")
    found = next((row for row in table.sets if row.fits(release, running)), None)
    wanted = {name: version for name, version in (given or {}).items() if version}
    for library, version in wanted.items():
        _check_given(table, library, version, torch=release, python=running, found=found)
    if found is None:
        raise UsageError(
            f"no Accelerate and Transformers are known for torch {torch} on Python {python}",
            hint="choose a newer Python: --python 3.12",
        )
    beside = next((row.requirements for row in table.beside if SpecifierSet(row.torch).contains(release)), ())
    return Libraries(
        accelerate=wanted.get("accelerate", found.accelerate),
        transformers=wanted.get("transformers", found.transformers),
        beside=beside,
    )


def installed_fault(table: Versions, *, torch: str, python: str, versions: dict[str, str]) -> str | None:
    """Return why libraries that somebody else installed do not fit their torch, with the version that does; or None."""
    release, running = _release(torch), python_release(python)
    if release is None:
        return None
    found = next((row for row in table.sets if row.fits(release, running)), None)
    for library, version in versions.items():
        floor = table.floors.of(library, version)
        if floor is not None and release < Version(floor.torch):
            needs = f"which needs torch {floor.torch} or later{_fits(library, found)}"
            return f"torch {torch} is too old for {library} {version}, {needs}"
    return None


def python_release(python: str) -> Version:
    """Return a Python's version as a number: `3.13t` is 3.13.

    >>> python_release("3.13t"), python_release("3.11.7")
    (<Version('3.13')>, <Version('3.11')>)
    """
    found = re.match(r"(\d+)\.(\d+)", python)
    return Version(found[0] if found else "0")


def _check_given(
    table: Versions, library: str, version: str, *, torch: Version, python: Version | None, found: LibrarySet | None
) -> None:
    try:
        floor = table.floors.of(library, version)
    except ValueError as error:
        raise UsageError(
            f"--{library} {version!r} is not a version", hint=f"for example: --{library} 1.15.0"
        ) from error
    if floor is None:
        oldest = getattr(table.floors, library)[0].since
        raise UsageError(f"{library} {version} is older than any supported version", hint=f"{oldest} or later")
    fitting = f"--{library} {getattr(found, library)}" if found else "choose another Python: --python 3.12"
    if torch < Version(floor.torch):
        raise UsageError(
            f"torch {torch} is too old for {library} {version}, which needs torch {floor.torch} or later"
            + _fits(library, found),
            hint=f"{fitting} (or leave the option out), or use a newer torch",
        )
    if python is not None and python < Version(floor.python):
        raise UsageError(
            f"Python {python} is too old for {library} {version}, which needs {floor.python} or later"
            + _fits(library, found),
            hint=f"--python {floor.python}, or {fitting}",
        )


def _fits(library: str, found: LibrarySet | None) -> str:
    return f"; {library} {getattr(found, library)} fits" if found else ""


def _release(torch: str | None) -> Version | None:
    try:
        return Version(Version(torch or "").base_version)
    except ValueError:
        return None


def table_rows(table: Versions, pythons: dict[str, tuple[str, ...]]) -> list[tuple[Any, ...]]:
    """Return (torch, Pythons, Accelerate, Transformers) rows for releases and their Pythons, for the documentation."""
    rows: list[tuple[Any, ...]] = []
    for torch, versions in pythons.items():
        groups: dict[tuple[str, str], list[str]] = {}
        for python in versions:
            chosen = choose(table, torch=torch, python=python)
            groups.setdefault((chosen.accelerate, chosen.transformers), []).append(python)
        rows += [(torch, ", ".join(group), *chosen) for chosen, group in groups.items()]
    return rows


_NEEDED = {"accelerate": ("accelerate", "scikit-learn"), "transformers": ("accelerate", "transformers")}
_ASK = """
import json
from importlib import metadata
found = {}
for name in ("accelerate", "transformers", "scikit-learn", "numpy"):
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        found[name] = None
print(json.dumps(found))
"""


def prepare_training_target(request: TrainingRequest, store: EnvironmentStore, table: Versions) -> Target:
    """Return the Python that runs the workloads.

    Raises:
        UsageError: torch or Python is too old for the libraries; or what `verify_mps` refuses.
        BuildEnvironmentError: pip cannot install them, or an interpreter that is not ours lacks one.
    """
    if request.target is None:
        return _found(request, store, table)

    def libraries(wheel: Path, python: Interpreter) -> tuple[str, ...]:
        version = str(parse_wheel_filename(wheel.name)[1])
        chosen = choose(table, torch=version, python=python.short, given=request.chosen_versions)
        return chosen.requirements(request.parts)

    return prepare_target(request, store, extras=libraries)


def _found(request: TrainingRequest, store: EnvironmentStore, table: Versions) -> Target:
    if request.chosen_versions:
        raise UsageError(
            "--accelerate and --transformers choose what is installed, and nothing is installed into --python",
            hint="name a wheel or a requirement as well: verify_training -- torch==2.13.0 --transformers 5.23.0",
        )
    target = prepare_target(request, store, pytest=False)
    version = target.document.get("version")
    refuse_old_torch(table, version)
    installed = _installed(target.interpreter, target.environ)
    _check_installed(request, table, target.interpreter, version, installed)
    return replace(target, document={**target.document, "libraries": dict(installed)})


def _installed(interpreter: Interpreter, environ: SuiteEnviron) -> Mapping[str, str | None]:
    answer = capture(Command(argv=(str(interpreter.executable), "-c", _ASK), environ=environ.variables))
    try:
        found: dict[str, str | None] = parse_json(answer.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise UsageError(f"{interpreter.executable}: does not say what is installed: {answer.stderr[-300:]}") from error
    return found


def _check_installed(
    request: TrainingRequest,
    table: Versions,
    interpreter: Interpreter,
    torch: str | None,
    installed: Mapping[str, str | None],
) -> None:
    """Refuse an environment that lacks a library, or has one that is too new for its torch."""
    needed = dict.fromkeys(name for part in request.parts for name in _NEEDED[part])
    missing = [name for name in needed if not installed.get(name)]
    if missing:
        wanted = dict.fromkeys(missing)
        if torch is not None:
            chosen = choose(table, torch=torch, python=interpreter.short)
            versions = {"accelerate": chosen.accelerate, "transformers": chosen.transformers}
            wanted = dict.fromkeys(f"{name}=={versions[name]}" if name in versions else name for name in missing)
        raise BuildEnvironmentError(
            f"{interpreter.executable}: has no {', '.join(missing)} (nothing is installed into it)",
            hint=f"{interpreter.executable} -m pip install {' '.join(wanted)}; or have an environment made: "
            "verify_training -- torch==2.13.0",
        )
    versions = {name: version for name in ("accelerate", "transformers") if (version := installed.get(name))}
    if "transformers" not in request.parts:
        versions.pop("transformers", None)
    if torch is not None:
        fault = installed_fault(table, torch=torch, python=interpreter.short, versions=versions)
        if fault is not None:
            raise UsageError(
                f"{interpreter.executable}: {fault}", hint="install the version that fits, or a newer torch"
            )
