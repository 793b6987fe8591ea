"""Requirement -> wheel file: pip downloads what it would install on an Apple silicon Mac, once.

pip asks whatever index its own settings name, and checks the hash that the index gives. It can only ask
for one Python at a time, so the newest Python that has a wheel is found by asking downwards.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from ..environment import fetch_environ
from ..errors import SourceError, UsageError
from ..files import write_whole
from ..json_text import read_json
from ..process import Command, CommandFailed, run_logged
from ..reporter import Reporter

# One newer than the newest known, so that a release for the next Python is seen; torch 1.12 ends at 3.7.
PYTHONS = tuple(f"3.{minor}" for minor in range(16, 6, -1))
# pip expands a macOS platform to every older one.
MACOS_PLATFORM = "macosx_99_0_arm64"
_PYTHON = re.compile(r"3\.(\d+)(t?)")
_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_UNREACHABLE = ("Retrying (Retry(", "ConnectionError", "Temporary failure in name resolution", "ReadTimeoutError")
_NOTHING = "No matching distribution found"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedWheel:
    """A downloaded wheel; `from_cache` tells that nothing was asked of the network."""

    path: Path
    from_cache: bool


def parse_requirement(text: str) -> Requirement:
    """Return the requirement.

    Raises:
        UsageError: not a name with a version, or one with a URL.
    """
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise UsageError(
            f"{text!r} is neither a file nor a requirement", hint="give a .whl file, or such as torch==2.15.0"
        ) from error
    if requirement.url or requirement.marker:
        raise UsageError(f"{text!r}: only a name with versions can be fetched", hint="download it and give the file")
    return requirement


def fetch_wheel(
    requirement: str, *, python: str | None, cache: Path, log: Path, reporter: Reporter, refresh: bool = False
) -> FetchedWheel:
    """Return the macOS arm64 wheel of a requirement, for `python` or the newest Python that has one.

    Args:
        python: `3.12` or `3.14t`.
        cache: where wheels are kept; an exact version is asked of the network only once.

    Raises:
        UsageError: no such wheel.
        SourceError: the index cannot be reached.
    """
    wanted = parse_requirement(requirement)
    if python is not None and not _PYTHON.fullmatch(python):
        raise UsageError(f"--python {python}: is not a version of Python", hint="such as 3.12, or 3.14t")
    known = _Known(cache / "requests.json")
    key = f"{wanted} for Python {python or 'newest'}"
    is_exact = len(wanted.specifier) == 1 and all(
        each.operator == "==" and "*" not in each.version for each in wanted.specifier
    )
    if is_exact and not refresh and (path := known.get(key)):
        return FetchedWheel(path=path, from_cache=True)
    for candidate in (python,) if python else PYTHONS:
        reporter.started(f"Ask for {wanted} on Python {candidate}", unit="bytes")
        path = _download(wanted, candidate, cache=cache, log=log, reporter=reporter)
        reporter.done()
        if path is not None:
            known.put(key, path)
            return FetchedWheel(path=path, from_cache=False)
    asked = f"Python {python}" if python else f"any Python from {PYTHONS[-1]} to {PYTHONS[0]}"
    raise UsageError(
        f"no macOS arm64 wheel of {wanted} for {asked}",
        hint=f"`pip index versions {wanted.name}` lists the versions; pip's output is in {log}",
    )


def _download(wanted: Requirement, python: str, *, cache: Path, log: Path, reporter: Reporter) -> Path | None:
    """Return the wheel for one Python, or None if there is none."""
    cache.mkdir(parents=True, exist_ok=True)
    said: list[str] = []

    def on_line(line: str) -> None:
        if match := _PROGRESS.search(line):
            reporter.advanced(int(match[1]), total=int(match[2]))
        else:
            said.append(line)

    # Downloaded beside and renamed: a wheel in the cache is whole, or not there.
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache) as beside:
        try:
            run_logged(_pip_download(wanted, python, Path(beside)), log=log, on_line=on_line)
        except CommandFailed as failure:
            text = "\n".join(said)
            if any(mark in text for mark in _UNREACHABLE):
                raise SourceError(
                    f"the package index cannot be reached to fetch {wanted}",
                    hint=f"check the network and pip's settings (`pip config list`); pip's output is in {log}",
                ) from failure
            if _NOTHING in text:
                return None
            errors = [line for line in said if line.startswith("ERROR:")]
            raise SourceError(
                f"pip could not fetch {wanted}: {(errors or said or ['it said nothing'])[-1].removeprefix('ERROR: ')}",
                hint=f"pip's output is in {log}",
            ) from failure
        wheels = list(Path(beside).glob("*.whl"))
        if len(wheels) != 1:
            raise SourceError(f"pip fetched {len(wheels)} wheels for {wanted}", hint=f"see {log}")
        destination = cache / wheels[0].name
        wheels[0].replace(destination)
        return destination


def _pip_download(wanted: Requirement, python: str, destination: Path) -> Command:
    match = _PYTHON.fullmatch(python)
    assert match is not None
    minor, threads = match.groups()
    return Command(
        argv=(
            *pip_command(),
            "--disable-pip-version-check",
            "--no-input",
            "download",
            "--retries=2",
            f"--progress-bar={_progress()}",
            "--no-deps",
            "--only-binary=:all:",
            "--implementation=cp",
            f"--python-version=3.{minor}",
            f"--abi=cp3{minor}{threads}",
            f"--platform={MACOS_PLATFORM}",
            f"--dest={destination}",
            str(wanted),
        ),
        environ=fetch_environ(os.environ),
    )


def pip_command() -> tuple[str, ...]:
    """Return a pip to call: ours, or one on PATH."""
    if importlib.util.find_spec("pip"):
        return (sys.executable, "-m", "pip")
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            return (found,)
    raise UsageError(
        "pip is missing, which fetches wheels", hint="`python -m ensurepip`; or download the wheel and give the file"
    )


def _progress() -> str:
    """Return the progress bar to ask for: only pip 24.1 and newer can tell a program how far it is."""
    try:
        version = importlib.metadata.version("pip")
    except importlib.metadata.PackageNotFoundError:
        return "off"
    return "raw" if Version(version) >= Version("24.1") else "off"


class _Known:
    """Which wheel answered which request."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, key: str) -> Path | None:
        entry = self._read().get(key)
        path = self._path.parent / str(entry["file"]) if entry else None
        is_whole = path is not None and path.is_file() and path.stat().st_size == (entry or {}).get("size")
        return path if is_whole else None

    def put(self, key: str, path: Path) -> None:
        entries = {**self._read(), key: {"file": path.name, "size": path.stat().st_size}}
        write_whole(self._path, json.dumps(entries, indent=2, sort_keys=True) + "\n")

    def _read(self) -> dict[str, dict[str, object]]:
        try:
            entries = read_json(self._path)
        except (OSError, ValueError):
            return {}  # a lost note costs one question to the index
        return entries if isinstance(entries, dict) else {}
