"""Files written whole: beside their place first, then renamed, so that a reader never sees half of one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, data: str | bytes, *, mode: int | None = None) -> None:
    """Write a file; its folder is made if need be, and what was there stays if the writing fails.

    A byte of a path that is not UTF-8 becomes its escape, such as \\udcff, which JSON reads back.

    Args:
        mode: the file's permissions, such as 0o755; the user's default if None.
    """
    data = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    if path.is_char_device() or path.is_fifo():  # /dev/stdout takes what is written, and no other file its place
        path.write_bytes(data)
        return
    with written_whole(path) as beside:
        beside.write_bytes(data)
        if mode is not None:
            beside.chmod(mode)


def copy_whole(source: Path, path: Path) -> None:
    """Copy a file's contents."""
    with written_whole(path) as beside:
        shutil.copyfile(source, beside)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a path in the same folder to write to; it takes the file's place at the end, and goes after an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
