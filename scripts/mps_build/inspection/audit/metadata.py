"""The wheel's own text files: METADATA and WHEEL, RECORD, and torch/version.py."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from typing import NamedTuple

Headers = Mapping[str, tuple[str, ...]]
TRUSTED_HASHES = frozenset({"sha256", "sha384", "sha512"})


# `name = 'text'`, with or without an annotation; a text with a quote or an escape in it is no version.
_TEXT_ASSIGNED = re.compile(
    r"""^(\w+)(?:[ \t]*:[^=\n]+)?[ \t]*=[ \t]*(['"])([^'"\\\n]*)\2[ \t]*(?:#.*)?$""", re.MULTILINE
)


class RecordRow(NamedTuple):
    """One row of RECORD, its three fields as they are."""

    path: str
    digest: str
    size: str


def parse_headers(text: str) -> dict[str, tuple[str, ...]]:
    """Return the headers of METADATA or WHEEL, every value of each, keys in lower case.

    >>> parse_headers("Tag: a\\nTag: b\\n\\nTag: body")
    {'tag': ('a', 'b')}
    """
    found: dict[str, list[str]] = {}
    last: list[str] | None = None
    for line in text.replace("\r\n", "\n").split("\n"):
        if not line:
            break
        if line[0] in " \t" and last:
            last[-1] += f"\n{line.strip()}"
            continue
        key, colon, value = line.partition(":")
        if not colon:
            break  # the body of old METADATA may follow without an empty line
        last = found.setdefault(key.strip().lower(), [])
        last.append(value.strip())
    return {key: tuple(values) for key, values in found.items()}


def parse_record(text: str) -> tuple[RecordRow, ...]:
    """Return the rows of RECORD; one without three fields gets empty ones, which no rule lets pass.

    Raises:
        ValueError: no CSV.
    """
    try:
        rows = [row for row in csv.reader(text.splitlines(), strict=True) if row]
    except csv.Error as error:
        raise ValueError(f"no CSV: {error}") from error
    return tuple(map(RecordRow._make, (row if len(row) == 3 else (row[0], "", "") for row in rows)))


def parse_literals(text: str) -> dict[str, str]:
    """Return the names a Python file assigns text to, such as `git_version` in torch/version.py; runs nothing.

    >>> parse_literals("from typing import Optional\\n__version__ = '2.15.0'\\ncuda: Optional[str] = None")
    {'__version__': '2.15.0'}
    """
    return {match[1]: match[3] for match in _TEXT_ASSIGNED.finditer(text)}
