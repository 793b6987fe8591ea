"""The names in a zip: plain paths inside the wheel, each there once, on every file system."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# Parts without backslash, colon and control character, none empty, none `.` or `..`.
_PLAIN = re.compile(r"(?:(?!\.{1,2}(?:/|$))[^/\\:\x00-\x1f\x7f]+/)*(?!\.{1,2}$)[^/\\:\x00-\x1f\x7f]+/?")


def name_faults(names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (rule, name, evidence) for every name that some reader would place elsewhere, or over another."""
    folded: dict[str, str] = {}
    folders: set[str] = set()
    seen: set[str] = set()
    for name in names:
        plain = name.rstrip("/")
        key = plain.casefold()
        if name in seen:
            yield "Z1", name, "is there twice"
        elif key in folded:
            yield "Z1", name, f"is the same file as {folded[key]} where case does not count (macOS)"
        seen.add(name)
        folded[key] = name
        if not _PLAIN.fullmatch(name):
            yield "Z2", name, "is no plain path inside the wheel"
        parent = plain.rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    for name in sorted(seen & folders):
        yield "Z1", name, "is a file and a folder"
