"""Logs that came inside another format: a JSON object per line, a list of quoted strings, a string with `\\n` in it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..json_text import parse_json

_KEYS = ("log", "message", "msg", "text", "line", "output", "content", "MESSAGE", "@message", "body", "data")
_QUOTED = re.compile(r"\s*\"(?:[^\"\\]|\\.)*\",?\s*$")
_WRITTEN_END = re.compile(r"(?<!\\)(?:\\r)?\\n")
_SAMPLE = 200
# Below this many written line ends, a `\n` is part of a message.
_ENDS_OF_A_LOG = 3


def unwrap(lines: Sequence[str]) -> list[str]:
    r"""Return the same lines without the format they came in; a line may then hold `\r`, as redrawn lines do.

    >>> unwrap(['{"log":"FAILED: a.o\\n","stream":"stderr"}'] * 3)
    ['FAILED: a.o', 'FAILED: a.o', 'FAILED: a.o']
    """
    filled = [line for line in lines if line.strip()]
    sample = filled[:: max(len(filled) // _SAMPLE, 1)]
    if sample and sum(_text_of(line) is not None for line in sample) > 0.7 * len(sample):
        return [line if (text := _text_of(line)) is None else text for line in lines]
    if len(sample) >= 4 and sum(bool(_QUOTED.match(line)) for line in sample) > 0.7 * len(sample):
        return [_unquoted(line) if _QUOTED.match(line) else line for line in lines]
    return [_split_up(line) if "\\n" in line else line for line in lines]


def _text_of(line: str) -> str | None:
    if not line.lstrip().startswith("{"):
        return None
    try:
        document = parse_json(line, finite=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    text = next((document[key] for key in _KEYS if isinstance(document.get(key), str)), None)
    return None if text is None else text.rstrip("\n").replace("\n", "\r")


def _unquoted(line: str) -> str:
    try:
        return str(parse_json(line.strip().rstrip(","))).rstrip("\n").replace("\n", "\r")
    except ValueError:
        return line


def _split_up(line: str) -> str:
    ends = _WRITTEN_END.findall(line)
    if len(ends) < _ENDS_OF_A_LOG:
        return line
    return _WRITTEN_END.sub("\r", line).replace("\\t", "\t").replace('\\"', '"').replace("\\'", "'")
