"""Makes a call that is answered wrongly smaller, one thing at a time, as long as it stays wrong."""

from __future__ import annotations

import math
import time
from typing import Any, Iterator

from device_suite.compare import Mismatch

from . import trial
from .description import undefined
from .transformation import Call, Transformation

SECONDS = 20.0


def shrunk(call: Call, transformation: Transformation, bench: Any, *, seconds: float = SECONDS) -> Call:
    """Return the smallest call found that is answered wrongly, within some seconds; the call itself at worst."""
    end = time.monotonic() + seconds
    best, again = call, True
    while again:
        again = False
        for smaller in _smaller(best):
            if time.monotonic() > end:
                return best
            if _is_wrong(smaller, transformation, bench):
                best, again = smaller, True
                break
    return best


def _smaller(call: Call) -> Iterator[Call]:
    """Yield calls with one thing plainer, what says most first: sizes, sides, layouts, values, dtype, options."""
    operator, levels = call.operator, call.levels
    every = dict(operator.factors)
    shape = call.row.shape(operator)
    for name, sides in sorted(operator.shapes.items(), key=lambda one: _extent(one[1])):
        if (0, 0) < _extent(sides) < _extent(shape):
            yield call.changed(size=name, shape=None)
    for place, side in enumerate(shape):
        for less in (1, side // 2, side - 1):
            if 0 < less < side:
                yield call.changed(shape=(*shape[:place], less, *shape[place + 1 :]))
    for name in sorted(every, key=lambda one: ("@layout" not in one, "@values" not in one, "@dtype" not in one)):
        if name not in ("@size", "@form") and levels[name] != every[name][0]:
            yield call.with_level(name, every[name][0])


def _extent(shape: tuple[int, ...]) -> tuple[int, int]:
    return math.prod(shape), len(shape)


def _is_wrong(call: Call, transformation: Transformation, bench: Any) -> bool:
    if undefined(call.row):
        return False
    try:
        trial.compared(call, trial.asked(call, transformation, bench), transformation, bench)
    except Mismatch:
        return True
    except Exception:  # refused, a gap, or what the smaller call cannot be
        return False
    return False
