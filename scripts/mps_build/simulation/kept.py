"""What a simulation keeps and later loads into somebody's process: believed by its hash, and only where it is ours."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from mps_build.common.files import open_regular
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.download import file_digest, own_folder
from mps_build.common.workspace import remove_tree

_PACKAGE = Path(__file__).resolve().parents[1]
_MADE_BY = ("simulation", "kernels", "wheel_build/objc")  # what reads, writes or compiles the parts of a simulation
_HEX_DIGITS = 64  # of a sha256, which python/metal_source.py writes behind a library: an ELF file may end so


def cache_key(target: str, *, packages: Sequence[str] = ()) -> str:
    """Return a name for what a target's first start leaves in the cache folder, for a CI that keeps the folder.

    Another name where this tool makes another thing of it: a key that was found needs no second look.

    Args:
        target: a recipe's version as v2.6.0, or a wheel as torch==2.15.0 or by its sha256. packages: those beside it.
    """
    digest = hashlib.sha256(" ".join(sorted(packages)).encode())
    for path in sorted(path for part in _MADE_BY for path in (_PACKAGE / part).rglob("*") if path.is_file()):
        if path.suffix != ".pyc":
            digest.update(f"\0{path.relative_to(_PACKAGE)}\0".encode() + path.read_bytes())
    name = re.sub(r"[^a-z0-9.]+", "-", target.lower())
    return f"mps-build-{platform.system()}-{platform.machine()}-{name}-{digest.hexdigest()[:16]}".lower()


def own_cache(folder: Path, reporter: Reporter) -> Path:
    """Return the cache's folder, readable and writable by this user alone; what others put into it goes.

    Raises:
        UsageError: the folder itself is another user's, or a link.
    """
    was_open = folder.is_dir() and stat.S_IMODE(folder.lstat().st_mode) & 0o022
    own_folder(folder)
    if was_open:  # once: from now on nobody else can
        for child in sorted(folder.iterdir()):
            if (found := _foreign(child)) is not None:
                reporter.line(f"{found} is another user's, or was open to all: {child} is made again")
                _remove(child)
    return folder


def digests(files: Sequence[Path]) -> dict[str, str | None]:
    """Return the sha256 of each file, by its path."""
    return {str(path): file_digest(path) for path in files}


def unbelievable(known: Mapping[str, str | None]) -> tuple[Path, ...]:
    """Return the files that are gone, cut off, changed, links or another user's."""
    return tuple(Path(name) for name, digest in known.items() if digest is None or file_digest(Path(name)) != digest)


def drop_damaged_libraries(folder: Path, reporter: Reporter) -> None:
    """Remove each compiled Metal source that does not end with its own hash, or is another user's."""
    for path in sorted(folder.glob("*.so")):
        if not _ends_with_its_hash(path):
            reporter.line(f"{path} is cut off, changed or another user's: it is made again")
            _remove(path)


def _remove(path: Path) -> None:
    remove_tree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _ends_with_its_hash(path: Path) -> bool:
    try:
        with open_regular(path, follow=False) as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return False
            data = file.read()
    except OSError:
        return False
    return data[-_HEX_DIGITS:] == hashlib.sha256(data[:-_HEX_DIGITS]).hexdigest().encode()


def _foreign(child: Path) -> Path | None:
    """Return the first path at or below one that belongs to somebody else, or that anybody could write."""
    paths = [child, *(Path(folder, name) for folder, *names in os.walk(child) for name in (*names[0], *names[1]))]
    return next((path for path in paths if _is_foreign(path.lstat())), None)


def _is_foreign(status: os.stat_result) -> bool:
    is_open = bool(status.st_mode & 0o002) and not stat.S_ISLNK(status.st_mode)
    return status.st_uid != os.geteuid() or is_open
