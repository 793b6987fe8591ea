"""The newest pre-release that an index has, by pip's own listing; which index, the caller or a variable says.

Nobody has tried this on the real index of nightlies: the tests ask one on this machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from packaging.version import Version

from ..errors import SourceError, UsageError
from ..home import expanded
from ..process import Command, capture
from .pip_call import certificate_fault

VARIABLE = "MPS_BUILD_NIGHTLY_INDEX"
_LISTED = re.compile(r"^Available versions: (.*)$", re.MULTILINE)


def index_arguments(index: str | None) -> tuple[str, ...]:
    """Return pip's arguments for a folder of wheels, a folder that is a package index, or an address.

    Raises:
        UsageError: it is neither.
    """
    if index is None:
        return ()
    folder = expanded(index)
    if folder.is_dir():
        if (folder / "torch" / "index.html").is_file():
            return ("--index-url", folder.resolve().as_uri())
        if not any(folder.glob("torch-*.whl")):
            raise UsageError(f"--index {index}: holds no wheel of torch", hint="a folder of wheels, or an address")
        return ("--no-index", "--find-links", str(folder.resolve()))
    if urlsplit(index).scheme not in ("http", "https", "file"):
        raise UsageError(
            f"--index {index}: is neither a folder nor an address", hint="a folder of wheels, or an address"
        )
    return ("--index-url", index)


def nightly_index(given: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the index of nightlies: the one given, else the one configured; None leaves it to pip's settings."""
    return given or environ.get(VARIABLE) or None


def index_variables(index: str | None) -> dict[str, str]:
    """Return pip's variables with which it finds a nightly, and what the nightly requires in the usual index.

    The nightly itself is asked for by its exact version, so that the second index puts nothing else in its place.
    """
    arguments = index_arguments(index)
    if not arguments:
        return {}
    return {"PIP_FIND_LINKS" if arguments[0] == "--no-index" else "PIP_EXTRA_INDEX_URL": arguments[-1]}


def newest_nightly(
    name: str, *, pip: tuple[str, ...], pythons: Iterable[str], platform: str | None, index: str | None
) -> tuple[Version, str]:
    """Return the newest pre-release of a project, and the first of `pythons` for which there is one.

    Args:
        pip: how pip is called.
        pythons: `3.14`, `3.13t`, ..., the wished one first.
        platform: a platform tag of pip's; None is this machine's.

    Raises:
        UsageError: the index has no pre-release for any of them.
        SourceError: the index cannot be asked.
    """
    asked = []
    for python in pythons:
        asked.append(python)
        versions = [each for each in _versions(name, pip, python, platform, index) if each.is_prerelease]
        if versions:
            return max(versions), python
    where = index or "the index of pip's settings"
    raise UsageError(
        f"{where} has no pre-release of {name} for Python {', '.join(asked)}",
        hint=f"give the index of nightlies with --index ADDRESS, or in {VARIABLE}",
    )


def _versions(
    name: str, pip: tuple[str, ...], python: str, platform: str | None, index: str | None
) -> tuple[Version, ...]:
    abi = f"cp{python.replace('.', '')}"
    short = python.removesuffix("t")
    target: tuple[str, ...] = ("--python-version", short, "--implementation", "cp", "--abi", abi, "--only-binary=:all:")
    target += ("--platform", platform) if platform else ()
    options = ("--disable-pip-version-check", "--no-input", "--retries=2")
    argv = (*pip, *options, "index", "versions", name, "--pre", *target, *index_arguments(index))
    answer = capture(Command(argv=argv, environ={**os.environ, "PIP_NO_COLOR": "1"}), timeout_seconds=180)
    if listed := _LISTED.search(answer.stdout):
        return tuple(version for text in listed[1].split(", ") if (version := _version(text)) is not None)
    if fault := certificate_fault(answer.stderr, wanted=f"the versions of {name}"):
        raise SourceError(fault[0], hint=fault[1])
    if "No matching distribution" in answer.stderr:
        return ()
    raise SourceError(
        f"pip cannot list the versions of {name}: {answer.stderr.strip()[-400:] or 'no answer'}",
        hint="check the network and --index; `pip config list` shows pip's own settings",
    )


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except ValueError:
        return None
