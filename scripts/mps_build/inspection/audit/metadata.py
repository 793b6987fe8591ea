"""The wheel's own text files: METADATA and WHEEL, RECORD, and torch/version.py."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from email.parser import HeaderParser
from email.policy import compat32
from typing import NamedTuple

from .limits import MOST_MEMBERS

Headers = Mapping[str, tuple[str, ...]]
TRUSTED_HASHES = frozenset({"sha256", "sha384", "sha512"})


class RecordRow(NamedTuple):
    """One row of RECORD, its three fields as they are."""

    path: str
    digest: str
    size: str


def parse_headers(text: str) -> dict[str, tuple[str, ...]]:
    """Return the headers of METADATA or WHEEL, every value of each, keys in lower case; read as installers read them.

    >>> parse_headers("Tag: a\\nTag: b\\n\\nTag: body")
    {'tag': ('a', 'b')}
    """
    found: dict[str, list[str]] = {}
    for key, value in HeaderParser(policy=compat32).parsestr(text).items():
        found.setdefault(key.lower(), []).append("\n".join(line.strip() for line in str(value).split("\n")))
    return {key: tuple(values) for key, values in found.items()}


def parse_record(text: str, *, most_rows: int = MOST_MEMBERS) -> tuple[RecordRow, ...]:
    """Return the rows of RECORD; one without three fields gets empty ones, which no rule lets pass.

    Raises:
        ValueError: no CSV, or more rows than `most_rows`.
    """
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), strict=True):
            if row:
                rows.append(row)
                if len(rows) > most_rows:
                    raise ValueError(f"has more than {most_rows} rows")
    except csv.Error as error:
        raise ValueError(f"no CSV: {error}") from error
    return tuple(map(RecordRow._make, (row if len(row) == 3 else (row[0], "", "") for row in rows)))


def parse_literals(text: str) -> dict[str, str]:
    """Return the names a Python file assigns text to, such as `git_version` in torch/version.py; runs nothing.

    >>> parse_literals("from typing import Optional\\n__version__ = '2.15.0'\\ncuda: Optional[str] = None")
    {'__version__': '2.15.0'}
    """
    assigned = (_text_assigned(line) for line in text.split("\n"))
    return dict(each for each in assigned if each is not None)


def _text_assigned(line: str) -> tuple[str, str] | None:
    """Return name and text of `name = 'text'`, with or without an annotation or a comment behind it.

    A text with a quote or an escape in it is not a version.
    """
    left, equals, right = line.partition("=")
    name = left.partition(":")[0].rstrip(" \t")
    value = right.lstrip(" \t")
    quote = value[:1]
    if not equals or not name.isidentifier() or quote not in ("'", '"'):
        return None
    text, closed, rest = value[1:].partition(quote)
    rest = rest.strip(" \t\r")
    is_plain = closed and not {"'", '"', "\\"} & set(text) and (not rest or rest.startswith("#"))
    return (name, text) if is_plain else None
