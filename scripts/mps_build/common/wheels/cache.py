"""Wheels kept after a download: believed by the hash they came with, in folders that nobody else can write to."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import UsageError
from ..faults import named
from ..files import write_whole
from ..json_text import read_json
from ..opening import NotAFile, open_regular, open_to_append
from ..workspace import remove_tree

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
