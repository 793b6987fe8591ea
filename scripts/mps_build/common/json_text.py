"""JSON that somebody else wrote, as text, tree or typed value; and what every document of ours says first.

A later version of a document may add keys; it takes none away under the same schema.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from .. import __version__
from .errors import UsageError, reason_of
from .files import read_bytes

MOST_BYTES = 64 << 20
# The deepest of our documents (a record, a bill of materials) has nine levels.
MOST_LEVELS = 64
# What sizes, seeds and durations of any machine fit into; beyond it, arithmetic and formats fail one by one.
MOST_BITS = 64


def parse_json(text: str | bytes, *, finite: bool = True) -> Any:
    """Return the document; half of a surrogate pair, which no output takes, becomes a question mark.

    Args:
        finite: refuse NaN and Infinity, which are not JSON; a program under test may still print them.

    Raises:
        ValueError: no JSON, a key two times, a number beyond 64 bits, or nested too deeply to be walked.

    >>> parse_json('["\\\\ud800"]')
    ['?']
    """
    refuse = _refuse_constant if finite else None
    try:
        document = json.loads(text, object_pairs_hook=_object, parse_int=_integer, parse_constant=refuse)
        plain = text if isinstance(text, str) else text.decode("utf-8", "replace")
        if "\\ud" in plain or "\\uD" in plain:
            document = json.loads(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError(f"nested more than {MOST_LEVELS} levels deep") from error
    _check(document, finite=finite)
    return document


def read_json(path: Path, *, most_bytes: int = MOST_BYTES) -> Any:
    """Return the document that a file holds.

    Raises:
        OSError: it cannot be read, or is not a file.
        ValueError: it is larger than `most_bytes`, is not UTF-8, or as `parse_json`.
    """
    return parse_json(read_text(path, most_bytes=most_bytes))


def read_text(path: Path, *, most_bytes: int = MOST_BYTES) -> str:
    """Return a text file.

    Raises:
        OSError: it cannot be read, or is not a file.
        ValueError: it is larger than `most_bytes`, or is not UTF-8.
    """
    return read_bytes(path, most_bytes=most_bytes).decode("utf-8")


def load_json(path: Path, *, hint: str | None = None) -> Any:
    """Return the document that a user's file holds; `hint` says which command writes the right one.

    Raises:
        UsageError: it cannot be read, is too long, or is not JSON; the message names the file and the line.
    """
    try:
        return read_json(path)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno}: is not JSON: {error.msg}", hint=hint) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {reason_of(error)}", hint=hint) from error


def to_json(document: Any, *, encoding: str = "utf-8") -> str:
    """Return a document as indented JSON that its reader's encoding can hold: JSON has escapes of its own.

    >>> to_json("\\udcff\\xe9", encoding="ascii")
    '"\\\\udcff\\\\u00e9"\\n'
    """
    try:
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError:
        document = _finite(document)
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(document, indent=2) + "\n"
    return text


def _finite(value: Any) -> Any:
    """Return a document with null in the place of NaN and the infinities, for which JSON has no word."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"holds the key {next(name for name in names if names.count(name) > 1)!r} two times")
    return found


def _integer(digits: str) -> int:
    if len(digits) > 20 or abs(int(digits)) >= 1 << MOST_BITS:
        raise ValueError(f"holds a number of {len(digits)} digits, beyond {MOST_BITS} bits")
    return int(digits)


def _refuse_constant(word: str) -> None:
    raise ValueError(f"holds {word}, which is not a number of JSON")


def _check(document: Any, *, finite: bool) -> None:
    """Look at it level by level, for a walk that calls itself is what it must not break."""
    level = [document]
    for _ in range(MOST_LEVELS):
        # Neither NaN nor Infinity, but beyond every float: 1e999.
        if finite and any(isinstance(each, float) and not math.isfinite(each) for each in level):
            raise ValueError("holds a number that no computer's float can hold")
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise ValueError(f"nested more than {MOST_LEVELS} levels deep")


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


_Value = TypeVar("_Value")
_MOST_FAULTS = 10


def checked(document: Any, kind: type[_Value], *, name: str, what: str, hint: str | None = None) -> _Value:
    """Return a document as a dataclass or a model.

    Args:
        name: the file, for messages.
        what: what it should be, such as "record".

    Raises:
        UsageError: a part is missing, or has another type; every such part is named.
    """
    from pydantic import TypeAdapter, ValidationError  # a tenth of a second, which most commands need not pay

    try:
        # As JSON, strictly: a text of 5,000 digits is a text, and not an infinite number of seconds.
        return TypeAdapter(kind).validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()[:_MOST_FAULTS]]
        raise UsageError(f"{name}: is a damaged {what}:\n  " + "\n  ".join(faults), hint=hint) from error


def head(name: str, version: int = 1) -> dict[str, Any]:
    """Return what a document says first: its form, and who wrote it.

    >>> head("clean")["schema"]
    'mps-build/clean/1'
    """
    return {"schema": f"mps-build/{name}/{version}", "tool_version": __version__}
