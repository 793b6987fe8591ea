"""What a wheel's file name says: distribution, version, build tag, and the tags it is for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from math import prod

_NAME = re.compile(
    r"(?P<distribution>[A-Za-z0-9][A-Za-z0-9._]*)-(?P<version>[A-Za-z0-9_.!+]+)(?:-(?P<build>\d[A-Za-z0-9_.]*))?"
    r"-(?P<python>[a-z0-9_.]+)-(?P<abi>[a-z0-9_.]+)-(?P<platform>[A-Za-z0-9_.]+)\.whl"
)
_MACOS_ARM64 = re.compile(r"macosx_(\d+)_(\d+)_arm64")
# Ten digits a part: a date has eight, and Python refuses to read thousands of them.
_RELEASE = re.compile(r"v?(?:[0-9]{1,10}!)?([0-9]{1,10}(?:\.[0-9]{1,10})*)(?![0-9]|\.[0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelName:
    """The parts of `torch-2.10.0-2-cp312-none-macosx_11_0_arm64.whl`, as they are spelled."""

    distribution: str
    version: str
    build: str | None
    python: str
    abi: str
    platform: str

    @property
    def tags(self) -> frozenset[str]:
        """Every python-abi-platform that a compressed tag stands for."""
        return expand_tag(f"{self.python}-{self.abi}-{self.platform}")

    @property
    def macos(self) -> tuple[int, int] | None:
        """The macOS it claims to run on, if it is for Apple silicon alone."""
        match = _MACOS_ARM64.fullmatch(self.platform)
        return (int(match[1]), int(match[2])) if match else None

    @property
    def release(self) -> tuple[int, ...]:
        """The release part of the version: (2, 16, 0) for 2.16.0.dev20261101+git."""
        return release_of(self.version)


def parse_wheel_name(file_name: str) -> WheelName | None:
    """Return the parts of a wheel's file name, or None if it has not the parts of one.

    >>> parse_wheel_name("torch-2.10.0-2-cp312-none-macosx_11_0_arm64.whl").macos
    (11, 0)
    """
    match = _NAME.fullmatch(file_name)
    return WheelName(**match.groupdict()) if match and release_of(match["version"]) else None


def expand_tag(tag: str) -> frozenset[str]:
    """Return the plain tags of a compressed one; `count_tags` tells beforehand how many they are.

    >>> sorted(expand_tag("py2.py3-none-any"))
    ['py2-none-any', 'py3-none-any']
    """
    parts = [part.split(".") for part in tag.split("-")]
    return frozenset("-".join(plain) for plain in product(*parts)) if len(parts) == 3 else frozenset({tag})


def count_tags(tag: str) -> int:
    """Return how many plain tags a compressed one stands for, with repetitions: 80 kB can mean 10**13.

    >>> count_tags("py2.py3-none-any")
    2
    """
    parts = tag.split("-")
    return prod(part.count(".") + 1 for part in parts) if len(parts) == 3 else 1


def release_of(version: str) -> tuple[int, ...]:
    """Return the release part of a version, as numbers; () if it has none, or one with absurd numbers.

    >>> release_of("2.16.0.dev20261101"), release_of("2.10.0+cpu")
    ((2, 16, 0), (2, 10, 0))
    """
    match = _RELEASE.match(version)
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def normalise(distribution: str) -> str:
    """Return a project's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def is_same_version(one: str, other: str) -> bool:
    """Tell whether two spellings are one version: a local label's separators and case do not count (PEP 440)."""
    first, second = (re.sub(r"[-_.]", ".", text.lower()) for text in (one, other))
    return first == second
