"""Which candidate to ask next, and who is left: a binary search that lives with gaps and asks the likely ones first.

Pure: everything follows from the candidates and the verdicts so far, so an interrupted search goes on by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["good", "bad", "skip", "flaky"]
Word = Literal["good", "bad", "skip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The ends, and the candidates strictly between them, oldest first.

    The older end is known to be other than the newer one; `seek` is the newer one's verdict.
    `favoured` are the subjects more likely to be the cause.
    """

    old: str
    new: str
    candidates: tuple[str, ...]
    favoured: frozenset[str] = field(default_factory=frozenset)
    seek: Literal["good", "bad"] = "bad"

    @property
    def all(self) -> tuple[str, ...]:
        """Both ends and all candidates, oldest first."""
        return (self.old, *self.candidates, self.new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the verdicts leave: the last subject as the old end, the first as the new one, and who may be the cause."""

    last_old: str
    first_new: str
    suspects: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """True if only one suspect is left."""
        return len(self.suspects) == 1


def steps_at_most(count: int) -> int:
    """Return how many verdicts the search needs between ends that `count` candidates part.

    One more than log2: the likely ones are tested first only as far as that costs no more than one step.

    >>> steps_at_most(1), steps_at_most(200)
    (2, 9)
    """
    return count.bit_length() + 1 if count else 0


def standing(span: Span, verdicts: Mapping[str, Verdict]) -> Standing:
    """Return who may still be the cause; more than one at the end if gaps lie between."""
    low, high = _bounds(span, verdicts)
    return Standing(last_old=span.all[low], first_new=span.all[high], suspects=span.all[low + 1 : high + 1])


def next_probe(span: Span, verdicts: Mapping[str, Verdict]) -> str | None:
    """Return the subject whose verdict tells most, or None if none is left to ask.

    The likely ones share half of the weight, and the weight is halved; but never so that a verdict leaves more
    suspects than the steps left can tell apart. After a gap the search moves away from it, each time by double the way.
    """
    low, high = _bounds(span, verdicts)
    subjects = span.all
    open_ones = [index for index in range(low + 1, high) if subjects[index] not in verdicts]
    if not open_ones:
        return None
    gaps = [index for index in range(low + 1, high) if subjects[index] in verdicts]
    tested = sum(1 for subject in span.candidates if subject in verdicts)
    left = max(steps_at_most(len(span.candidates)) - tested - 1, 0)
    within = [index for index in open_ones if max(high - index, index - low) <= 1 << left]
    if within:
        likely = span.favoured
    else:
        within, likely = open_ones, frozenset()
    balance = _balance(subjects[low + 1 : high + 1], likely)
    middle = (low + high) / 2
    ranked = sorted(within, key=lambda index: (round(abs(balance[index - low - 1]), 9), abs(index - middle), index))
    return subjects[_away_from(gaps, ranked, width=high - low)]


def majority(words: Sequence[Word], runs: int) -> Verdict | None:
    """Return the verdict of the runs so far, or None if another run is needed.

    A skip at the first run stands: what cannot be tested will not become so. No majority is `flaky`.

    >>> majority(["bad", "good"], 3), majority(["bad", "good", "bad"], 3), majority(["skip"], 3)
    (None, 'bad', 'skip')
    """
    if words[:1] == ["skip"]:
        return "skip"
    for word in ("good", "bad", "skip"):
        if list(words).count(word) > runs // 2:
            return word
    return "flaky" if len(words) >= runs else None


def _bounds(span: Span, verdicts: Mapping[str, Verdict]) -> tuple[int, int]:
    """Return the places in `span.all` of the newest one as the old end and of the oldest one as the new end."""
    low, high = 0, len(span.candidates) + 1
    for index, subject in enumerate(span.candidates, start=1):
        verdict = verdicts.get(subject)
        if verdict == span.seek:
            return low, index
        if verdict in ("good", "bad"):
            low = index
    return low, high


def _balance(suspects: Sequence[str], favoured: frozenset[str]) -> list[float]:
    """Return, for each suspect, the weight up to and with it less the weight behind it (of a whole of 1)."""
    likely = sum(subject in favoured for subject in suspects)
    share = 0.5 if likely else 0.0
    balances, seen = [], 0.0
    for subject in suspects:
        seen += (1 - share) / len(suspects) + (share / likely if subject in favoured else 0.0)
        balances.append(2 * seen - 1)
    return balances


def _away_from(gaps: Sequence[int], ranked: Sequence[int], *, width: int) -> int:
    # Gaps come in rows (a broken build stays broken for a while), so the first step away is not the next one: a
    # twenty-fourth of what is left costs a tenth of a step if it was a single gap (figures: docs/verify/bisect.md).
    distance = -(-width // 24) << (len(gaps) - 1) if gaps else 0
    while distance > 1:
        far = [index for index in ranked if all(abs(index - gap) >= distance for gap in gaps)]
        if far:
            return far[0]
        distance //= 2
    return ranked[0]
