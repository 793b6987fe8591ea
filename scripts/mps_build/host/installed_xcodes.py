"""Every Xcode of a host, as it answered under its own developer directory."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from .probes.observation import Observation, values


@dataclass(frozen=True, slots=True, kw_only=True)
class Xcode:
    """One Xcode, as it answered under its own developer directory (None: the chosen one's is not recorded)."""

    version: str
    build: str | None
    beta: bool | None
    developer_dir: str | None
    chosen: bool
    sdk_version: str | None = None
    metal_version: str | None = None
    metal_standards: tuple[str, ...] | None = None
    metal_error: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the Xcode as JSON; a user's name is taken out of its path."""
        return asdict(self) | {"developer_dir": without_owner(self.developer_dir)}


def without_owner(path: str | None) -> str | None:
    """Return a path without the name of whose home it lies in."""
    return None if path is None else re.sub(r"^/Users/[^/]+", "/Users/user", path)


def xcodes_of(rows: tuple[Observation, ...], chosen: str | None) -> tuple[Xcode, ...]:
    """Return every Xcode that answered, the chosen one first; each fact belongs to the directory it was asked under."""
    by_directory: dict[str | None, list[Observation]] = {}
    for row in rows:
        directories = [call.environ.get("DEVELOPER_DIR") for call in row.calls if call.environ.get("DEVELOPER_DIR")]
        by_directory.setdefault(directories[0] if directories else None, []).append(row)
    found = []
    for directory, its_rows in by_directory.items():
        own = tuple(its_rows)
        version = next(values(own, "version", "xcodebuild"), None)
        if version is not None:
            standards = next(values(own, "metal_standards"), None)
            found.append(
                Xcode(
                    version=version,
                    build=next(values(own, "build", "xcodebuild"), None),
                    beta=next(values(own, "beta", "xcodebuild"), None),
                    developer_dir=directory or chosen,
                    chosen=directory is None,
                    sdk_version=next(values(own, "sdk_version"), None),
                    metal_version=next(values(own, "metal_version"), None),
                    metal_standards=None if standards is None else tuple(standards),
                    metal_error=_metal_error(own),
                )
            )
    return tuple(sorted(found, key=lambda xcode: not xcode.chosen))


def _metal_error(rows: tuple[Observation, ...]) -> str | None:
    """Return why the Metal compiler did not run, where it was asked to (finding a path proves nothing)."""
    for row in rows:
        if row.facts.get("error") and any(call.program in ("metal", "metallib") for call in row.calls):
            return str(row.facts["error"])
    return next((str(value) for value in values(rows, "error") if str(value).startswith("metal_")), None)


def distinct(xcodes: tuple[Xcode, ...]) -> list[str]:
    """Return the paths of Xcodes beside the chosen one, one per build: links name the same one twice."""
    builds = {xcode.build for xcode in xcodes if xcode.chosen}
    paths = []
    for xcode in xcodes:
        if not xcode.chosen and xcode.developer_dir and xcode.build not in builds:
            builds.add(xcode.build)
            paths.append(xcode.developer_dir.removesuffix("/Contents/Developer"))
    return paths
