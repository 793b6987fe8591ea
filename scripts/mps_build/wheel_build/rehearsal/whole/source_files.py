"""Whether a source file was edited: names and times of the files that the tree had before anything was built in it."""

from __future__ import annotations

import os
from pathlib import Path

from mps_build.common.files import write_whole
from mps_build.common.receipts import digest_of


def list_files(root: Path, destination: Path) -> None:
    """Write the names of all files below `root`, one a line, to `destination`."""
    names = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in ("build", "__pycache__", ".git"))
        names += [str((Path(folder) / name).relative_to(root)) for name in sorted(files) if name[0] != "."]
    write_whole(destination, "".join(f"{name}\n" for name in names))


def files_state(root: Path, listed: Path) -> str:
    """Return a digest of size and time of each listed file; another one means that something was edited.

    A file that is gone counts as edited.
    """
    rows = []
    for name in listed.read_text(encoding="utf-8").splitlines():
        try:
            status = (root / name).stat()
        except OSError:
            rows.append([name, -1, -1])
        else:
            rows.append([name, status.st_size, status.st_mtime_ns])
    return digest_of(rows)
