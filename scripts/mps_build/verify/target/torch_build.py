"""Which build of torch pip is to fetch: one for the CPU where there is one; and what it brings is said before.

On Linux the torch of PyPI is a build for CUDA, with gigabytes of libraries beside it. Builds for the CPU have the local
version `cpu`; where they are is said by pip's own settings: a folder, a further index.
https://packaging.python.org/en/latest/specifications/version-specifiers/#local-version-identifiers
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from mps_build.common.console import human_bytes
from mps_build.common.json_text import parse_json, read_json
from mps_build.common.process import Command, CommandFailed, capture
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.limited_pip import SIZES
from mps_build.common.wheels.pip_call import QUESTION, limited_pip, run_pip

# An index that keeps no metadata beside its files would have the whole file fetched to learn what it needs.
_QUESTION = replace(QUESTION, body_bytes=32 << 20, total_seconds=300.0)
_ANNOUNCED = re.compile(r"announces (\d+) bytes")
_LOOKED = re.compile(r"^Looking in (?:indexes|links): (.*)$")
_COLLECTING = re.compile(r"^\s*Collecting ([A-Za-z0-9._-]+)")
# pip reads a wheel's metadata out of its middle: https://pip.pypa.io/en/stable/user_guide/#fast-deps
_LAZY, _UNKNOWN = ("--use-feature=fast-deps",), "--use-feature"
_CPU, _CUDA, _ROCM, _XPU = "the CPU", "CUDA", "ROCm", "Intel's GPUs"
_LOCAL = {"cpu": _CPU, "cu": _CUDA, "rocm": _ROCM, "xpu": _XPU}
# Measured on Linux with 2.13.0 for Python 3.12, with all that it needs.
_ON_DISK = {_CPU: "0.9 GB", _CUDA: "4.7 GB"}
# Up to 1.12 the libraries of CUDA lay in torch's own wheel.
_CUDA_INSIDE = Version("1.13")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildQuery:
    """How pip is queried.

    Args:
        pip: a Python that has pip.
        python: the Python that torch is for, which stays as it is.
        system: of that Python, as `platform.system()` has it.
        options: of pip, such as `--pre` or an index.
        wants_cuda: whether torch is to run on a GPU of NVIDIA's: a build for the CPU is not looked for.
        needs_hash: whether nothing is fetched of which the index gives no hash, not even to read what it requires.
    """

    pip: Path
    python: Path
    system: str
    environ: Mapping[str, str]
    log: Path
    reporter: Reporter
    options: tuple[str, ...] = ()
    wants_cuda: bool = False
    needs_hash: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What pip would fetch for a requirement of torch.

    Args:
        version: of torch; empty if it is not known.
        kind: what it is for; empty if that is not known.
        packages: how many packages in all, torch among them; 0 if that is not known.
        size: bytes of all of them; of torch's wheel alone if `packages` is 0; None if a server does not say.
        sources: where pip looked.
    """

    version: str
    kind: str
    packages: int = 0
    size: int | None = None
    sources: tuple[str, ...] = ()

    def text(self, system: str) -> str:
        """Return what is fetched, in words."""
        kind = f"a build for {self.kind}" if self.kind else "the index does not tell what it is a build for"
        size = human_bytes(self.size) if self.size is not None else "their size is not known"
        if self.packages:
            parts = [kind, f"{self.packages} packages, {size}" + (" to fetch" if self.size is not None else "")]
        else:
            parts = [kind, f"{size} to fetch, and what it needs"]
        if system == "Linux" and self.kind in _ON_DISK:
            parts.append(f"about {_ON_DISK[self.kind]} on disk")
        return f"torch {self.version}".rstrip() + f": {'; '.join(parts)}"


def choose_build(requirement: str, query: BuildQuery) -> str:
    """Return the requirement that pip is to fetch, and say what it brings: kind, packages, bytes, and for a build that
    is not for the CPU where one was looked for.

    What pip cannot answer is left to the fetch, which says why.
    """
    found = _build_of(requirement, query)
    if found is None:
        return requirement
    if query.system == "Linux" and not query.wants_cuda and found.kind != _CPU and found.version:
        wanted = _for_cpu(requirement, found.version)
        if wanted is not None:
            build = _build_of(wanted, query)
            if build is not None:
                query.reporter.line(build.text(query.system))
                return wanted
            query.reporter.line(
                f"no {wanted}, a build for the CPU, in {', '.join(found.sources)}; an index for CPU builds that pip's "
                "settings name (PIP_EXTRA_INDEX_URL) would be taken"
            )
    query.reporter.line(found.text(query.system))
    return requirement


def _for_cpu(requirement: str, version: str) -> str | None:
    """Return the requirement of a version's build for the CPU; None where another build is named.

    >>> _for_cpu("torch>=2.12", "2.13.0"), _for_cpu("torch==2.13.0", "2.13.0+cu130")
    ('torch==2.13.0+cpu', 'torch==2.13.0+cpu')
    >>> _for_cpu("torch==2.13.0+cu130", "2.13.0+cu130")
    """
    if any("+" in each.version for each in Requirement(requirement).specifier):
        return None
    return f"torch=={Version(version).public}+cpu"


