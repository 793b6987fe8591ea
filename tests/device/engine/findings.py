"""Findings: a wrong case is shrunk while it stays wrong; those that shrink to the same call are one."""

from __future__ import annotations

import math
import time
import zlib
from typing import Any, Iterator

from . import script, trial
from .compare import Error, Mismatch
from .description import Operator, Row, undefined
from .transformation import Call, Transformation

_MOST_ELEMENTS, _MOST_SIDES = 1 << 20, 8


class Found(Mismatch):
    """A wrong answer, and what it comes down to.

    Attributes:
        brief: what is wrong, without the script.
        finding: `id`, `operator`, `transformation`, `dtype`; `levels` (those of the shrunk call that are not the
            operator's first ones), `size`, `shape` and `number`, of which `call_of` makes the call again; `script`: a
            program that shows it, or None; `no_script`: why there is none.
    """

    def __init__(self, brief: str, error: Error | None, finding: dict[str, Any]) -> None:
        super().__init__(f"{brief}\nfinding {finding['id']}\n{finding['script'] or finding['no_script']}", error)
        self.brief, self.finding = brief, finding


def found(wrong: trial.Wrong, transformation: Transformation, bench: Any, seconds: float) -> Found:
    """Return what a wrong call comes down to within some seconds; without any it is reported as it is."""
    small = shrunk(wrong.call, transformation, bench, seconds=seconds) if seconds > 0 else wrong.call
    levels = _odd_levels(small)
    if seconds > 0:
        mark = f"{zlib.crc32(repr((small.row.shape(small.operator), sorted(levels.items()))).encode()) % 65536:04x}"
    else:  # what was not shrunk is one finding, or each case would be one
        mark = "not_shrunk"
    facts = {
        "id": f"{small.operator.name}:{transformation.name}:{mark}",
        "operator": small.operator.name,
        "transformation": transformation.name,
        "dtype": str(small.levels["@dtype"]).replace("torch.", ""),
        "levels": levels,
        "size": small.levels["@size"],
        "shape": None if small.levels.get("@shape") is None else list(small.levels["@shape"]),
        "number": small.row.number,
    }
    return Found(str(wrong), wrong.error, {**facts, **script_of(small, transformation, bench)})


def call_of(finding: dict[str, Any], operator: Operator, transformation: Transformation) -> Call:
    """Return the call of a finding.

    Raises:
        KeyError, TypeError, ValueError: it is of another version, or damaged.
    """
    factors = [*operator.factors, *transformation.factors(operator)]
    levels = {name: every[0] for name, every in factors}
    for name, text in dict(finding["levels"]).items():
        levels[name] = {str(level): level for level in dict(factors)[name]}[text]
    levels["@size"] = finding["size"]
    if finding.get("shape") is not None:
        levels["@shape"] = tuple(map(int, finding["shape"]))
    call = Call(operator, Row("", int(finding["number"]), levels))
    if len(call.row.shape(operator)) > _MOST_SIDES:
        raise ValueError(f"{len(call.row.shape(operator))} sides")
    if math.prod(call.row.shape(operator)) > _MOST_ELEMENTS or min(call.row.shape(operator), default=0) < 0:
        raise ValueError(f"no shape: {finding['shape']}")
    return call


def script_of(call: Call, transformation: Transformation, bench: Any, named: str = "") -> dict[str, str | None]:
    """Return the script of a call, or why there is none; `named`: the device that it asks by itself."""
    named = named or ("mps" if bench.device.type == "cpu" else bench.device.type)
    try:
        text = script.script(call, transformation, bench, trial.reference_of(call, transformation, bench), named)
    except script.NoScript as why:
        return {"script": None, "no_script": f"no script: {why}"}
    except RuntimeError as raised:  # the device serves no more
        return {"script": None, "no_script": f"no script: {type(raised).__name__}: {str(raised).partition(chr(10))[0]}"}
    return {"script": text, "no_script": None}


def _odd_levels(call: Call) -> dict[str, str]:
    every = dict(call.operator.factors)
    left = {name: level for name, level in call.levels.items() if name not in ("@size", "@shape")}
    return {name: str(level) for name, level in left.items() if name not in every or level != every[name][0]}


def levels_of(call: Call) -> dict[str, str]:
    """Return the levels of a call in words, by factor: what a known issue may speak of.

    An option that is called as a factor is (`dtype`) has `=` behind its name.
    """
    named = {name: f"{name}=" if f"@{name}" in call.levels else name.lstrip("@") for name in call.levels}
    return {named[name]: str(level).replace("torch.", "") for name, level in call.levels.items()}


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
        trial.compared(call, trial.reference_of(call, transformation, bench), transformation, bench)
    except Mismatch:
        return True
    except Exception:  # refused, a gap, or what the smaller call cannot be
        return False
    return False
