"""Mutations of a JSON document by its structure: a part gets another type, another name, a list around it, or goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

KINDS = ("retype", "drop", "wrap", "rename", "double")
# One of each type, and of each type what has broken a reader: nested facts, numbers beyond all, steering letters.
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**9,
    2**63,
    10**25,
    1e308,
    float("nan"),
    "",
    "x",
    "9" * 5000,
    "\u00b2",
    "2026-02-30",
    "\x1b[2J\u202e|`<b>\n::error::x",
    [],
    [[]],
    ["x"],
    [1, {"x": ["y"]}],
    {},
    {"x": "y"},
    {"x": {"y": [0]}},
)


def restructured(data: bytes, kind: str, where: float, which: float) -> bytes:
    """Return the document with one of its parts changed; what is not JSON (any more) stays as it is.

    Args:
        where: the part, as a fraction of all of them in order.
        which: the new value, as a fraction of VALUES.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return data
    value = VALUES[min(int(which * len(VALUES)), len(VALUES) - 1)]
    places = _places(document) if isinstance(document, dict | list) else []
    if not places:
        return json.dumps(value).encode()
    change = _CHANGES[kind]
    holder, key = places[min(int(where * len(places)), len(places) - 1)]
    change(holder, key, value)
    return json.dumps(document).encode()


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Return holder and key of every part, outer ones first: by depth, so that small fractions hit the frame."""
    found: list[tuple[Any, Any]] = []
    level = [document]
    while level:
        parts = [
            (holder, key) for holder in level for key in (holder if isinstance(holder, dict) else range(len(holder)))
        ]
        found += parts
        level = [holder[key] for holder, key in parts if isinstance(holder[key], dict | list)]
    return found


def _retype(holder: Any, key: Any, value: Any) -> None:
    holder[key] = value


def _drop(holder: Any, key: Any, _value: Any) -> None:
    del holder[key]


def _wrap(holder: Any, key: Any, _value: Any) -> None:
    holder[key] = [holder[key]]


def _rename(holder: Any, key: Any, value: Any) -> None:
    if isinstance(holder, dict):
        holder[value if isinstance(value, str) else "x"] = holder.pop(key)


def _double(holder: Any, key: Any, _value: Any) -> None:
    if isinstance(holder, list):
        holder.append(holder[key])


_CHANGES: dict[str, Callable[[Any, Any, Any], None]] = {
    "retype": _retype,
    "drop": _drop,
    "wrap": _wrap,
    "rename": _rename,
    "double": _double,
}
