"""Requirement -> wheel file: downloaded by pip as for an Apple silicon Mac, once, and kept by its hash.

pip queries whatever index its own settings name, and checks the hash that the index gives. It can only be given one
Python at a time, so the newest Python that has a wheel is found by going downwards.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from ..environment import fetch_environ
from ..errors import SourceError, UsageError, disk_full
from ..files import NotAFile, named, open_regular, open_to_append, write_whole
from ..json_text import read_json
from ..process import Command, CommandFailed
from ..reporting import Reporter
from ..workspace import remove_tree
from .limited_pip import STATUS
from .pip_call import (
    LIMITS,
    Limits,
    certificate_fault,
    forbidden_by_settings,
    limited_pip,
    refused_unchecked,
    run_pip,
)

_BESIDE = ".fetch-"


def own_folder(path: Path) -> Path:
    """Return a folder that only this user reads and writes, made if need be.

    Raises:
        UsageError: it is a link, is not a folder, or belongs to somebody else: what lies there cannot be believed.
    """
    if not path.parent.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    fault = None
    if stat.S_ISLNK(found.st_mode):
        fault = "is a symbolic link"
    elif not stat.S_ISDIR(found.st_mode):
        fault = "is not a folder"
    elif found.st_uid != os.geteuid():
        fault = f"belongs to another user (uid {found.st_uid}; yours is {os.geteuid()})"
    if fault:
        raise UsageError(
            f"the cache's folder {path} {fault}: what lies in it is not used",
            hint="remove it, or set MPS_BUILD_CACHE to a folder of your own",
        )
    if stat.S_IMODE(found.st_mode) != 0o700:
        path.chmod(0o700)
    return path


def file_digest(path: Path) -> str | None:
    """Return a file's sha256; None if it is missing, a link, not a plain file, or somebody else's."""
    try:
        opened = open_regular(path, follow=False)
    except (FileNotFoundError, IsADirectoryError, NotAFile):
        return None
    with named(path), opened as file:
        if os.fstat(file.fileno()).st_uid != os.geteuid():
            return None
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
        return digest.hexdigest()


class WheelCache:
    """Which wheel answered which request, with the hash it had when pip had checked it against the index's."""

    def __init__(self, folder: Path) -> None:
        self.folder = own_folder(folder)
        self._notes = folder / "requests.json"

    def get(self, key: str, *, unchecked: bool = True) -> Path | None:
        """Return the wheel that a request was answered with, if it is still what it was.

        Args:
            unchecked: also one of which its index gave no hash.
        """
        entry = self._read().get(key)
        if not isinstance(entry, dict) or "sha256" not in entry or (entry.get("unchecked") and not unchecked):
            return None
        path = self.folder / Path(str(entry.get("file"))).name
        return path if file_digest(path) == entry["sha256"] else None

    def file(self, name: str, *, unnoted: bool, unchecked: bool = True) -> Path | None:
        """Return a wheel by its file's name, if it is still what it was; one without a note only where it may be."""
        noted = self._read().items()
        if keys := [key for key, entry in noted if isinstance(entry, dict) and entry.get("file") == name]:
            return next((path for key in keys if (path := self.get(key, unchecked=unchecked))), None)
        return self.folder / name if unnoted and file_digest(self.folder / name) else None

    def put(self, key: str, fetched: Path, *, unchecked: bool = False) -> Path:
        """Take a wheel from a folder of `beside`; what had its name is replaced.

        Args:
            unchecked: its index gave no hash, so what came may be another file.
        """
        digest, path = file_digest(fetched), self.folder / fetched.name
        fetched.replace(path)
        entry = {"file": path.name, "sha256": digest, **({"unchecked": True} if unchecked else {})}
        entries = {**self._read(), key: entry}
        write_whole(self._notes, json.dumps(entries, indent=2, sort_keys=True) + "\n")
        return path

    @contextlib.contextmanager
    def beside(self) -> Iterator[Path]:
        """Give an empty folder to download to; it goes at the end. One whose process was killed goes with the next."""
        for left in self.folder.glob(f"{_BESIDE}*"):
            with contextlib.suppress(OSError), open_to_append(left / ".held") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(left)
        beside = tempfile.TemporaryDirectory(prefix=_BESIDE, dir=self.folder)
        with beside as name, open_to_append(Path(name) / ".held") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield Path(name)

    def _read(self) -> dict[str, object]:
        try:
            entries = read_json(self._notes)
        except (OSError, ValueError):
            return {}  # a lost note costs one question to the index
        return entries if isinstance(entries, dict) else {}


# One newer than the newest known, so that a release for the next Python is seen; torch 1.12 ends at 3.7.
PYTHONS = tuple(f"3.{minor}" for minor in range(16, 6, -1))
# pip expands a macOS platform to every older one.
MACOS_PLATFORM = "macosx_99_0_arm64"
_PYTHON = re.compile(r"3\.(\d+)(t?)")
_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_UNREACHABLE = ("Retrying (Retry(", "ConnectionError", "Temporary failure in name resolution", "ReadTimeoutError")
_NOTHING = "No matching distribution found"


