"""The locks of recipes: for each Python exact versions, and the hashes of the files that fit.

A lock is a requirements file, so that pip and uv read it anywhere; index addresses are not
stored. `locking` makes them.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from ..errors import BuildEnvironmentError
from ..packed import packed_file, unpack
from .catalogue import locks_root
from .model import Recipe

FROM_SOURCE = "built from the source distribution there"
_BUILT = rf"# Python ([0-9.t, ]+): no wheel for ([^;]+); {FROM_SOURCE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """What a recipe's lock says for one Python.

    Attributes:
        name: of the lock and its Python, as a file's stem: `v2.6.0-py3.12`.
        text: the requirements of this Python alone, without markers.
    """

    name: str
    text: str

    @property
    def sha256(self) -> str:
        """The digest of the requirements: another Python's do not change it."""
        return digest_of(self.text)


def lock_file(name: str) -> Path:
    """Return the file that holds a lock, by the lock's file name: its own, or in an installation that of all."""
    own, packed = locks_root() / name, packed_file(locks_root())
    return packed if packed.is_file() and not own.is_file() else own


def lock_text(name: str) -> str:
    """Return a lock's text by its file name, for all its Pythons.

    Raises:
        BuildEnvironmentError: there is none.
    """
    path = lock_file(name)
    text = path.read_text(encoding="utf-8") if path.is_file() else None
    if text is not None and path.name != name:
        text = unpack(text).get(name)
    if text is None:
        raise BuildEnvironmentError(
            f"{locks_root() / name} is missing", hint=f"nox -s dev -- lock {name.removesuffix('.txt')} writes it"
        )
    return text


def lock_of(recipe: Recipe, python: str) -> Lock:
    """Read what the recipe's lock says for `python`.

    Raises:
        BuildEnvironmentError: the lock is missing, or was not made for this Python: what has no marker would be half
            an environment.
    """
    text = lock_text(recipe.lock_name)
    made_for = re.match(r"# Made by `[^`]*`, for Python ([0-9.t, ]+), macOS", text)
    if made_for is None or python not in made_for[1].split(", "):
        said = f"its Pythons are {made_for[1]}" if made_for else "its first line names no Pythons"
        raise BuildEnvironmentError(
            f"{locks_root() / recipe.lock_name} has nothing for Python {python}: {said}",
            hint=f"choose one of them; where the recipe has gained this one: nox -s dev -- lock {recipe.name}",
        )
    return Lock(name=f"{recipe.name}-py{python}", text=for_python(text, python))


def for_python(text: str, python: str) -> str:
    r"""Return the lines of a lock that `python` installs, without markers, its notes on what is built there.

    >>> first = 'a==1 ; python_version <= "3.9" \\\n    --hash=sha256:00\n'
    >>> both = first + 'a==2 ; python_version >= "3.10" \\\n    --hash=sha256:11\n'
    >>> print(for_python(both, "3.13t"), end="")
    a==2 \
        --hash=sha256:11
    """
    version = python.removesuffix("t")
    kept: list[str] = []
    note = ""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.startswith("#"):
            built = re.fullmatch(_BUILT, line)
            if built and python in built[1].split(", "):
                note = f"# no wheel for {built[2]}: {FROM_SOURCE}\n"
            continue
        requirement, *hashes = line.split(" --hash=")
        name, _, marker = requirement.partition(" ; ")
        if not marker or _holds(requirement, version):
            kept.append(note + " \\\n    ".join([name.strip(), *(f"--hash={each.strip()}" for each in hashes)]) + "\n")
        note = ""
    return "".join(kept)


def _holds(requirement: str, version: str) -> bool:
    """Say whether a requirement's marker holds for a Python; one that cannot be read is left for pip to refuse."""
    try:
        marker = Requirement(requirement).marker
    except InvalidRequirement:
        return True
    return marker is None or marker.evaluate({"python_version": version})


def digest_of(text: str) -> str:
    """Return the digest of a lock's text, or of what it is made from."""
    return hashlib.sha256(text.encode()).hexdigest()
