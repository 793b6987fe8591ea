"""The versions of torch between two: listed, installed, and which have the same Metal kernels."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.version import Version

from mps_build.common.errors import BuildEnvironmentError, UsageError
from mps_build.common.process import Command, CommandFailed, capture
from mps_build.common.reporting import Reporter, SilentReporter
from mps_build.common.wheels.download import WheelCache, own_folder
from mps_build.common.wheels.pip_call import (
    LIMITS,
    QUESTION,
    Fetched,
    certificate_fault,
    limited_pip,
    limits_of_run,
    refused_unchecked,
    run_pip,
)
from mps_build.common.wheels.wheel_file import UnsoundWheel, open_wheel
from mps_build.common.workspace import remove_tree

from ...kernels.execution.selection import Choice, choose
from ...kernels.read.library import Library
from ...kernels.read.wheel import read_libraries
from ...kernels.report.difference import compare_kernels
from ..target.torch_build import BuildQuery, choose_build
from .runner import CannotTest, Prepared

_OPTIONS = ("--disable-pip-version-check", "--no-input")
_PIP = (*limited_pip(sys.executable, limits=QUESTION), *_OPTIONS)
_READY = "ready"
_GIT_VERSION = re.compile(r"""^git_version\s*(?::[^=]*)?=\s*['"]([0-9a-f]{40})['"]""", re.MULTILINE)


def parse_version(text: str) -> Version | None:
    """Return a version of torch, or None for anything else (a commit, a branch).

    >>> parse_version("2.6.0.dev20241101"), parse_version("1234567"), parse_version("main")
    (<Version('2.6.0.dev20241101')>, None, None)
    """
    try:
        return Version(text) if re.match(r"v?\d+\.\d", text) else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """Where versions come from: pip's own index, or a folder or address in its place."""

    arguments: tuple[str, ...]
    environ: Mapping[str, str]

    def versions(self, python: str, *, nightlies: bool) -> tuple[Version, ...]:
        """Return every version that pip would take for a Python (`3.11`), oldest first.

        Raises:
            BuildEnvironmentError: the index does not answer.
        """
        pre = ("--pre",) if nightlies else ()
        argv = (*_PIP, "index", "versions", "torch", "--python-version", python, *pre, *self.arguments)
        answer = capture(Command(argv=argv, environ={**self.environ, "PIP_NO_COLOR": "1"}), timeout_seconds=180)
        listed = re.search(r"^Available versions: (.*)$", answer.stdout, re.MULTILINE)
        if listed:
            return tuple(sorted(map(Version, listed[1].split(", "))))
        if fault := certificate_fault(answer.stderr, wanted="the versions of torch"):
            raise BuildEnvironmentError(fault[0], hint=fault[1])
        if "No matching distribution" in answer.stderr:
            return ()
        raise BuildEnvironmentError(
            f"pip cannot list the versions of torch: {answer.stderr.strip()[-400:] or 'no answer'}",
            hint="check the network, or give --index DIR with wheels",
        )


