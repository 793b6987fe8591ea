"""Which mutants are made: every place that a rule finds, of these a choice by seed over files and rules. Pure."""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import Any, Iterable, Mapping

from .edits import Edit, Rule, applied
from .rules import RULES
from .text import Text

HELD_BACK = 3  # each third, by seed, is kept from whoever writes cases
WHOLE = 10  # each tenth is tried with the whole suite, as a check of the map


@dataclass(frozen=True)
class Mutant:
    """One fault: where, by which rule, what stands there and what is put instead.

    Attributes:
        lines: the first and last line that the edit touches.
        held: nobody who writes cases hears of it. whole: tried with the whole suite, whatever the map says.
    """

    id: str
    file: str
    rule: str
    start: int
    end: int
    old: str
    new: str
    lines: tuple[int, int]
    held: bool = False
    whole: bool = False

    def source(self, text: str) -> str:
        """Return the file with the fault.

        Raises:
            ValueError: the file is not the one that the mutant was drawn from.
        """
        if text[self.start : self.end] != self.old:
            raise ValueError(f"{self.id}: {self.file} is another one")
        return applied(Text(text), Edit(self.start, self.end, self.new))

    def as_json(self) -> dict[str, Any]:
        """Return the mutant for a record."""
        return asdict(self)


def every_mutant(file: str, text: str, rules: Iterable[Rule] = RULES) -> list[Mutant]:
    """Return all that the rules make of one file; the same change found again counts once."""
    read, found = Text(text), {}
    for rule in rules:
        for edit in rule.find(read):
            old = text[edit.start : edit.end]
            if old == edit.new or (edit.start, edit.end, edit.new) in found:
                continue
            lines = (read.line(edit.start), read.line(max(edit.start, edit.end - 1)))
            name = hashlib.sha256(f"{file}\0{edit.start}\0{old}\0{edit.new}".encode()).hexdigest()[:8]
            made = f"{file.rpartition('/')[2]}:{lines[0]}:{rule.name}:{name}"
            found[edit.start, edit.end, edit.new] = Mutant(
                made, file, rule.name, edit.start, edit.end, old, edit.new, lines
            )
    return list(found.values())


def drawn(mutants: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return `count` of the mutants: a file by the root of how many it has, in it the rule that was drawn least.

    Every file that has any is drawn before one comes a second time.
    """
    chance = random.Random(seed)
    left: dict[str, dict[str, list[Mutant]]] = defaultdict(lambda: defaultdict(list))
    for mutant in sorted(mutants, key=lambda one: one.id):
        left[mutant.file][mutant.rule].append(mutant)
    weight = {file: math.sqrt(sum(map(len, rules.values()))) for file, rules in left.items()}
    taken: Counter[str] = Counter()
    of_rule: Counter[str] = Counter()
    chosen: list[Mutant] = []
    while left and len(chosen) < count:
        file = min(sorted(left), key=lambda name: (taken[name] > 0, taken[name] / weight[name]))
        rules = left[file]
        least = min(of_rule[name] for name in rules)
        rule = chance.choice(sorted(name for name in rules if of_rule[name] == least))
        mutant = rules[rule].pop(chance.randrange(len(rules[rule])))
        chosen.append(_marked(mutant, seed))
        taken[file] += 1
        of_rule[rule] += 1
        if not rules[rule]:
            del rules[rule]
        if not rules:
            del left[file]
    return chosen


def _marked(mutant: Mutant, seed: int) -> Mutant:
    """Say of a mutant whether it is held back, and whether the whole suite runs: each by a draw of its own."""

    def one_of(many: int, what: str) -> bool:
        return int(hashlib.sha256(f"{seed} {what} {mutant.id}".encode()).hexdigest(), 16) % many == 0

    marked: Mapping[str, Any] = {**asdict(mutant), "held": one_of(HELD_BACK, "held"), "whole": one_of(WHOLE, "whole")}
    return Mutant(**marked)
