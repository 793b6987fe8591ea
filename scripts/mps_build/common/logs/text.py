"""A log as its reader meant it: unwrapped, no colours, no prefixes of collectors, one numbered line after another."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..json_text import parse_json
from .relays import infer_prefix, without_fixed_prefix

# ECMA-48: CSI, the strings (titles, hyperlinks, Buildkite's `_bk;t=...` time stamps), and the two-byte escapes.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]_P^X][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]"
)
# The same where a page or an editor took the ESC away, or wrote it out.
_WRITTEN_ESCAPES = re.compile(
    r"(?:\^\[|\\u001[bB]|\\x1[bB]|\\0?33|\\e|[\u241b\ufffd])\[[0-9;?]{0,12}[A-Za-z]"
    r"|\[(?:\d{1,3}(?:;\d{1,3}){0,4})m|\[[012]?K(?![\w\]])|_bk;t=\d{10,16}"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_ENTITY = re.compile(r"&(?:lt|gt|quot|amp|apos|nbsp|#\d{1,6}|#[xX][0-9a-fA-F]{1,5});")
_TAG = re.compile(
    r"</?(?:a|b|br|code|div|em|font|i|li|ol|p|pre|samp|span|strong"
    r"|table|tbody|td|tr|time|tt|u|ul)(?:[ \t][^<>]{0,300})?/?>"
)
# No counter and no size is as long; Python refuses to read one of 4,301 digits, and no float holds one of 309.
_MOST_DIGITS = 100
_NO_NUMBER = re.compile(rf"\d{{{_MOST_DIGITS},}}")
_PAGE = re.compile(r"</(?:span|div|pre|code|td|li|font|samp|time)>|<br ?/?>")


def is_page(text: str) -> bool:
    """Whether a text is (a part of) an HTML page; `<span>` alone is a header of C++ too."""
    return "<" in text and bool(_PAGE.search(text))


def plain(raw: str, *, of_a_page: bool = False) -> str:
    r"""Return a line without escapes, entities and trailing blanks; its indent stays.

    >>> plain("\x1b[31mFAILED: \x1b[0ma.o  "), plain("a.cpp:1:2: error: use of &#39;vector&lt;int&gt;&#39;")
    ('FAILED: a.o', "a.cpp:1:2: error: use of 'vector<int>'")
    """
    line = raw
    if "\x1b" in line or "\x9b" in line:
        line = _ESCAPES.sub("", line)
    if "[" in line or "_bk;t=" in line:
        line = _WRITTEN_ESCAPES.sub("", line)
    if of_a_page and "<" in line:
        line = _TAG.sub("", line)
    for _ in range(2):  # a page that quotes a page has `&amp;lt;`
        if "&" not in line or not _ENTITY.search(line):
            break
        line = _ENTITY.sub(lambda match: html.unescape(match[0]), line)
    if len(line) >= _MOST_DIGITS:
        line = _NO_NUMBER.sub("…", line)
    return _CONTROLS.sub("", line.replace("\xa0", " ")).rstrip()


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