def between(versions: Iterable[Version], old: Version, new: Version) -> tuple[Version, ...]:
    """Return the final releases and nightlies strictly between two versions, oldest first.

    Local versions of one public version (2.6.0, 2.6.0+cpu) count once; release candidates are left out.
    """
    chosen: dict[str, Version] = {}
    for version in sorted(versions):
        if old.public != version.public != new.public and old < version < new and (version.dev or not version.pre):
            chosen.setdefault(version.public, version)
    return tuple(chosen.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Venvs:
    """Makes a venv for each tested version: fetched from the index, with its requirements from pip's own.

    `wants_cuda`: the versions are to run on a GPU of NVIDIA's.
    """

    folder: Path
    index: Index
    python_of: Mapping[str, Path]
    seconds: float = 1800.0
    trust: bool = False
    reporter: Reporter = field(default_factory=SilentReporter)
    wants_cuda: bool = False

    def prepare(self, version: str) -> Prepared:
        """Return the version's venv, made or found again.

        Raises:
            CannotTest: it cannot be fetched or installed.
        """
        wheel = self.fetch(version)
        return self.install(wheel, subject=version, interpreter=self.python_of[version])

    def install(self, wheel: Path, *, subject: str, interpreter: Path) -> Prepared:
        """Return a venv that holds a wheel and what it requires."""
        venv = self.folder / "venvs" / subject
        python = venv / "bin" / "python"
        if not (venv / _READY).is_file():
            remove_tree(venv)
            self._run((str(interpreter), "-m", "venv", "--without-pip", str(venv)), f"{interpreter} makes no venv")
            # Old torch was compiled against numpy 1: https://github.com/pytorch/pytorch/issues/107302
            version = parse_version(wheel.name.split("-")[1])
            limit = ("--constraint", str(self._numpy_1())) if version and version < Version("2.3") else ()
            argv = (*self._pip, "--python", str(python), "install", *limit, str(wheel))
            self._run(argv, "pip cannot install it")
            (venv / _READY).write_bytes(os.fsencode(f"{wheel.name}\n"))
        return Prepared(subject=subject, python=python, commit=commit_of(wheel))

    @property
    def _pip(self) -> tuple[str, ...]:
        return (*limited_pip(sys.executable, limits=limits_of_run(trust=self.trust)), *_OPTIONS)

    def fetch(self, version: str) -> Path:
        """Return a version's wheel, fetched or found again.

        Raises:
            CannotTest: the index has none for this machine.
            RefusedForSafety: the index gives no hash of it.
        """
        kept = WheelCache(own_folder(self.folder / "wheels") / version)
        if found := kept.get(version, unchecked=self.trust):
            return found
        with kept.beside() as fresh:
            python = (*self._pip, "--python", str(self.python_of[version]))
            argv = (*python, "download", "--no-deps", "--only-binary=:all:", "--pre", "-d", str(fresh))
            query = BuildQuery(
                pip=Path(sys.executable),
                python=self.python_of[version],
                system=platform.system(),
                environ=self.index.environ,
                log=self.folder / "install.log",
                reporter=self.reporter,
                options=("--pre", *self.index.arguments),
                wants_cuda=self.wants_cuda,
                needs_hash=not self.trust,
            )
            wanted = choose_build(f"torch=={version}", query)
            fetched = self._run((*argv, *self.index.arguments, wanted), "pip cannot fetch it")
            unchecked = any(each.hash is None for each in fetched)
            return kept.put(version, next(fresh.glob("*.whl")), unchecked=unchecked)

    def _numpy_1(self) -> Path:
        path = self.folder / "numpy_1.txt"
        path.write_text("numpy<2\n")
        return path

    def _run(self, argv: tuple[str, ...], what: str) -> tuple[Fetched, ...]:
        environ = {**self.index.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            command = Command(argv=argv, environ=environ)
            limits = replace(LIMITS, total_seconds=self.seconds)
            return run_pip(command, log=self.folder / "install.log", tell=self.reporter.line, limits=limits)
        except CommandFailed as failure:
            text = "\n".join(failure.tail)
            if unchecked := refused_unchecked(text, wanted=argv[-1]):
                raise unchecked from failure
            if fault := certificate_fault(text, wanted=argv[-1]):
                raise BuildEnvironmentError(fault[0], hint=fault[1]) from failure
            said = next((line for line in reversed(failure.tail) if "error" in line.lower()), None)
            raise CannotTest(f"{what}: {said or ' '.join(failure.tail[-1:])}") from failure


def commit_of(wheel: Path) -> str | None:
    """Return the commit that a wheel of torch says it was built from; None if it does not say."""
    try:
        with open_wheel(wheel) as members:
            text = members.read("torch/version.py").decode("utf-8", "replace")
    except (OSError, UnsoundWheel):
        return None
    match = _GIT_VERSION.search(text)
    return match[1] if match else None


_SHOWN, _KEPT = 5, 3


@dataclass(slots=True, kw_only=True)
class KernelsOf:
    """One operator's kernels, read from wheels: versions that have the same need not both be tested.

    Equal kernels do not prove equal answers: code of the host changes too. What is skipped is a guess, which the
    search tests at both sides of its result.

    Args:
        operator: aten name.
        fetch: returns a version's wheel; raises CannotTest where there is none.
    """

    operator: str
    fetch: Callable[[str], Path]
    reporter: Reporter
    _libraries: dict[str, tuple[Library, ...]] = field(default_factory=dict)
    _changed: dict[tuple[str, str], tuple[str, ...] | None] = field(default_factory=dict)

    def changed(self, one: str, other: str) -> tuple[str, ...] | None:
        """Return which of the operator's kernels are not the same, or None: not known (no wheel, no such kernel)."""
        key = (one, other) if one < other else (other, one)
        if key not in self._changed:
            self._changed[key] = self._compared(*key)
        return self._changed[key]

    def note(self, old: str, new: str) -> str:
        """Return what a reader of a result must know: which kernels changed between two versions."""
        names = self.changed(old, new)
        if names is None:
            return f"the kernels of {self.operator} in {old} and {new} cannot be compared"
        if not names:
            return f"no Metal kernel of {self.operator} differs between {old} and {new}: the cause is not in them"
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"kernels of {self.operator} that differ between {old} and {new}: {', '.join(names[:_SHOWN])}{more}"

    def _compared(self, one: str, other: str) -> tuple[str, ...] | None:
        try:
            sides = [self._read(version) for version in (one, other)]
        except (CannotTest, UsageError):
            return None
        names = {
            library.functions[place].name
            for side in sides
            for library in side
            for place in choose(library, Choice(operator=self.operator))
        }
        if not names:
            return None
        found = compare_kernels(sides[0], sides[1], self.reporter, keep=names.__contains__)
        return tuple(sorted((*found.changed, *found.new, *found.gone)))

    def _read(self, version: str) -> tuple[Library, ...]:
        if parse_version(version) is None:
            raise CannotTest("a commit has no wheel before it is built")
        if version not in self._libraries:
            while len(self._libraries) >= _KEPT:  # each is 200 MB
                del self._libraries[next(iter(self._libraries))]
            self._libraries[version] = read_libraries(self.fetch(version))
        return self._libraries[version]
