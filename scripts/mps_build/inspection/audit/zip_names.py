"""The names in a zip: plain paths inside the wheel, each there once, on every file system."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

# Parts without backslash, colon and control character, none empty, none `.` or `..`, none longer than APFS takes.
_PLAIN = re.compile(r"(?:(?!\.{1,2}(?:/|$))[^/\\:\x00-\x1f\x7f]+/)*(?!\.{1,2}$)[^/\\:\x00-\x1f\x7f]+/?")
MOST_PART_BYTES = 255


# Whatever keeps one of many names, a line each, from being plain; one regex for all takes ten times as long.
_ODD = ("\\", ":", "//", "\n/", "/\n", "\n\n", "\n./", "\n../", "/./", "/../", "/.\n", "/..\n", "\n.\n", "\n..\n")


def name_faults(names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (rule, name, evidence) for every name that some reader would place elsewhere, or over another.

    Time and memory grow with the names' length, whatever they are.
    """
    if not _are_plain(names):
        yield from _faults(names)


def file_key(name: str) -> str:
    """Return what two names have in common that are one file on a Mac: APFS minds neither case nor normalisation.

    >>> file_key("Caf\\u00e9") == file_key("cafe\\u0301")
    True
    """
    if name.isascii():
        return name.lower()
    # Unicode 3.13, D145: the canonical caseless match.
    decomposed = unicodedata.normalize("NFD", name).casefold()
    return unicodedata.normalize("NFD", decomposed)


def _are_plain(names: Sequence[str]) -> bool:
    """Tell at once that nothing is wrong with 13 000 names."""
    text = "\n" + "\n".join(names) + "\n"
    # What is not ASCII is seldom, and takes the slow way: case, normalisation and invisible letters.
    if not text.isascii() or any(odd in text for odd in _ODD) or not "".join(names).isprintable():
        return False
    if any(len(name) > MOST_PART_BYTES for name in names):
        return False
    # `/` is put below every other letter, so that what lies in a folder stands right behind the folder's own name.
    ordered = sorted(text[1:-1].lower().replace("/", "\0").split("\n"))
    return not any(
        after.startswith(before) and after[len(before) :][:1] in ("", "\0") for before, after in pairwise(ordered)
    )


def _faults(names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    by_key: dict[str, str] = {}
    seen: set[str] = set()
    for name in names:
        key = file_key(name.rstrip("/"))
        if name in seen:
            yield "Z1", name, "is there twice"
        elif key in by_key:
            yield (
                "Z1",
                name,
                f"is the same file as {by_key[key]} where case does not count, nor Unicode normalisation (macOS)",
            )
        seen.add(name)
        by_key[key] = name
        if not _PLAIN.fullmatch(name):
            yield "Z2", name, "is not a plain path inside the wheel"
        elif odd := _odd_letter(name):
            yield "Z2", name, f"has {odd} in its name, which shows nothing or turns the text round"
        elif any(len(part.encode("utf-8", "replace")) > MOST_PART_BYTES for part in name.split("/")):
            yield "Z2", name, f"has a part of more than {MOST_PART_BYTES} bytes, which no file system of macOS takes"
    placed = {key.replace("/", "\0"): name for key, name in by_key.items()}
    for before, after in pairwise(sorted(placed)):
        if after.startswith(before + "\0") and not placed[before].endswith("/"):
            yield "Z1", placed[before], "is a file and a folder"


def _odd_letter(name: str) -> str | None:
    """Return the first letter that shows nothing or turns the text round: controls, bidirectional marks, separators."""
    odd = next((letter for letter in name if not letter.isprintable()), None)
    return f"U+{ord(odd):04X}" if odd else None
