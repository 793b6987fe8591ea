"""JSON that somebody else wrote: what is wrong with it is a ValueError, and what is read can be walked and printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MOST_BYTES = 64 << 20
# The deepest of our documents (a record, a bill of materials) has nine levels.
MOST_LEVELS = 64


def parse_json(text: str | bytes) -> Any:
    """Return the document; half of a surrogate pair, which no output takes, becomes a question mark.

    Raises:
        ValueError: no JSON, or one nested so deeply that whoever walks it would fall.

    >>> parse_json('["\\\\ud800"]')
    ['?']
    """
    try:
        document = json.loads(text)
        plain = text if isinstance(text, str) else text.decode("utf-8", "replace")
        if "\\ud" in plain or "\\uD" in plain:
            document = json.loads(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError(f"nested more than {MOST_LEVELS} levels deep") from error
    _check_levels(document)
    return document


def read_json(path: Path, *, most_bytes: int = MOST_BYTES) -> Any:
    """Return the document that a file holds.

    Raises:
        OSError: it cannot be read.
        ValueError: it is larger than `most_bytes`, is not UTF-8, or as `parse_json`.
    """
    return parse_json(read_text(path, most_bytes=most_bytes))


def read_text(path: Path, *, most_bytes: int = MOST_BYTES) -> str:
    """Return a text file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is larger than `most_bytes`, or is not UTF-8.
    """
    with path.open("rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"has more than {most_bytes} bytes")
    return data.decode("utf-8")


def to_json(document: Any, *, encoding: str = "utf-8") -> str:
    """Return a document as indented JSON that its reader's encoding can hold: JSON has escapes of its own.

    >>> to_json("\\udcff\\xe9", encoding="ascii")
    '"\\\\udcff\\\\u00e9"\\n'
    """
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(document, indent=2) + "\n"
    return text


def _check_levels(document: Any) -> None:
    """Look at it level by level, for a walk that calls itself is what it must not break."""
    level = [document]
    for _ in range(MOST_LEVELS):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise ValueError(f"nested more than {MOST_LEVELS} levels deep")


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [each for each in value.values() if isinstance(each, dict | list)]
    return [each for each in value if isinstance(each, dict | list)] if isinstance(value, list) else []
