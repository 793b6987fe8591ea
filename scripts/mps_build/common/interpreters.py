"""Which Python a task runs with, found by version and architecture, and how this copy of mps-build was installed.

pip does not reach an environment of `uv tool` or pipx: each has a line of its own that adds a package.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import BuildEnvironmentError, UsageError
from .json_text import parse_json
from .process import Command, capture
from .workspace import home_folder, in_checkout

_ASK = """
import json, os, platform, sys, sysconfig
free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
base = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps({
    "executable": sys.executable,
    "base": base,
    "real": os.path.realpath(base),
    "short": "%d.%d%s" % (sys.version_info[0], sys.version_info[1], free),
    "version": platform.python_version(),
    "implementation": platform.python_implementation(),
    "machine": platform.machine(),
    "system": sys.platform,
}))
"""
# A Python's first start after an installation reads all of its files.
_FIRST_SECONDS, _AGAIN_SECONDS = 20.0, 60.0
# A service of launchd has neither on its PATH.
_HOMEBREW = (Path("/opt/homebrew/bin"), Path("/usr/local/bin"))
_PYTHON_ORG = Path("/Library/Frameworks/Python.framework/Versions")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPython:
    """A Python that fits.

    Attributes:
        executable: as it calls itself; of a venv, the venv's.
        base: the Python that a venv was made from, by the name that stays when it is upgraded; else the same.
        real: the file behind all links, which an upgrade in place changes.
    """

    executable: Path
    base: Path
    real: Path
    version: str
    machine: str

    def identity(self) -> dict[str, str]:
        """Return what a receipt records: a Python that was upgraded in place is another one."""
        return {"path": str(self.base), "real": str(self.real), "version": self.version}

    def __str__(self) -> str:
        return f"{self.base} ({self.version}, {self.machine})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSearch:
    """What a search gave: the Python, and each one that was passed over with the reason."""

    version: str
    found: FoundPython | None
    skipped: Mapping[str, str]

    def skipped_lines(self) -> tuple[str, ...]:
        """Return a line "path: reason" for each interpreter that was found and not taken."""
        return tuple(f"{path}: {reason}" for path, reason in self.skipped.items())

    def result(self) -> FoundPython:
        """Return the Python that was found.

        Raises:
            BuildEnvironmentError: none fits; the message names each that was looked at.
        """
        if self.found is not None:
            return self.found
        passed = "".join(f"\n  {line}" for line in self.skipped_lines())
        arm64 = " for arm64" if sys.platform == "darwin" else ""
        raise BuildEnvironmentError(
            f"no Python {self.version}{arm64} was found: looked at ours, PATH, Homebrew, python.org, uv, pyenv{passed}",
            hint=f"`uv python install {self.version}`, or choose another with --python",
        )


def search_interpreter(version: str, *, environ: Mapping[str, str]) -> PythonSearch:
    """Look for a CPython of that version ("3.12", "3.13t") of this machine's own architecture.

    A Python that runs on macOS as x86_64 is passed over: under Rosetta it builds nothing for arm64
    (https://github.com/pytorch/pytorch/issues/98919).

    Raises:
        BuildEnvironmentError: one does not answer; which one is taken must not depend on how busy the machine is.
    """
    skipped: dict[str, str] = {}
    seen: set[str] = set()
    for candidate in _candidates(version, environ):
        if candidate in seen:
            continue
        seen.add(candidate)
        answer = _ask(candidate, environ)
        if isinstance(answer, str):
            skipped[candidate] = answer
            continue
        reason = _misfit(answer, version)
        if reason is None:
            return PythonSearch(version=version, found=_found(answer), skipped=skipped)
        # Ours is nearly always of another version, which is worth no line.
        if candidate != sys.executable or answer["short"] == version:
            skipped[candidate] = reason
    return PythonSearch(version=version, found=None, skipped=skipped)


def find_python(version: str, *, environ: Mapping[str, str]) -> FoundPython:
    """Return a Python of that version: ours if it fits, else PATH's, Homebrew's, python.org's, uv's, pyenv's.

    Raises:
        BuildEnvironmentError: none was found, or one does not answer.
    """
    return search_interpreter(version, environ=environ).result()


def find_interpreter(version: str, *, environ: Mapping[str, str]) -> Path:
    """Return the executable of `find_python`, and raise as it does."""
    return find_python(version, environ=environ).executable


def _ask(candidate: str, environ: Mapping[str, str]) -> dict[str, str] | str:
    """Return what a Python says of itself, or why it says nothing."""
    for seconds in (_FIRST_SECONDS, _AGAIN_SECONDS):
        answer = capture(Command(argv=(candidate, "-c", _ASK), environ=environ), timeout_seconds=seconds)
        if not answer.timed_out:
            break
    if answer.timed_out:
        raise BuildEnvironmentError(
            f"{candidate}: {answer.stderr}", hint=f"run `{candidate} --version` by hand until it answers, or remove it"
        )
    if not answer.ok:
        return "does not run: " + (answer.stderr.strip().splitlines() or [f"exit {answer.exit}"])[-1][:200]
    try:
        said = parse_json(answer.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        return "does not answer as a Python does"
    known = isinstance(said, dict) and all(isinstance(said.get(name), str) for name in ("executable", "base", "real"))
    return {str(name): str(value) for name, value in said.items()} if known else "does not answer as a Python does"


def _misfit(answer: Mapping[str, str], version: str) -> str | None:
    if answer["implementation"] != "CPython":
        return f"is {answer['implementation']}; wheels are built for CPython"
    if answer["short"] != version:
        return f"is Python {answer['short']}"
    if answer["system"] == "darwin" and answer["machine"] != "arm64":
        return f"runs as {answer['machine']}: under Rosetta it builds nothing for arm64"
    return None


def _found(answer: Mapping[str, str]) -> FoundPython:
    executable, base = Path(answer["executable"]), Path(answer["base"])
    return FoundPython(
        executable=executable,
        base=base if base.is_file() else executable,
        real=Path(answer["real"]),
        version=answer["version"],
        machine=answer["machine"],
    )


def _candidates(version: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield each file that may be it; uv is queried only when the ones before did not fit."""
    yield sys.executable
    name = f"python{version}"
    folders = [Path(each) for each in environ.get("PATH", os.defpath).split(os.pathsep) if each.startswith("/")]
    places = [*(folder / name for folder in (*folders, *_HOMEBREW)), _PYTHON_ORG / version / "bin" / name]
    yield from (str(place) for place in places if os.access(place, os.X_OK) and place.is_file())
    uv = capture(Command(argv=("uv", "python", "find", "--no-python-downloads", version), environ=environ))
    if uv.ok and uv.stdout.strip():
        yield uv.stdout.strip()
    root = environ.get("PYENV_ROOT")
    with contextlib.suppress(UsageError):  # without a home folder there is no pyenv in it
        root = root or str(home_folder() / ".pyenv")
    pyenv = Path(root) / "versions" if root else None
    for folder in sorted(() if pyenv is None else pyenv.glob(f"{version}*"), key=_patch_level, reverse=True):
        if (folder / "bin" / "python").is_file():
            yield str(folder / "bin" / "python")


def _patch_level(folder: Path) -> tuple[int, ...]:
    """Return a pyenv folder's version as numbers: 3.12.10 is newer than 3.12.9."""
    return tuple(int(part) if part.isdecimal() else 0 for part in folder.name.rstrip("t").split("."))


NAME = "mps-build"


def line_that_adds(requirement: str, *, session: str | None = None) -> str:
    """Return the command that adds a package to the environment of this process, in back quotes.

    Args:
        session: the session of a clone that installs it by itself, if one does.
    """
    if session and in_checkout():
        return f"`nox -s {session}` installs it by itself"
    return f"`{adding(requirement, prefix=Path(sys.prefix), source=_source())}`"


def adding(requirement: str, *, prefix: Path, source: str) -> str:
    """Return the command for an environment: of `uv tool`, of uvx, of pipx, or any other.

    https://docs.astral.sh/uv/concepts/tools/, https://pipx.pypa.io/stable/
    """
    wanted, named = shlex.quote(requirement), shlex.quote(source)
    if (prefix / "uv-receipt.toml").is_file():
        return f"uv tool install --force --with {wanted} {named}"
    if any(part.startswith("archive-v") for part in prefix.parts):
        return f"uvx --with {wanted} --from {named} {NAME}"
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx inject {prefix.name} {wanted}"
    return f"{shlex.quote(str(prefix / 'bin' / 'python'))} -m pip install {wanted}"


def _source() -> str:
    """Return what installs mps-build again: the address or folder that it came from, else its name.

    https://packaging.python.org/en/latest/specifications/direct-url/
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        said = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        return NAME
    origin = json.loads(said or "{}")
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        return f"{origin['vcs_info'].get('vcs', 'git')}+{url}"
    return url.removeprefix("file://") or NAME
