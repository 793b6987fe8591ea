"""Build requirements -> lock: exact versions, and the hashes of the files that fit, for each Python of a recipe.

Versions are resolved for macOS arm64 and each Python by itself; where they differ, a marker
says which Python takes which. Of each version only the files that these Pythons can use are kept, on
macOS arm64 and on Linux (`rehearse` installs the same lock there).
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from ..errors import BuildEnvironmentError
from ..interpreters import line_that_adds
from ..process import Command, capture, neutral_environ
from .locks import FROM_SOURCE, digest_of

_PLATFORMS = {
    "macOS arm64": re.compile(r"any|macosx_\d+_\d+_(arm64|universal2)"),
    "Linux x86_64": re.compile(r"any|(many)?linux\w*_x86_64"),
    "Linux aarch64": re.compile(r"any|(many)?linux\w*_aarch64"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """One locked package: its version, the hashes that may be installed, and where no wheel fits."""

    name: str
    version: str
    hashes: tuple[str, ...]
    lacking: tuple[str, ...]


def inputs_digest(requirements: Sequence[str], pythons: Sequence[str]) -> str:
    """Return what a lock is made from, as a digest: it tells a stale lock from a fresh one, offline."""
    return digest_of("\n".join([*pythons, *requirements]))


def lock_fault(text: str | None, requirements: Sequence[str], pythons: Sequence[str]) -> str | None:
    """Return what is wrong with a lock's text (None: the file is missing), or None if it is fresh and whole."""
    if text is None:
        return "is missing"
    header = dict(re.findall(r"^# (inputs|content): ([0-9a-f]{64})$", text, re.MULTILINE))
    if header.get("inputs") != inputs_digest(requirements, pythons):
        return "is stale: the recipe's build_requirements or Pythons changed"
    if header.get("content") != digest_of(_body(text)):
        return "was edited by hand"
    return None


def make_lock(requirements: Sequence[str], pythons: Sequence[str]) -> str:
    """Return the text of a fresh lock, by asking uv (and through it the index) for each Python.

    Raises:
        BuildEnvironmentError: uv is missing, nothing resolves, or a package has no file for macOS arm64.
    """
    return render_lock({python: resolve(requirements, python) for python in pythons}, requirements=requirements)


def resolve(requirements: Sequence[str], python: str) -> tuple[Chosen, ...]:
    """Return the newest versions that fit one Python on macOS arm64, with their files; raise as `make_lock`."""
    pins = _uv(requirements, python, "--python-platform", "aarch64-apple-darwin", "--no-annotate")
    pinned = [line for line in pins.splitlines() if "==" in line]
    document = _toml(_uv(pinned, python, "--universal", "--no-deps", "--format", "pylock.toml"))
    return tuple(choose_files(package, python) for package in document.get("packages", ()))


def choose_files(package: Mapping[str, Any], python: str) -> Chosen:
    """Return the files of one package (a table of pylock.toml) that this Python can install."""
    kept: dict[str, str] = {}
    served: set[str] = set()
    for wheel in package.get("wheels", ()):
        name = str(wheel.get("name") or wheel["url"]).rsplit("/", 1)[-1]
        fitting = [label for label, platform in _PLATFORMS.items() if _fits(name, python, platform)]
        if fitting:
            kept[name] = wheel["hashes"]["sha256"]
            served.update(fitting)
    lacking = tuple(label for label in _PLATFORMS if label not in served)
    if lacking and "sdist" in package:
        kept["sdist"] = package["sdist"]["hashes"]["sha256"]
    elif "macOS arm64" in lacking:
        raise BuildEnvironmentError(
            f"{package['name']} {package['version']} has no file for macOS arm64 and Python {python}",
            hint="choose another version in the recipe's build_requirements",
        )
    return Chosen(
        name=package["name"],
        version=package["version"],
        hashes=tuple(kept[name] for name in sorted(kept)),
        lacking=lacking,
    )


def render_lock(chosen: Mapping[str, Iterable[Chosen]], *, requirements: Sequence[str]) -> str:
    """Return the lock's text: a header that tells its inputs, then one block per package and version.

    Args:
        chosen: what each Python of the recipe installs.
    """
    pythons = tuple(chosen)
    blocks: dict[tuple[str, str], dict[str, Chosen]] = {}
    for python, packages in chosen.items():
        for package in packages:
            blocks.setdefault((package.name, package.version), {})[python] = package
    lines = []
    for (name, version), takers in sorted(
        blocks.items(), key=lambda block: (block[0][0], _order(min(block[1], key=_order)))
    ):
        for lacking in sorted({package.lacking for package in takers.values() if package.lacking}):
            there = ", ".join(python for python, package in takers.items() if package.lacking == lacking)
            lines.append(f"# Python {there}: no wheel for {', '.join(lacking)}; {FROM_SOURCE}")
        hashes = dict.fromkeys(digest for package in takers.values() for digest in package.hashes)
        requirement = f"{name}=={version}{_marker(tuple(takers), pythons)}"
        lines.append(" \\\n    ".join([requirement, *(f"--hash=sha256:{digest}" for digest in hashes)]))
    body = "\n".join(lines) + "\n"
    return (
        f"# Made by `nox -s dev -- lock`, for Python {', '.join(pythons)}, macOS arm64 and Linux; not to be edited.\n"
        f"# inputs: {inputs_digest(requirements, pythons)}\n"
        f"# content: {digest_of(body)}\n{body}"
    )


