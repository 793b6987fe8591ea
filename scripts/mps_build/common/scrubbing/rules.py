"""What a rule for a secret or an identifier is, and its use on a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class Rule(NamedTuple):
    """What is taken out, where it stands, and what takes its place.

    A replaced place matches no more, or gives itself again: "nothing changes" proves that a text is clean.

    Attributes:
        needs: words in small letters; a text that has none of them cannot match, and is not looked at further.
    """

    kind: str
    pattern: re.Pattern[str]
    instead: str
    needs: tuple[str, ...] = ()


def rules(*rows: tuple[str, str, str], needs: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """Return the rules of rows (kind, regular expression, replacement)."""
    return tuple(Rule(kind, re.compile(pattern), instead, needs) for kind, pattern, instead in rows)


def take_out(text: str, rules: Iterable[Rule], removed: Counter[str]) -> str:
    """Return the text without what the rules find; `removed` counts it by kind."""
    small = text.lower()
    for kind, pattern, instead, needs in rules:
        if needs and not any(word in small for word in needs):
            continue
        text, count = pattern.subn(instead, text)
        removed[kind] += count
    return text


def kinds_in(line: str, rules: Iterable[Rule]) -> tuple[str, ...]:
    """Return the kinds that the rules still find in a line."""
    return tuple(rule.kind for rule in rules if rule.pattern.sub(rule.instead, line) != line)
