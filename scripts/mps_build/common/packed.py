"""Many small texts as one, as the wheel of the tool holds some folders of a clone; a hash that comes again is cut.

The standard library alone, for hatch_build.py runs it. The 20 locks name 140 files 1,100 times: 55 kB of the wheel.
"""

from __future__ import annotations

import re
from pathlib import Path

_TITLE = "## "
_NO_TEXTS = (".pyc", ".DS_Store")  # of Python, and of the Finder
_WHOLE = re.compile(r"(?<=--hash=sha256:)[0-9a-f]{64}")
_CUT = re.compile(r"(?<=--hash=sha256:)([0-9a-f]{16})…")


def packed_file(folder: Path) -> Path:
    """Return the file that has what a folder of a clone has, where there is one: beside the folder."""
    return folder.with_name(f"{folder.name}.txt")


def texts_of(folder: Path) -> dict[str, str]:
    """Return the texts below a folder by their paths there: its files', or what one file beside it has of them.

    Raises:
        FileNotFoundError: neither is there.
        ValueError: that file is damaged.
    """
    if not folder.is_dir():
        return unpack(packed_file(folder).read_text(encoding="utf-8"))
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(_NO_TEXTS))
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def pack(folder: Path) -> str:
    """Return the texts of all files below a folder as one.

    Raises:
        ValueError: two hashes begin alike, or a text has a line that looks like a title, or does not end with a line.
    """
    whole: dict[str, str] = {}

    def cut(match: re.Match[str]) -> str:
        digits = match[0][:16]
        if digits not in whole:
            whole[digits] = match[0]
            return match[0]
        if whole[digits] != match[0]:
            raise ValueError(f"two hashes begin with {digits}")
        return f"{digits}…"

    parts = []
    for name, text in texts_of(folder).items():
        if not text.endswith("\n") or re.search(f"^{_TITLE}", text, re.MULTILINE):
            raise ValueError(f"{folder / name} cannot be packed")
        parts.append(f"{_TITLE}{name}\n{_WHOLE.sub(cut, text)}")
    return "".join(parts)


def unpack(text: str) -> dict[str, str]:
    """Return each text, as it was, by its path below the folder.

    Raises:
        ValueError: a hash is cut that is nowhere whole.
    """
    whole = {digest[:16]: digest for digest in _WHOLE.findall(text)}
    missing = sorted(set(_CUT.findall(text)) - whole.keys())
    if missing:
        raise ValueError(f"no hash begins with {missing[0]}")
    full = _CUT.sub(lambda match: whole[match[1]], text)
    _, *parts = re.split(rf"^{_TITLE}(.+)\n", full, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))
