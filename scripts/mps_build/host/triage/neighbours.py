"""Which causes lie nearest to each other, by the words that their rows look for: one may be taken for the other."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from .rules import Catalogue, Cause

# What patterns are made of, beside words; a class that begins a word (`[Ss]ymbol`) stands for its first letter.
_EITHER_CASE = re.compile(r"\[([A-Za-z])[A-Za-z]\]")
_NOT_WORDS = re.compile(
    r"\(\?(?:[:=!]|<[=!]|[aiLmsux]{1,4}[:)])|\\[A-Za-z]|\[[^\]]*\]|\{\d+,?\d*\}|<(?:block|near|far)>"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z_]{3,}")
_LEAST = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A cause near to another one: how near (0 to 1), and the rarest words that both look for."""

    cause: str
    nearness: float
    shared: tuple[str, ...]


def neighbours(catalogue: Catalogue, count: int = 2) -> Mapping[str, tuple[Neighbour, ...]]:
    """Return the nearest causes of each, the nearest first.

    What a row itself names as an effect or as a rival is near by that alone. Of one that shares no word with any, they
    are those beside it in the file, which is ordered by what breaks.
    """
    ids = [cause.id for cause in catalogue.causes]
    words = {cause.id: _words(cause) for cause in catalogue.causes}
    held_by = Counter(word for mine in words.values() for word in mine)
    rarity = {word: math.log(len(words) / number) for word, number in held_by.items()}
    named = {cause.id: {*cause.explains, *cause.rivals} for cause in catalogue.causes}
    found = {}
    for mine, looked_for in words.items():
        near = []
        for other, theirs in words.items():
            shared = looked_for & theirs
            whole = sum(rarity[word] for word in looked_for | theirs) or 1.0
            nearness = sum(rarity[word] for word in shared) / whole
            nearness += 0.5 if other in named[mine] or mine in named[other] else 0.0
            if other != mine and nearness > _LEAST:
                rarest = tuple(sorted(shared, key=lambda word: (-rarity[word], word))[:3])
                near.append(Neighbour(cause=other, nearness=min(nearness, 1.0), shared=rarest))
        found[mine] = tuple(sorted(near, key=lambda each: (-each.nearness, each.cause))[:count]) or tuple(
            Neighbour(cause=beside, nearness=0.0, shared=()) for beside in _beside(ids, mine)[:count]
        )
    return found


def _beside(ids: list[str], mine: str) -> list[str]:
    place = ids.index(mine)
    return ids[max(place - 1, 0) : place] + ids[place + 1 : place + 2]


def _words(cause: Cause) -> frozenset[str]:
    written = " ".join(pattern for matcher in cause.any for pattern in matcher.all)
    return frozenset(_WORD.findall(_NOT_WORDS.sub(" ", _EITHER_CASE.sub(r"\1", written))))
