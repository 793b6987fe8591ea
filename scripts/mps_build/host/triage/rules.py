"""The table of known causes: causes.yaml, read strictly and compiled once."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from mps_build.common import strict_yaml
from mps_build.host.macos.known_tool_errors import BY_ID

from .literals import alternates, required_literals

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
        twice = sorted({name for name in ids if ids.count(name) > 1})
        if twice:
            raise ValueError(f"two rows of one id: {', '.join(twice)}")
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
