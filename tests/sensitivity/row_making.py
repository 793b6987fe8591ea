"""The rows of one operator's conditions: pairs and threes that meet, each row kept only where it has one answer."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import torch

import suite_in_process  # noqa: F401 - the device suite comes into reach by it
from device_suite.compare import Mismatch
from device_suite.conditions import asking
from device_suite.conditions.listed import DIGITS, decode, encode, signature
from device_suite.runs import Bench
from device_suite.states import Refused
from engine import calls, reference
from engine.description import Operator, undefined
from free_choice import ChoosesOtherwise
from rounding import RoundsOtherwise
from row_classes import classes_of, triples_of

UNITS = 2.0
TRIES = 5
TRIES_OF_THREE = 2
_MOST_TRIES = 1000  # rows beside the pairs' that one operator tries
# Rows that an NVIDIA GPU, or the simulated MPS, answered otherwise than the CPU, and which no report calls its fault;
# and those that the CPU itself answers otherwise now and then (conv3d of one point in bfloat16).
OF_GPUS: dict[str, Any] = json.loads(Path(__file__).with_name("rows_of_gpus.json").read_text(encoding="utf-8"))
Pair = Any


def rows_of_gpus(spec: Operator) -> frozenset[str]:
    """Return the rows of an operator that are not asked since a GPU was right to answer them otherwise.

    Raises:
        ValueError: they are of another description.
    """
    stored = OF_GPUS.get(spec.name, {"factors": signature(spec), "rows": ""})
    if stored["factors"] != signature(spec):
        raise ValueError(f"rows_of_gpus.json: the rows of {spec.name} are of another description; state them anew")
    return frozenset(stored["rows"].split())


class Pairing:
    """The rows of one operator while they are made."""

    def __init__(self, spec: Operator) -> None:
        self.spec = spec
        self.levels = [len(levels) for _, levels in spec.factors]
        self.random = random.Random(spec.name)
        # Every pair, and every pair of the others in plain calls: most bugs live there.
        self.called = {0: spec.forms.index("call")} if "call" in spec.forms and len(spec.forms) > 1 else {}
        self.left = self._all(1 if self.called else 0)
        self.judged: dict[tuple[int, ...], str] = {}
        self.rows: list[tuple[int, ...]] = []
        self.refused: dict[str, int] = {}
        self.dropped = 0
        self.lost: dict[str, str] = {}
        self.of_gpus = rows_of_gpus(spec)
        self.untried = 0

    def _all(self, start: int) -> set[Pair]:
        return {
            ((i, a), (j, b))
            for i, j in itertools.combinations(range(start, len(self.levels)), 2)
            for a in range(self.levels[i])
            for b in range(self.levels[j])
        }

    def keep(self, rows: list[str]) -> None:
        """Begin with the rows of an earlier run that are still right."""
        for digits in rows:
            row = tuple(DIGITS.index(one) for one in digits)
            self.judged[row] = self._verdict(row)
            if not self.judged[row]:
                self.rows.append(row)
                if not self.called or row[0] == self.called[0]:
                    self.left -= set(_pairs(row))
            else:
                self.lost[digits] = self.judged[row]

    def make(self, *, cover: bool = True) -> None:
        """Cover every pair that can be covered."""
        if not cover:
            return
        self._cover()
        if self.called:
            self.called, self.left = {}, self._all(0)
            for row in self.rows:
                self.left -= set(_pairs(row))
            self._cover()
        self._cover_threes()

    def _cover_threes(self) -> None:
        """Add rows until every three classes meet that can: what no row has as a pair is not asked for as three."""
        classes = classes_of(self.spec)
        met = {pair for row in self.rows for pair in itertools.combinations(_classed(classes, row), 2)}
        left = {
            three
            for places in triples_of(self.spec)
            for three in itertools.product(*(sorted({(place, one) for one in classes[place]}) for place in places))
            if all(pair in met for pair in itertools.combinations(three, 2))
        }
        for row in self.rows:
            left -= set(itertools.combinations(_classed(classes, row), 3))
        tried = 0
        for three in self.random.sample(sorted(left), len(left)):
            if three in left and tried >= _MOST_TRIES:
                self.untried += 1
            for _ in range(TRIES_OF_THREE):
                if three not in left or tried >= _MOST_TRIES:
                    break
                row = self._around(three, classes, left)
                verdict = self.judged.get(row)
                if verdict is None:
                    tried += 1
                    verdict = self.judged[row] = self._verdict(row)
                if not verdict:
                    self.rows.append(row)
                    left -= set(itertools.combinations(_classed(classes, row), 3))
            left.discard(three)

    def _around(self, three: Any, classes: list[list[int]], left: set[Any]) -> tuple[int, ...]:
        """Return a row with three classes: the rest as some row that was kept has it, or what covers most."""
        near = self.random.choice(self.rows)
        row = list(near)
        fixed = dict(three)
        for place, one in fixed.items():
            row[place] = self.random.choice([level for level, found in enumerate(classes[place]) if found == one])
        for place in self.random.sample(range(len(row)), len(row)):
            if place in fixed or self.random.random() < 0.5:
                continue
            gains = []
            for level, one in enumerate(classes[place]):
                others = [(other, classes[other][row[other]]) for other in range(len(row)) if other != place]
                gains.append(
                    (
                        sum(tuple(sorted((*pair, (place, one)))) in left for pair in itertools.combinations(others, 2)),
                        self.random.random(),
                        level,
                    )
                )
            row[place] = max(gains)[2]
        return tuple(row)

    def _cover(self) -> None:
        while self.left:
            pair = min(self.left)
            if not any(self._try(pair, plain) for plain in (False, True, False, True, False)[:TRIES]):
                self.left.discard(pair)
                self.dropped += 1

    def _try(self, pair: Pair, plain: bool) -> bool:
        row = self._filled(pair, plain)
        verdict = self.judged.get(row)
        if verdict is None:
            verdict = self.judged[row] = self._verdict(row)
        if verdict:
            self.refused[verdict] = self.refused.get(verdict, 0) + 1
            return False
        self.rows.append(row)
        self.left -= set(_pairs(row))
        return True

    def _filled(self, pair: Pair, plain: bool) -> tuple[int, ...]:
        """Return a row with the pair; the rest plain, or what covers most that is left."""
        row = [-1] * len(self.levels)
        for place, level in (*self.called.items(), *pair):
            row[place] = level
        open_places = [place for place, level in enumerate(row) if level < 0]
        self.random.shuffle(open_places)
        for place in open_places:
            if plain and self.random.random() < 0.7:
                row[place] = 0
                continue
            gains = [
                (
                    sum(
                        _sorted((place, level), (other, row[other])) in self.left
                        for other in range(len(row))
                        if row[other] >= 0
                    ),
                    self.random.random(),
                    level,
                )
                for level in range(self.levels[place])
            ]
            row[place] = max(gains)[2]
        return tuple(row)

    def _verdict(self, row: tuple[int, ...]) -> str:
        """Return why a row cannot be asked, or an empty text."""
        found = decode(self.spec, encode(self.spec, row))
        if undefined(found):
            return "undefined: " + undefined(found)
        if found.digits in self.of_gpus:
            return "free: a GPU answers otherwise"
        for kind, around in (
            ("healthy", None),
            ("rounded", lambda: RoundsOtherwise(UNITS)),
            ("free", ChoosesOtherwise),
        ):
            bench = Bench(torch.device("cpu"), around=around)
            try:
                asking.ask_rows(self.spec, [found], bench)
            except Refused as refused:
                return "refused: " + str(refused)[:110]
            except Mismatch as wrong:
                return f"{kind}: " + str(wrong).split("\n")[0].partition(": ")[2][:70]
            except Exception as raised:
                return f"raised: {type(raised).__name__}: {raised}"[:120]
        return _infinite_complex(self.spec, found) or _dense_differs(self.spec, found)


def _infinite_complex(spec: Operator, row: Any) -> str:
    """Say whether a complex answer is infinite or NaN: which of its parts is, is open."""
    for one in reference.truth_of(spec, row, Bench(torch.device("cpu"))).answers:
        complex_ = isinstance(one, torch.Tensor) and one.dtype.is_complex
        if complex_ and not bool(torch.view_as_real(one.resolve_conj().to(torch.complex64)).isfinite().all()):
            return "undefined: which part of a complex number is not finite"
    return ""


def _dense_differs(spec: Operator, row: Any) -> str:
    """Say whether the reference itself answers otherwise where every operand is dense: then it is no reference."""
    bench = Bench(torch.device("cpu"))
    truth = reference.truth_of(spec, row, bench)
    healthy = calls.cut
    calls.cut = lambda placed: _dense(healthy(placed))
    try:
        dense = reference.truth_of(spec, row, bench) if row.levels["@form"] in ("call", "grad") else truth
    finally:
        calls.cut = healthy
    for one, two in zip(truth.answers, dense.answers):
        if isinstance(one, torch.Tensor) and not torch.allclose(one, two, rtol=1e-6, atol=1e-6, equal_nan=True):
            return "reference: it depends on the layout"
    return ""


def _dense(value: Any) -> Any:
    return value.contiguous().clone(memory_format=torch.contiguous_format) if isinstance(value, torch.Tensor) else value


def _sorted(one: Any, two: Any) -> Pair:
    return (one, two) if one[0] < two[0] else (two, one)


def _classed(classes: list[list[int]], row: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return (place, class) of each level of a row."""
    return [(place, classes[place][level]) for place, level in enumerate(row)]


def _pairs(row: tuple[int, ...]) -> Any:
    return (((i, row[i]), (j, row[j])) for i, j in itertools.combinations(range(len(row)), 2))