def _build_of(requirement: str, query: BuildQuery) -> Build | None:
    """Return what pip would fetch, as far as it is known without fetching; None if pip finds nothing or fails."""
    query.reporter.started(f"Ask what {requirement} brings")
    try:
        said = _answer_of(requirement, query, _LAZY)
        if said.items is None and _UNKNOWN in said.failure:
            said = _answer_of(requirement, query, ())
        if said.items:
            return _planned(said.items, said.sources, query)
        announced = _ANNOUNCED.search(said.failure)
        if announced is None:
            return None
        # A pip that fetches what it need not, or a server that gives no part of a file: it was stopped at the first.
        version = _exact(requirement)
        kind = kind_of(version, said.names if len(said.names) > 1 else (), is_linux=query.system == "Linux")
        return Build(version=version, kind=kind, size=int(announced[1]), sources=said.sources)
    finally:
        query.reporter.done()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What pip said: what it would install, or its last lines; the packages that it came to, and where it looked."""

    items: list[Mapping[str, Any]] | None
    failure: str
    names: tuple[str, ...]
    sources: tuple[str, ...]


def _answer_of(requirement: str, query: BuildQuery, features: tuple[str, ...]) -> _Said:
    sources: list[str] = []
    names: list[str] = []

    def heard(line: str) -> None:
        if match := _LOOKED.match(line):
            sources.extend(match[1].split(", "))
        elif match := _COLLECTING.match(line):
            names.append(canonicalize_name(match[1]))

    items, failure = None, ""
    limits = replace(_QUESTION, needs_hash=query.needs_hash)
    with tempfile.TemporaryDirectory(prefix="mps-build-plan-") as folder:
        report = Path(folder) / "report.json"
        argv = (
            *(*limited_pip(query.pip, limits=limits), "--disable-pip-version-check", "--no-input", "--retries=1"),
            *("--python", str(query.python), "install", "--dry-run", "--ignore-installed", "--only-binary=:all:"),
            *(*features, *query.options, "--report", str(report), requirement),
        )
        try:
            command = Command(argv=argv, environ=query.environ)
            run_pip(command, log=query.log, tell=query.reporter.line, on_line=heard, limits=limits)
            items = _items(report)
        except CommandFailed as error:
            failure = "\n".join(error.tail)
    found = tuple(dict.fromkeys(sources)) or ("PyPI",)
    return _Said(items=items, failure=failure, names=tuple(dict.fromkeys(names)), sources=found)


def _items(report: Path) -> list[Mapping[str, Any]] | None:
    try:
        found: list[Mapping[str, Any]] = read_json(report)["install"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found or None


def _planned(items: Sequence[Mapping[str, Any]], sources: tuple[str, ...], query: BuildQuery) -> Build | None:
    versions: dict[str, str] = {
        canonicalize_name(each["metadata"]["name"]): str(each["metadata"]["version"]) for each in items
    }
    version = versions.get(canonicalize_name("torch"))
    if version is None:
        return None
    kind = kind_of(version, list(versions), is_linux=query.system == "Linux")
    size = _size_of([str(each["download_info"]["url"]) for each in items], query)
    return Build(version=version, kind=kind, packages=len(items), size=size, sources=sources)


def kind_of(version: str, packages: Collection[str], *, is_linux: bool = True) -> str:
    """Return what a build of torch is for, by its local version or what comes with it; empty if neither tells.

    >>> kind_of("2.13.0+cpu", ["torch"]), kind_of("2.13.0", ["torch", "nvidia-cublas"]), kind_of("2.9.0+rocm6.4", [])
    ('the CPU', 'CUDA', 'ROCm')
    >>> kind_of("2.13.0", ["torch", "sympy"]), kind_of("1.12.1", ["torch", "typing-extensions"]), kind_of("2.13.0", [])
    ('the CPU', 'CUDA', '')
    """
    local = Version(version).local if version else None
    if local:
        return next((kind for mark, kind in _LOCAL.items() if local.startswith(mark)), "")
    if not packages:
        return ""
    if any(name.startswith(("nvidia-", "cuda-")) for name in packages):
        return _CUDA
    return _CUDA if is_linux and Version(version) < _CUDA_INSIDE else _CPU


def _exact(requirement: str) -> str:
    """Return the version that a requirement names; empty if it leaves a choice."""
    match = re.fullmatch(r"torch==([\w.+!]+)", requirement.replace(" ", ""))
    return match[1] if match else ""


def _size_of(urls: Sequence[str], query: BuildQuery) -> int | None:
    """Return how many bytes some files have; None if a server does not say."""
    argv = (*limited_pip(query.pip, limits=_QUESTION), SIZES, *urls)
    answer = capture(Command(argv=argv, environ=query.environ), timeout_seconds=60)
    try:
        sizes: list[int | None] = parse_json(answer.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return None
    return sum(each for each in sizes if each is not None) if all(each is not None for each in sizes) else None