def _order(python: str) -> tuple[int, ...]:
    return tuple(int(part) for part in python.removesuffix("t").split("."))


def _marker(takers: Sequence[str], pythons: Sequence[str]) -> str:
    """Return the marker by which those Pythons of a recipe, and no others, take a requirement; empty for all.

    >>> _marker(("3.10", "3.11"), ("3.9", "3.10", "3.11", "3.12"))
    ' ; python_version >= "3.10" and python_version <= "3.11"'
    >>> _marker(("3.13", "3.13t"), ("3.12", "3.13", "3.13t"))
    ' ; python_version >= "3.13"'

    Raises:
        BuildEnvironmentError: no range says it.
    """
    versions = sorted({_order(python) for python in pythons})
    mine = sorted({_order(python) for python in takers})
    start, end = versions.index(mine[0]), versions.index(mine[-1])
    others = {_order(python) for python in pythons if python not in takers}
    if mine != versions[start : end + 1] or others & {*mine}:
        raise BuildEnvironmentError(
            f"Python {', '.join(takers)} takes another version than its neighbours: a lock has no marker for that",
            hint="pin the package in the recipe's build_requirements",
        )
    low, high = (".".join(map(str, version)) for version in (mine[0], mine[-1]))
    if low == high and 0 < start < len(versions) - 1:
        return f' ; python_version == "{low}"'
    bounds = [f'python_version >= "{low}"'] * (start > 0) + [f'python_version <= "{high}"'] * (end < len(versions) - 1)
    return f" ; {' and '.join(bounds)}" if bounds else ""


def _fits(name: str, python: str, platform: re.Pattern[str]) -> bool:
    try:
        tags = parse_wheel_filename(name)[3]
    except InvalidWheelFilename:
        return False
    return any(platform.fullmatch(tag.platform) and _speaks(tag, python) for tag in tags)


def _speaks(tag: Tag, python: str) -> bool:
    """True where this Python can load what `tag` says; a free-threaded one takes no stable-ABI wheel."""
    free_threaded = python.endswith("t")
    minor = int(python.removesuffix("t").split(".")[1])
    if tag.abi == "none":
        match = re.fullmatch(r"py3(\d*)", tag.interpreter)
        return tag.interpreter == f"cp3{minor}" or (match is not None and int(match[1] or 0) <= minor)
    if tag.abi == "abi3":
        match = re.fullmatch(r"cp3(\d+)", tag.interpreter)
        return not free_threaded and match is not None and int(match[1]) <= minor
    return tag.interpreter == f"cp3{minor}" and tag.abi == f"cp3{minor}{'t' * free_threaded}"


def check_uv() -> tuple[str, ...]:
    """Return how uv is called.

    Raises:
        BuildEnvironmentError: it is not there.
    """
    if shutil.which("uv"):
        return ("uv",)
    if find_spec("uv") is None:
        raise BuildEnvironmentError(
            "uv is needed to make locks",
            hint=line_that_adds("uv>=0.9", session="dev -- lock"),
        )
    return (sys.executable, "-m", "uv")


def _uv(requirements: Sequence[str], python: str, *options: str) -> str:
    program = check_uv()
    with _requirements_file(requirements) as path:
        command = Command(
            argv=(
                *(*program, "pip", "compile", str(path), "--quiet", "--no-header", "--no-python-downloads"),
                *("--python-version", python.removesuffix("t"), "--no-emit-index-url", *options),
            ),
            environ={**neutral_environ(), "UV_PYTHON_DOWNLOADS": "never"},
        )
        answer = capture(command, timeout_seconds=300)
    if answer.timed_out:
        raise BuildEnvironmentError(
            f"uv pip compile: {answer.stderr}", hint="the package index is slow or waits: try again, or another index"
        )
    if not answer.ok:
        raise BuildEnvironmentError(
            f"no versions fit Python {python}:\n{answer.stderr.strip()}",
            hint="loosen the recipe's build_requirements, or drop this Python with a reason in `unproved`",
        )
    return answer.stdout


@contextmanager
def _requirements_file(lines: Sequence[str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mps-build-lock-") as folder:
        path = Path(folder) / "requirements.in"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        yield path


def _toml(text: str) -> Mapping[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def _body(text: str) -> str:
    lines = text.splitlines(keepends=True)
    start = next((index for index, line in enumerate(lines) if line.startswith("# content: ")), -1)
    return "".join(lines[start + 1 :])
