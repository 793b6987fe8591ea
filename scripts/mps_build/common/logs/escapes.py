"""What a terminal, a web page or a string literal did to a line of text, undone."""

from __future__ import annotations

import html
import re

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
