"""The table of known causes: causes.yaml, read strictly and compiled once; and which of them lie near each other."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from mps_build.common import strict_yaml
from mps_build.host.macos.known_tool_errors import BY_ID

from .log import alternates, required_literals

CAUSES = Path(__file__).with_name("causes.yaml")
CauseId = Annotated[str, StringConstraints(pattern=r"^[BN]\d+[a-e]?$")]
_MACRO = re.compile(r"<([a-z_]+)>")
_FAR = "<far>"
_ID = re.compile(r"[BN]\d+[a-e]?")


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Ranged(_Declared):
    releases: str | None = None
    needs_release: bool = False

    @field_validator("releases")
    @classmethod
    def _is_a_range(cls, value: str | None) -> str | None:
        try:
            SpecifierSet(value or "")
        except InvalidSpecifier as error:
            raise ValueError(f"is not a range of versions such as '<2.7': {value}") from error
        return value

    def fits(self, release: Version | None) -> bool:
        """Whether the row holds for this release; a nightly counts as the release it leads to."""
        if self.releases is None or release is None:
            return not self.needs_release or release is not None
        return SpecifierSet(self.releases).contains(release.base_version)


class Matcher(_Ranged):
    """One way to tell a cause; see the head of causes.yaml."""

    all: tuple[str, ...] = Field(min_length=1)
    none: tuple[str, ...] = ()
    then: str | None = None
    alone: bool = False
    show: str | None = None
    rival: str | None = None


class Cause(_Ranged):
    """One row: how it is recognised, and what a person should know and do."""

    id: CauseId
    title: str
    tool_errors: tuple[str, ...] = ()
    any: tuple[Matcher, ...] = Field(min_length=1)
    explains: tuple[CauseId, ...] = ()
    frame: bool = False
    first: bool = False
    quiet: bool = False
    runs: bool = False
    cause: str
    fix: str
    link: Annotated[str, StringConstraints(pattern=r"^https://")]

    @property
    def rivals(self) -> tuple[str, ...]:
        """What else some of its words may mean: ids, or words."""
        return tuple(matcher.rival for matcher in self.any if matcher.rival)

    @model_validator(mode="before")
    @classmethod
    def _is_filled_from_the_tools_table(cls, row: Any) -> Any:
        if not isinstance(row, dict) or not row.get("tool_errors"):
            return row
        if unknown := [name for name in row["tool_errors"] if name not in BY_ID]:
            raise ValueError(f"no such tool error: {', '.join(map(str, unknown))}")
        known = [BY_ID[name] for name in row["tool_errors"]]
        phrases = [phrase for error in known for phrase in error.phrases]
        taken = {"cause": known[0].means, "fix": known[0].fix, "link": known[0].link}
        return {**taken, "any": [{"all": [_literally(phrase)]} for phrase in phrases], **row}


class Note(_Declared):
    """What is worth saying beside, or in the place of, a cause."""

    id: CauseId
    pattern: str
    text: str


class Catalogue(_Declared):
    """The whole file."""

    schema_version: Literal[1]
    macros: dict[str, str]
    blockers: tuple[str, ...]
    notes: tuple[Note, ...]
    causes: tuple[Cause, ...]

    @model_validator(mode="after")
    def _hangs_together(self) -> Catalogue:
        ids = [cause.id for cause in self.causes]
        repeated = sorted({name for name in ids if ids.count(name) > 1})
        if repeated:
            raise ValueError(f"two rows of one id: {', '.join(repeated)}")
        named = {name for cause in self.causes for name in (*cause.explains, *cause.rivals) if _ID.fullmatch(name)}
        if unknown := sorted(named - {*ids, *(note.id for note in self.notes)}):
            raise ValueError(f"no such cause: {', '.join(unknown)}")
        if open_macros := sorted(name for name, macro in self.macros.items() if alternates(macro)):
            raise ValueError(f"put the alternatives into a group, (?:a|b): {', '.join(open_macros)}")
        for pattern in self.patterns():
            try:
                for part in pattern.split(_FAR):
                    self.compiled(part)
            except (re.error, KeyError) as error:
                raise ValueError(f"no pattern: {pattern}: {error}") from error
        return self

    def title_of(self, rival: str) -> str:
        """Return the title of a cause by its id, or the words that stand in place of an id."""
        return next((cause.title for cause in self.causes if cause.id == rival), rival)

    def patterns(self) -> tuple[str, ...]:
        """Return every pattern of the file, as written."""
        found = [*self.blockers, *(note.pattern for note in self.notes)]
        for cause in self.causes:
            for matcher in cause.any:
                found += [*matcher.all, *matcher.none, *filter(None, (matcher.then, matcher.show))]
        return tuple(found)

    @cached_property
    def first_words(self) -> dict[str, tuple[str, ...]]:
        """Words for each matcher's first pattern: a match holds at least one; nothing if no word is sure."""
        first = (matcher.all[0] for cause in self.causes for matcher in cause.any)
        return {pattern: required_literals(self.parts(pattern)[0].pattern) for pattern in first}

    def parts(self, pattern: str) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
        """Return a pattern, and what must follow it at some distance (`A<far>B`), compiled."""
        first, _, second = pattern.partition(_FAR)
        return self.compiled(first), self.compiled(second) if second else None

    def compiled(self, pattern: str) -> re.Pattern[str]:
        """Return a pattern with its macros filled in."""
        return _compiled(_MACRO.sub(lambda match: self.macros[match[1]], pattern))


def _literally(phrase: str) -> str:
    """Return a tool's words as a pattern; quotes are straight, white space is one blank, as in a log made ready."""
    return re.escape(" ".join(phrase.split())).replace("\\ ", " ")


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@lru_cache(maxsize=8)
def load_catalogue(path: Path = CAUSES) -> Catalogue:
    """Return the table of causes; raises a UsageError that lists every fault of the file."""
    return strict_yaml.load(path, Catalogue)


# What patterns are made of, beside words; a class that begins a word (`[Ss]ymbol`) stands for its first character.
_EITHER_CASE = re.compile(r"\[([A-Za-z])[A-Za-z]\]")
_NOT_WORDS = re.compile(
    r"\(\?(?:[:=!]|<[=!]|[aiLmsux]{1,4}[:)])|\\[A-Za-z]|\[[^\]]*\]|\{\d+,?\d*\}|<(?:block|near|far)>"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z_]{3,}")
_LEAST = 0.05


def parts_of(text: str) -> dict[str, list[str]]:
    """Return the ids of each part of causes.yaml: a comment of dashes begins one.

    >>> parts_of("  # ------ CMake\\n  - id: N1\\n  - id: N2\\n  # --- Metal\\n  - id: B3\\n")
    {'CMake': ['N1', 'N2'], 'Metal': ['B3']}
    """
    found: dict[str, list[str]] = {}
    ids: list[str] = []
    for part, name in re.findall(r"^ +(?:# -{3,} (.+)|- id: (\S+))$", text, re.MULTILINE):
        if part:
            ids = found.setdefault(part if "_" in part else f"{part[0].upper()}{part[1:]}", [])
        else:
            ids.append(name.strip('"'))
    return found


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
