"""What a rule does at a place, and what several rules have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Iterator

from .text import Span, Text


@dataclass(frozen=True)
class Edit:
    """What a rule does at one place: `new` stands instead of what is there."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Rule:
    """A kind of fault: `what` says it in words, `find` yields the places."""

    name: str
    what: str
    find: Callable[[Text], Iterator[Edit]]


def applied(text: Text, edit: Edit) -> str:
    """Return a file with one edit; its lines keep their numbers."""
    lost = text.whole.count("\n", edit.start, edit.end) - edit.new.count("\n")
    return text.whole[: edit.start] + edit.new + "\n" * max(lost, 0) + text.whole[edit.end :]


def messages_left_out(text: Text, keyword: str) -> Iterator[Edit]:
    """Messages to a graph whose first argument stands for their result."""
    for found in text.find(rf"\b{keyword}:"):
        argument = text.message_argument(found.end())
        opening = _message_start(text, found.start())
        if argument is not None and opening is not None:
            closing = text.closing(opening)
            if closing is not None:
                yield Edit(opening, closing + 1, f"({text.whole[argument.start : argument.end]})")


def _message_start(text: Text, place: int) -> int | None:
    """Return where the message opens that a place is inside of."""
    at = place - 1
    while at >= 0:
        character = text.code[at]
        if character in ")]}":
            at = text.opening(at) or 0
        elif character == "[":
            return at
        elif character in "({;":
            return None
        at -= 1
    return None


def statements_left_out(text: Text, pattern: str) -> Iterator[Edit]:
    for found in text.find(pattern):
        if text.starts_statement(found.start()):
            statement = text.statement(found.start())
            if statement is not None:
                yield Edit(statement.start, statement.end, ";")


def swapped(text: Text, one: Span, other: Span) -> Edit:
    whole = text.whole
    between = whole[one.end : other.start]
    return Edit(one.start, other.end, whole[other.start : other.end] + between + whole[one.start : one.end])
