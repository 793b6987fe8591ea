"""Cases: which calls are drawn, and in which order. A case is its id: operator, transformation and seed.

The order is that of worth. First comes each operator in its most common form: the first level of each factor. Then,
again and again, the operator whose next draw meets the largest share of levels, and of pairs of them, that no earlier
case has met, with the graphs that it compiles held against it. Operators of a small share come late in both.
The order does not depend on how many cases are taken: a smaller budget takes the beginning of a larger one.
"""

from __future__ import annotations

import heapq
import itertools
import random
import zlib
from dataclasses import dataclass
from typing import Any, Callable, Iterator, List, Tuple

from . import keys
from .description import Operator, Row, undefined
from .transformation import Call, Transformation

COMMON = "common"
# How many draws are compared for one case, and how many are tried until one is allowed.
CANDIDATES = 4
_TRIES = 12
# How often a factor that a transformation is not about has its first level.
_FIRST = 0.15
# How much graphs count beside pairs: with 1 the gradients, of four graphs each, would come last of all.
_KEY_WORTH = 0.35
# More are not drawn for one process: it would draw for a minute.
MOST_CASES = 400_000
# So many draws one after the other of which none is wanted: of `exp:*:1?` there are few.
_MOST_IN_VAIN = 20_000
# Seeds of one `--seed` are those of another, this far on.
_APART = 1_000_000


@dataclass(frozen=True)
class Case:
    """One case; `str()` of it is its id.

    >>> Case.of("conv2d:gradient:17")
    Case(operator='conv2d', transformation='gradient', seed=17)
    """

    operator: str
    transformation: str
    seed: int

    def __str__(self) -> str:
        return f"{self.operator}:{self.transformation}:{self.seed}"

    @classmethod
    def of(cls, text: str) -> Case:
        """Return the case of an id; raise ValueError where a text is none."""
        operator, _, rest = text.partition(":")
        transformation, _, seed = rest.partition(":")
        if not (operator and transformation and seed.isdigit()):
            raise ValueError(f"a case is OPERATOR:TRANSFORMATION:SEED, not {text}")
        return cls(operator, transformation, int(seed))


def draw(case: Case, operator: Operator, transformation: Transformation, attempt: int = 0) -> Call | None:
    """Return the call of a case, None where it has none. The id and the attempt decide it, on any machine."""
    rng = random.Random(zlib.crc32(f"{case}:{attempt}".encode()))
    form = transformation.forms_of(operator)
    factors = [(name, form if name == "@form" else levels) for name, levels in operator.factors]
    factors += transformation.factors(operator)
    if case.seed == 0 and attempt == 0:
        return Call(operator, Row(str(case), 0, {name: levels[0] for name, levels in factors}))
    for _ in range(_TRIES):
        levels = {name: _level(rng, name, every, transformation) for name, every in factors}
        row = Row(f"{case}:{attempt}", rng.randrange(9973), levels)
        if not undefined(row):
            return Call(operator, row)
    return None


def _level(rng: random.Random, name: str, levels: tuple[Any, ...], transformation: Transformation) -> Any:
    if len(levels) == 1 or name == "@form":
        return levels[0] if len(levels) == 1 else rng.choice(levels)
    if any(name.startswith(start) for start in transformation.focus):
        return rng.choice(levels[1:])
    return levels[0] if name[0] == "@" and rng.random() < _FIRST else rng.choice(levels)


Facts = Tuple[List[Any], List[Any]]


@dataclass(frozen=True)
class Drawn:
    """A case in the order of worth, and how many graphs it compiles that no earlier one has."""

    case: Case
    new_keys: float


class Sampler:
    """Draws cases in the order of worth, without end.

    Args:
        operators, transformations: all there are, by name.
        seed: another one draws others.
    """

    def __init__(
        self, operators: dict[str, Operator], transformations: dict[str, Transformation], seed: int = 0
    ) -> None:
        self.operators, self.transformations = operators, transformations
        self._random = random.Random(seed)
        self._base = seed * _APART
        self._keys: set[Any] = set()
        self._met: dict[str, set[Any]] = {name: set() for name in operators}
        self._next: dict[tuple[str, str], Iterator[int]] = {}
        self._fitting = {
            name: [one for one in transformations.values() if one.name != COMMON and one.applies(operator)]
            for name, operator in operators.items()
        }

    def __iter__(self) -> Iterator[Drawn]:
        waiting: list[Any] = []
        for turn, (name, operator) in enumerate(sorted(self.operators.items(), key=lambda one: -one[1].share)):
            case = Case(name, COMMON, 0)
            call = draw(case, operator, self.transformations[COMMON])
            if call is not None:
                yield self._taken(case, call, _facts(case, call))
            if self._fitting[name]:
                waiting.append(self._best(name, turn))
        heapq.heapify(waiting)
        turn = len(waiting)
        while waiting:
            _, _, name, found = heapq.heappop(waiting)
            if found is not None:
                yield self._taken(*found)
            turn += 1
            heapq.heappush(waiting, self._best(name, turn))

    def _best(self, name: str, turn: int) -> Any:
        """Return (worth, turn, operator, what to take): of some draws the one that meets most that is new."""
        operator, met, best, most = self.operators[name], self._met[name], None, -1.0
        fitting = self._fitting[name]
        for transformation in self._random.choices(fitting, [one.share for one in fitting], k=CANDIDATES):
            place = name, transformation.name
            case = Case(*place, self._base + next(self._next.setdefault(place, itertools.count(1))))
            call = draw(case, operator, transformation)
            if call is None:
                continue
            facts = _facts(case, call)
            fresh = sum(sum(one not in met for one in some) / len(some) for some in facts)
            worth = operator.share * fresh / transformation.graphs**_KEY_WORTH
            if worth > most:
                most, best = worth, (case, call, facts)
        return -most, turn, name, best

    def _taken(self, case: Case, call: Call, facts: Facts) -> Drawn:
        for some in facts:
            self._met[case.operator].update(some)
        key = keys.key_of(case, call)
        fresh = 0.0 if key in self._keys else self.transformations[case.transformation].graphs
        self._keys.add(key)
        return Drawn(case, fresh)


def _facts(case: Case, call: Call) -> Facts:
    """Return the levels of a case, and every two that meet in it; its transformation is a level too."""
    levels = [("", case.transformation), *((name, str(level)) for name, level in call.levels.items())]
    return levels, list(itertools.combinations(levels, 2))


def chosen(
    sampler: Sampler, *, cases: int, most_keys: float, after: str = "", wanted: Callable[[str], bool] | None = None
) -> list[Drawn]:
    """Return the first cases in the order of worth, as many as two limits allow.

    Args:
        after: those behind this one.
        wanted: says of an id whether it is one of those.
    """
    found: list[Drawn] = []
    compiled, in_vain = 0.0, 0
    is_behind = not after
    for drawn in itertools.islice(sampler, MOST_CASES):
        if len(found) >= cases or compiled + drawn.new_keys > most_keys or in_vain > _MOST_IN_VAIN:
            break
        if wanted is not None and not wanted(str(drawn.case)):
            in_vain += 1
            continue
        in_vain = 0
        if is_behind:
            compiled += drawn.new_keys
            found.append(drawn)
        is_behind = is_behind or str(drawn.case) == after
    return found
