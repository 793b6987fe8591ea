"""Which cases run against a mutant: those that run its lines, by the recorded map."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

from .coverage_library import Lines, blocks_at
from .draw import Mutant
from .judge import Usual, in_order
from .recording import NEWEST, OLDER, blocks_of, read_run

# More than this of a mutant's cases, in CPU seconds without the mutant, are left out, but for the seeded tenth: of the
# cases that are not of --quick then a draw by seed is.
MOST_SECONDS = 240.0
# Where the host code does on an older macOS what later ones do by themselves: tensors with gaps.
_BOTH = ("macos", "gather", "strides", "offset")


@dataclass(frozen=True)
class Plan:
    """What runs against a mutant as one macOS.

    Attributes:
        cases: in order. by_map: how many cases run its lines. starts: its lines run when a process starts.
    """

    macos: str
    cases: tuple[str, ...]
    by_map: int
    starts: bool = False


def reached(rows: Iterable[dict[str, Any]], wanted: Mapping[str, set[int]]) -> tuple[dict[str, list[str]], set[str]]:
    """Return the cases that run any block of each mutant, and the mutants whose blocks run when a process starts."""
    masks = {name: sum(1 << block for block in blocks) for name, blocks in wanted.items()}
    found: dict[str, list[str]] = {name: [] for name in wanted}
    starts: set[str] = set()
    for row in rows:
        ran = blocks_of(row)
        for name, mask in masks.items():
            if ran & mask:
                if row["id"]:
                    found[name].append(row["id"])
                else:
                    starts.add(name)
    return found, starts


def planned(
    mutants: Sequence[Mutant], lines: Lines, home: Path, known: Mapping[str, Mapping[str, Usual]], seed: int
) -> dict[str, list[Plan]]:
    """Return the plans of each mutant; none where no case runs its lines.

    As the newer macOS; as the older one where only that runs them, and for some rules besides.
    """
    wanted = {one.id: blocks_at(lines, one.file, *one.lines) for one in mutants}
    cases = {}
    starts: set[str] = set()
    for macos in (NEWEST, OLDER):
        cases[macos], begun = reached(read_run(home, f"cover-{macos}"), wanted)
        # Run by a start and by no case: what is made once for a process, and whatever comes later may depend on it.
        starts |= {name for name in begun if not cases[macos][name]}
    plans: dict[str, list[Plan]] = {}
    for one in mutants:
        on = [NEWEST] if cases[NEWEST][one.id] or one.id in starts else []
        if cases[OLDER][one.id] and (not on or one.rule in _BOTH):
            on.append(OLDER)
        plans[one.id] = [
            chosen(one, cases[macos][one.id], known[macos], macos=macos, seed=seed, starts=one.id in starts)
            for macos in on
        ]
    return plans


def chosen(
    mutant: Mutant, mapped: Sequence[str], known: Mapping[str, Usual], *, macos: str, seed: int, starts: bool
) -> Plan:
    """Return the cases to ask in order.

    Lines that run when a process starts may change any case: all of --quick run, and a draw of the others.
    A mutant of the seeded tenth is tried with every case, those of the map first.
    """
    ours = {name for name in mapped if name in known}
    first = in_order(known[name] for name in ours)
    rest = in_order(case for case in known.values() if case.id not in ours)
    if mutant.whole:
        return Plan(macos, tuple(case.id for case in (*first, *rest)), len(ours), starts)
    pool = in_order((*first, *rest)) if starts else first
    return Plan(macos, tuple(case.id for case in _within(pool, seed, mutant.id)), len(ours), starts)


def _within(cases: Sequence[Usual], seed: int, name: str) -> list[Usual]:
    """Return the quick cases, and of the others as many as the limit holds, drawn by seed."""
    if sum(case.seconds for case in cases) <= MOST_SECONDS:
        return list(cases)
    quick = [case for case in cases if case.quick]
    others = [case for case in cases if not case.quick]
    random.Random(f"{seed} {name}").shuffle(others)
    spent, kept = sum(case.seconds for case in quick), []
    for case in others:
        if spent + case.seconds > MOST_SECONDS:
            continue
        spent += case.seconds
        kept.append(case)
    return in_order((*quick, *kept))