class NoSuchWheel(UsageError):
    """The index has no wheel of the requirement for the Python that was requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedWheel:
    """A downloaded wheel; `from_cache` tells that nothing was requested of the network."""

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
    requirement: str,
    *,
    python: str | None,
    cache: Path,
    log: Path,
    reporter: Reporter,
    refresh: bool = False,
    limits: Limits = LIMITS,
) -> FetchedWheel:
    """Return the macOS arm64 wheel of a requirement, for `python` or the newest Python that has one.

    Args:
        python: `3.12` or `3.14t`.
        cache: where wheels are kept; an exact version is requested of the network only once, while its hash holds.
        limits: `EXECUTED` where the wheel, or a part of it, will run.

    Raises:
        UsageError: no such wheel, or one that pip's settings do not allow; or the cache is a link, or somebody else's.
        SourceError: the index cannot be reached, or its certificate is not accepted.
        RefusedForSafety: the wheel will run, and the index gives no hash of it.
    """
    wanted = parse_requirement(requirement)
    if python is not None and not _PYTHON.fullmatch(python):
        raise UsageError(f"--python {python}: is not a version of Python", hint="such as 3.12, or 3.14t")
    known = WheelCache(cache)
    key = f"{wanted} for Python {python or 'newest'}"
    is_exact = len(wanted.specifier) == 1 and all(
        each.operator == "==" and "*" not in each.version for each in wanted.specifier
    )
    if is_exact and not refresh and (path := known.get(key, unchecked=not limits.needs_hash)):
        return FetchedWheel(path=path, from_cache=True)
    for candidate in (python,) if python else PYTHONS:
        reporter.started(f"Ask for {wanted} on Python {candidate}", unit="bytes")
        with known.beside() as beside:
            got = _download(wanted, candidate, beside=beside, log=log, reporter=reporter, limits=limits)
            path = known.put(key, got[0], unchecked=got[1]) if got else None
        reporter.done()
        if path is not None:
            return FetchedWheel(path=path, from_cache=False)
    requested = f"Python {python}" if python else f"any Python from {PYTHONS[-1]} to {PYTHONS[0]}"
    raise NoSuchWheel(
        f"no macOS arm64 wheel of {wanted} for {requested}",
        hint=f"`pip index versions {wanted.name}` lists the versions; pip's output is in {log}",
    )


def _download(
    wanted: Requirement, python: str, *, beside: Path, log: Path, reporter: Reporter, limits: Limits
) -> tuple[Path, bool] | None:
    """Return the wheel for one Python, and whether no hash of the index checked it; None if there is none."""
    said: list[str] = []

    def on_line(line: str) -> None:
        if match := _PROGRESS.search(line):
            reporter.advanced(int(match[1]), total=int(match[2]))
        else:
            said.append(line)

    try:
        command = _pip_download(wanted, python, beside, limits)
        fetched = run_pip(command, log=log, tell=reporter.line, on_line=on_line, limits=limits)
    except CommandFailed as failure:
        text = "\n".join(said)
        if full := disk_full(text, during=f"while {wanted} is fetched"):
            raise full from failure
        if unchecked := refused_unchecked("\n".join(failure.tail), wanted=wanted):
            raise unchecked from failure
        if fault := certificate_fault(text, wanted=wanted):
            raise SourceError(fault[0], hint=fault[1]) from failure
        errors = [line for line in failure.tail if line.startswith(("ERROR:", "ended:"))]
        if failure.exit_code not in (STATUS, -signal.SIGKILL) and any(mark in text for mark in _UNREACHABLE):
            raise SourceError(
                f"the package index cannot be reached to fetch {wanted}",
                hint=f"check the network and pip's settings (`pip config list`); pip's output is in {log}",
            ) from failure
        if forbidden := forbidden_by_settings(text, wanted=wanted):
            raise forbidden from failure
        if _NOTHING in text:
            return None
        raise SourceError(
            f"pip could not fetch {wanted}: {(errors or said or ['it said nothing'])[-1].removeprefix('ERROR: ')}",
            hint=f"the same command again tries again; pip's output is in {log}",
        ) from failure
    wheels = list(beside.glob("*.whl"))
    if len(wheels) != 1:
        raise SourceError(f"pip fetched {len(wheels)} wheels for {wanted}", hint=f"see {log}")
    return wheels[0], any(each.hash is None for each in fetched)


def _pip_download(wanted: Requirement, python: str, destination: Path, limits: Limits) -> Command:
    match = _PYTHON.fullmatch(python)
    assert match is not None
    minor, threads = match.groups()
    return Command(
        argv=(
            *pip_command(limits),
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


def pip_command(limits: Limits = LIMITS) -> tuple[str, ...]:
    """Return a pip to call: ours, held to limits, or one on PATH, of which only the whole time is limited."""
    if importlib.util.find_spec("pip"):
        return limited_pip(sys.executable, limits=limits)
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
