"""A second call of each overload whose first one says little: sides of one, equal numbers, no elements, no weights.

The rules change one call of each overload. In a call of a single element no layout, no place and no value differs from
the next; of an operand that is left out nothing can be asked.
"""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import Any, Iterator

import torch

from device_suite.overloads.asking import attempt_answers, stored_calls
from device_suite.overloads.described import changed, dtype_of, overload, shape_of, tensor_text, texts
from device_suite.rules.changes import ChangedCall
from device_suite.runs import Bench
from overload_calls import is_drawn
from rule_samples import in_float32

# Calls that are written by hand, with every operand that may be left out.
SEEDS = Path(__file__).parent / "fuller_seeds.json"
# What has no more to say, or no one answer when it is given more.
_LEFT_OUT = """max_unpool2d.default max_unpool3d.default _pdist_backward.default _embedding_bag_dense_backward.default
    is_pinned.default is_nonzero.default narrow.default is_same_size.default as_strided.default empty_like.default
    new_empty_strided.default detach.default _assert_async.default _assert_async.msg isnan.default expand.default
    squeeze.dims logdet.default _weight_norm_interface_backward.default searchsorted.Scalar linspace.Scalar_Tensor
    linspace.Tensor_Scalar linspace.Tensor_Tensor
    logspace.Scalar_Tensor logspace.Tensor_Scalar logspace.Tensor_Tensor"""
LEFT_OUT = frozenset(_LEFT_OUT.split())
_MOST = 2_000
_ENOUGH, _FEW = 3, 8


def faults(func: Any, call: Any) -> int:
    """Return how much a call leaves unsaid: the fewer, the more a rule can change in it."""
    every = texts(call)
    count = sum(_faults_of(text) for text in every)
    if every:
        count += 1 in shape_of(every[0])
        count += not any(text.startswith("@float32 ") for text in every)
    return count + _left_out(func, call)


def _faults_of(text: str) -> int:
    _, _, _, low, high = text.split(" ")
    shape = shape_of(text)
    alike = dtype_of(text).is_floating_point and low == high and math.prod(shape) > 1
    return alike + (bool(shape) and math.prod(shape) < _ENOUGH)


def _left_out(func: Any, call: Any) -> int:
    """Count the tensors that could be given and are not."""
    found = 0
    for place, one in enumerate(func._schema.arguments):
        given = call[0][place] if place < len(call[0]) and not one.kwarg_only else call[1].get(one.name)
        found += given is None and str(one.type) == "Optional[Tensor]"
    return found


def fuller_calls(name: str, calls: list[Any]) -> list[Any]:
    """Return what an overload is asked besides its own calls: calls by hand, or one that says more than these."""
    seeds = [one for one in _seeds().get(name, ()) if one not in calls]
    if name in _seeds() or not is_plain(name) or name in LEFT_OUT:
        return seeds
    call = fuller_call(name, calls)
    return [] if call is None else [call]


@functools.lru_cache(maxsize=None)
def _seeds() -> dict[str, Any]:
    return json.loads(SEEDS.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def fuller_call(name: str, calls: list[Any]) -> Any:
    """Return a call of an overload that says more than each of its own, which the CPU answers; None if none does."""
    func = overload(name)
    if func is None or is_drawn(func):
        return None
    least = min(faults(func, one) for one in calls)
    if not least:
        return None
    chosen = [in_float32(func, one) for one in stored_calls().get(name, ())]
    chosen += [one for call in calls for one in _mended(func, call)]
    dimensions = [len(shape_of(texts(one)[0])) for one in calls if texts(one)]
    chosen = [one for one in chosen if faults(func, one) < least and _size(one) <= _MOST]
    chosen = [one for one in chosen if shape_of(texts(one)[0]) or not any(dimensions)]
    for one in sorted(chosen, key=lambda one: (faults(func, one), _order(one))):
        if _is_answered(func, one):
            return one
    return None


def _order(call: Any) -> Any:
    """Sort first what has a few dimensions, float32 and no layout of its own (the rules lay it otherwise)."""
    every = texts(call)
    rank = len(shape_of(every[0])) if every else 0
    laid = sum(" dense " not in text for text in every)
    return not 2 <= rank <= 4, "float32" not in "".join(every[:1]), laid, _size(call) < _FEW, -len(every), _size(call)


def _size(call: Any) -> int:
    return max((math.prod(shape_of(text)) for text in texts(call)), default=0)


def _is_answered(func: Any, call: Any) -> bool:
    answers = attempt_answers(func, ChangedCall(func, call, []), Bench(torch.device("cpu")).same())
    if isinstance(answers, Exception):
        return False
    tensors = [one for one, _ in answers if isinstance(one, torch.Tensor)]
    if any(one.layout != torch.strided for one in tensors):
        return False
    return all(bool(one.isfinite().all()) for one in tensors if one.is_floating_point())


def _mended(func: Any, call: Any) -> Iterator[Any]:
    """Yield the call with other sides and other numbers: leading sides of one gone, ones and nothing made longer."""
    for strip in (True, False):
        start = changed(call, _stripped) if strip else call
        for one in (2, 3, 1):
            for none in (4, 3):
                sides = ChangedCall(func, start, [["grown", 1, one], ["grown", 0, none]]).call
                yield from (changed(changed(sides, _spread), _fractions), changed(sides, _spread), sides)
                yield changed(sides, _fractions)


def _stripped(text: str) -> str:
    dtype, _, layout, low, high = text.split(" ")
    shape = shape_of(text)
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    return tensor_text(dtype[1:], shape, layout, float(low), float(high))


def _spread(text: str) -> str:
    """Give an operand of equal numbers different ones."""
    dtype, _, layout, low, high = text.split(" ")
    if not dtype_of(text).is_floating_point or low != high:
        return text
    ends = (0.5 * float(low), 1.5 * float(low)) if float(low) else (-1.0, 1.0)
    return tensor_text(dtype[1:], shape_of(text), layout, min(ends), max(ends))


def _fractions(text: str) -> str:
    """Make float32 of an operand, with numbers of usual size."""
    _, _, layout, low, high = text.split(" ")
    ends = (max(float(low), -4.0), min(float(high), 4.0))
    return tensor_text("float32", shape_of(text), layout, *(ends if ends[0] < ends[1] else (0.5, 2.0)))


@functools.lru_cache(maxsize=None)
def is_plain(name: str) -> bool:
    """Say whether an overload is asked by itself: not in place, no `out=`, no list of many tensors."""
    func = overload(name)
    return func is not None and not func._schema.is_mutable and not name.startswith("_foreach")
