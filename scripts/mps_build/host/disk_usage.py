"""What mps-build left on the disk: trees of builds, what it fetched, nox's environments; each with size and age."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

# Folders of the cache that are ours; anything else in there is not.
CACHE_FOLDERS = (
    "git",
    "wheels",
    "libomp",
    "zig",
    "ziglang",
    "embedded",
    "verify",
    "kernels",
    "simulation",
    "official",
    "ccache",
    "logs",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """One folder of ours: bytes on the disk, and when a file in it last changed (seconds since 1970)."""

    kind: Literal["work", "cache", "nox"]
    name: str
    path: Path
    size: int
    used: float

    def document(self) -> dict[str, Any]:
        """Return the row of `clean --json`; the size is in bytes, `used` in seconds since 1970."""
        return {"kind": self.kind, "name": self.name, "path": str(self.path), "bytes": self.size, "used": self.used}


def leftovers(work: Path, cache: Path, nox: Path | None = None) -> tuple[Leftover, ...]:
    """Return every folder of ours, the largest first.

    One of the work folder is ours if a build left its receipts or its lock.

    Args:
        nox: the folder of the checkout's environments; the one that runs this command is left out.
    """
    found = [
        _leftover("work", path) for path in _folders(work) if (path / "receipts").is_dir() or (path / "lock").is_file()
    ]
    found += [_leftover("cache", path) for path in _folders(cache) if path.name in CACHE_FOLDERS]
    if nox is not None:
        found += [
            _leftover("nox", path)
            for path in _folders(nox)
            if (path / "pyvenv.cfg").is_file() and path.resolve() != Path(sys.prefix).resolve()
        ]
    return tuple(sorted(found, key=lambda each: -each.size))


def _folders(root: Path) -> Iterator[Path]:
    if root.is_dir():
        yield from sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())


def _leftover(kind: Literal["work", "cache", "nox"], path: Path) -> Leftover:
    size, used = 0, path.stat().st_mtime
    seen: set[int] = set()
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                status = os.lstat(Path(folder, name))
            except FileNotFoundError:
                continue  # a build is at work in there
            if status.st_ino not in seen:
                seen.add(status.st_ino)
                size += status.st_blocks * 512
                used = max(used, status.st_mtime)
    return Leftover(kind=kind, name=path.name, path=path, size=size, used=used)
