"""A log as its reader meant it: no colours, no prefixes of whoever relayed it, one numbered line after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from .escapes import is_page, plain
from .relays import infer_prefix, without_fixed_prefix
from .wrapped import unwrap

# Collectors nest: a job's name around a runner's time stamp around a package manager's line numbers.
_ROUNDS = 3
# Longer lines are cut: nothing that a person would be shown is as long.
_LONGEST_LINE = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line as meant, and the number (from 1) of the line it stands in."""

    number: int
    text: str


@lru_cache(maxsize=1)  # several readers are tried on one text
def clean_lines(text: str) -> tuple[Line, ...]:
    """Return the lines without escapes, prefixes and trailing blanks; a redrawn line (`\\r`) counts as several."""
    return tuple(Line(number=number, text=clean_line(part)) for number, part in _raw_parts(text.split("\n")))


def meant_lines(text: str) -> tuple[Line, ...]:
    """Return the lines that say something, without whatever most of them begin with (`relays.infer_prefix`).

    For prose. Tables (statistics, a `.ninja_log`) have columns of their own: `clean_lines` is for them.
    """
    of_a_page = is_page(text)
    filled = [(number, row) for number, row in enumerate(text.split("\n"), start=1) if row]
    unwrapped = unwrap([row for _, row in filled])
    lines = [
        (number, cleaned)
        for (number, _), row in zip(filled, unwrapped, strict=True)
        for part in row.split("\r")
        if (cleaned := plain(part[:_LONGEST_LINE], of_a_page=of_a_page))
    ]
    for _ in range(_ROUNDS):
        lines = [(number, without_fixed_prefix(line)) for number, line in lines]
        prefix = infer_prefix([line for _, line in lines])
        if prefix is None:
            break
        lines = [(number, prefix.sub("", line, count=1)) for number, line in lines]
    return tuple(Line(number=number, text=line) for number, line in lines if line and not line.isspace())


def clean_line(raw: str) -> str:
    """Return one line without escapes, known prefixes and trailing blanks (its indent stays).

    >>> clean_line("2026-10-16T09:12:24.3990503Z \\x1b[31mFAILED: \\x1b[0mlib/libc10.dylib ")
    'FAILED: lib/libc10.dylib'
    """
    return without_fixed_prefix(plain(raw))


def squeeze(text: str) -> str:
    """Return the text with every run of white space as one blank: wrapped sentences become whole."""
    return " ".join(text.split())


def _raw_parts(rows: list[str]) -> Iterator[tuple[int, str]]:
    """Yield what stands in each line and the line's number, part by part; of a run of empty ones the first."""
    empty = False
    for number, row in enumerate(rows, start=1):
        if empty and not row:
            continue
        for part in row.rstrip("\r").split("\r"):
            if part or not empty:
                yield number, part
            empty = not part
