"""What the answers of cases say of a mutant. Pure: rows in, words out.

A case *tells* if it passed in every run without a mutant. A mutant is caught by the first case that tells and fails (or
crashes, or hangs), and fails again when it runs alone, or fails where the same cases ran before it, while
the unchanged library passes there. A case whose digest was the same in every run without a mutant is *steady*; a
mutant that survives *changed a result* if a steady case answered other bits or ended otherwise, and again so beside the
unchanged library: the same cases, in the same order. One that did not is *equivalent as far as the cases go*: it is no
miss, and it does not count.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Sequence

FAILED = ("failed", "crashed", "timeout")
CAUGHT = ("quick", "whole")
# How often a failure of a case that does not run the mutant's lines has to come again.
OUTSIDE = 3
# How a mutant ends, in the order of a table.
OUTCOMES = (
    "quick",  # caught, by a case of --quick
    "whole",  # caught, by another case
    "missed",  # survived, and a steady case answered other bits
    "equivalent",  # survived; no steady case that runs its lines answered other bits
    "same_code",  # the compiler made the same object
    "not_reached",  # no case runs its lines
    "not_compiled",
    "own_fault",
)


@dataclass(frozen=True)
class Usual:
    """A case without a mutant: does it always pass, what it costs, its digest if that is always the same."""

    file: str
    id: str
    quick: bool
    tells: bool
    outcome: str
    seconds: float
    digest: str | None


def usual(cases: Iterable[Sequence[Any]], runs: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, Usual]:
    """Return each case as the runs without a mutant show it.

    Args:
        cases: [file, id, is it of --quick]. runs: the rows of each run, by id.
    """
    found = {}
    for file, name, quick in cases:
        rows = [run[name] for run in runs if name in run]
        if not rows:
            continue
        outcomes = {row["outcome"] for row in rows}
        digests = {row.get("digest", "") for row in rows}
        steady = len(outcomes) == 1 and len(digests) == 1 and len(rows) == len(runs)
        found[name] = Usual(
            file=file,
            id=name,
            quick=bool(quick),
            tells=outcomes == {"passed"} and len(rows) == len(runs),
            outcome=rows[0]["outcome"] if len(outcomes) == 1 else "unsteady",
            seconds=rows[-1].get("seconds", 0.0),
            digest=digests.pop() if steady else None,
        )
    return found


def in_order(cases: Iterable[Usual]) -> list[Usual]:
    """Return the cases of --quick, then the others, the cheapest first: most mutants die early."""
    return sorted(cases, key=lambda case: (not case.quick, case.seconds, case.id))


def changed(rows: Iterable[Mapping[str, Any]], known: Mapping[str, Usual]) -> list[str]:
    """Return the steady cases that answered other bits than without the mutant, or ended otherwise."""
    found = []
    for row in rows:
        case = known[row["id"]]
        if case.digest is not None and (row["outcome"] != case.outcome or row.get("digest", "") != case.digest):
            found.append(case.id)
    return found


def differing(one: Iterable[Mapping[str, Any]], other: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the cases that answered other bits or ended otherwise in two runs that both had them.

    >>> differing([{"id": "a", "outcome": "passed", "digest": "1"}], [{"id": "a", "outcome": "passed", "digest": "2"}])
    ['a']
    """
    ends = {row["id"]: (row["outcome"], row.get("digest", "")) for row in other}
    return [
        row["id"] for row in one if row["id"] in ends and ends[row["id"]] != (row["outcome"], row.get("digest", ""))
    ]


def verdict(
    rows: Sequence[Mapping[str, Any]], caught: str | None, different: Sequence[str], known: Mapping[str, Usual]
) -> dict[str, Any]:
    """Return the outcome of a mutant that some cases ran against.

    Args:
        caught: the case that showed it. different: those that answer other bits because of the mutant.
    """
    if caught is not None:
        return {"outcome": "quick" if known[caught].quick else "whole", "case": caught}
    if not rows:
        return {"outcome": "not_reached"}
    return {
        "outcome": "missed" if different else "equivalent",
        "changed": len(different),
        "examples": list(different[:5]),
    }


def weightiest(verdicts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the one that counts of the verdicts as several macOS: caught on any, else missed on any.

    >>> weightiest([{"outcome": "equivalent"}, {"outcome": "missed"}])
    {'outcome': 'missed'}
    """
    order = ("own_fault", *OUTCOMES)
    return min(verdicts, key=lambda one: order.index(one["outcome"]))


def by_suite_seed(rows: Iterable[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    """Return the rows of each seed of the suite, the least first: those that are `sound` among them.

    >>> by_suite_seed([{"id": "a", "suite_seed": 1}, {"id": "a"}])
    {0: [{'id': 'a'}], 1: [{'id': 'a', 'suite_seed': 1}]}
    """
    found: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row.get("suite_seed", 0), []).append(row)
    return {seed: sound(found[seed]) for seed in sorted(found)}


def unsteady_cases(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the cases that failed for some mutant and did not hold there: they tell of no other either."""
    return {name for row in rows for name in row.get("unreliable", ())}


def sound(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the last row of each mutant, at one seed of the suite: none that an unsteady case caught, or one outside
    the map.

    A row of a case outside the map counts where the failure came again as often as a later record asks for.
    """
    listed = {row["id"]: row for row in rows}
    unsteady = unsteady_cases(listed.values())
    return [
        row
        for row in listed.values()
        if row.get("case") not in unsteady and (not row.get("outside_map") or row.get("again", 0) >= OUTSIDE)
    ]


@dataclass(frozen=True)
class Figures:
    """What a run comes to: of how many mutants that change a result, how many are caught."""

    counts: Mapping[str, int]

    @property
    def effective(self) -> int:
        """Mutants that change a result: caught or missed."""
        return sum(self.counts.get(name, 0) for name in ("quick", "whole", "missed"))

    @property
    def caught(self) -> int:
        """Mutants that the suite catches."""
        return self.counts.get("quick", 0) + self.counts.get("whole", 0)

    @property
    def caught_by_quick(self) -> int:
        """Mutants that its --quick cases catch."""
        return self.counts.get("quick", 0)


def figures(rows: Iterable[Mapping[str, Any]]) -> Figures:
    """Count the rows of a record."""
    return Figures(Counter(row["outcome"] for row in rows))


def wilson(caught: int, count: int) -> tuple[float, float]:
    """Return Wilson's interval of a share, 95 %.

    >>> [round(one, 2) for one in wilson(8, 10)]
    [0.49, 0.94]
    """
    if not count:
        return 0.0, 1.0
    z, share = 1.959964, caught / count
    middle, spread = share + z * z / (2 * count), z * math.sqrt(share * (1 - share) / count + z * z / (4 * count**2))
    return (middle - spread) / (1 + z * z / count), (middle + spread) / (1 + z * z / count)
