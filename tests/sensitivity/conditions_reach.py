"""Which conditions of an overload could be reached: kept calls are asked again on the CPU with one thing changed.

Reachable is what the schema allows, the CPU accepts, and MPS has: its registrations and upstream's own lists of dtypes
that do not work there (mps_support.json, of torch 2.15.0).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import torch

import suite_in_process  # noqa: F401 - the device suite comes into reach by it
from call_changes import change_call, describe
from conditions import DTYPES, LAYOUTS, PLACES, RANKS, Facts, map_values, sizes_of, tensors_of
from device_suite.overloads.asking import attempt_answers
from device_suite.overloads.described import Drawn
from device_suite.runs import Bench

_SUPPORT = json.loads((Path(__file__).parent / "mps_support.json").read_text(encoding="utf-8"))
KERNELS = frozenset(_SUPPORT["kernel"].split())
COMPOSITES = frozenset(_SUPPORT["composite"].split())
_MOST_MEMORY = 12 << 30  # of addresses, ours among them: what takes more is out of reach
_HOMES = ("", "nn.functional.", "linalg.", "special.", "fft.")
_NEW_SIDES = {"0": 0, "1": 1, "odd": 9, "prime": 7, "x4": 4, "x16": 16, "x32": 32, ">1024": 1031, ">65535": 65543}


@dataclass(frozen=True)
class Reach:
    """The reachable conditions of one overload, in the words of Facts."""

    dtypes: frozenset[tuple[int, str]]
    layouts: frozenset[tuple[int, str]]
    sizes: frozenset[str]
    arguments: frozenset[tuple[str, str]]


def reach_of(func: Any, facts: Facts) -> Reach:
    """Return what the kept calls reach with one thing changed; what the suite does reach is reachable."""
    # What the suite has met is reachable: only what is left is asked.
    dtypes, layouts, sizes = set(facts.dtypes), set(facts.layouts), set(facts.sizes)
    for args, kwargs in facts.samples.values():
        dtypes |= _other_dtypes(func, args, kwargs, dtypes)
        layouts |= _other_layouts(func, args, kwargs, layouts)
        sizes |= _other_sizes(func, args, kwargs, sizes)
    dtypes = {(number, name) for number, name in dtypes if has_dtype(func, name)}
    return Reach(
        frozenset(dtypes),
        frozenset(one for one in layouts if one[1] in LAYOUTS),
        frozenset(sizes),
        frozenset(one for one in schema_arguments(func) if one in facts.arguments or not _refused(func, facts, one)),
    )


def _refused(func: Any, facts: Facts, argument: tuple[str, str]) -> bool:
    """Say whether the CPU refuses an argument in every kept call that can have it: LU without pivoting, say."""
    cpu, asked = Bench(torch.device("cpu")), False
    for sample in facts.samples.values():
        call = change_call(func, describe(sample), ("arguments", argument))
        if call is not None:
            asked = True
            if not isinstance(attempt_answers(func, Drawn(call, 0), cpu.same()), Exception):
                return False
    return asked


def reach_in_a_child(func: Any, facts: Facts) -> Reach | None:
    """Return reach_of, asked in a forked process: an internal operator may crash on sizes that it never checks."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
        try:
            sender.send(reach_of(func, facts))
        finally:
            os._exit(0)
    sender.close()
    try:
        found: Reach | None = receiver.recv() if receiver.poll(60) else None
    except EOFError:
        found = None
    os.waitpid(child, 0)
    return found


def runs_on_mps(func: Any) -> bool:
    """Say whether a dense MPS tensor meets a kernel or one body for all devices."""
    return name_of(func) in KERNELS or name_of(func) in COMPOSITES


def name_of(func: Any) -> str:
    """Return `add.Tensor` of aten.add.Tensor."""
    return str(func).removeprefix("aten.")


def has_dtype(func: Any, dtype: str) -> bool:
    """Say whether upstream expects the dtype to work on MPS."""
    base = name_of(func).split(".")[0].rstrip("_")
    bare = base.removeprefix("linalg_").removeprefix("special_").removeprefix("fft_")
    for name in {home + one for home in _HOMES for one in (base, bare)}:
        listed = _SUPPORT["unsupported"].get(name, ())
        if listed is None or dtype in listed or (dtype == "complex64" and name in _SUPPORT["without_complex"]):
            return False
    return dtype in DTYPES


def schema_arguments(func: Any) -> set[tuple[str, str]]:
    """Return the classes of value that an argument with a default can have by its type."""
    found = set()
    for argument in func._schema.arguments:
        if argument.has_default_value() and argument.name not in PLACES:
            found.add((argument.name, "default"))
            kind = str(argument.type)
            other = "given" if argument.default_value is None else "other"
            found.add((argument.name, str(not argument.default_value).lower() if kind == "bool" else other))
    return found


def _accepted(func: Any, args: Any, kwargs: Any) -> bool:
    try:
        func(*args, **kwargs)
    except Exception:
        return False
    return True


def _changed(args: Any, kwargs: Any, change: Callable[[int, torch.Tensor], torch.Tensor]) -> Any:
    """Return a copy of a call with each operand changed by its number."""
    count = iter(range(1000))
    return map_values((args, kwargs), lambda x: change(next(count), x.clone()))


def _other_dtypes(func: Any, args: Any, kwargs: Any, met: set[tuple[int, str]]) -> set[tuple[int, str]]:
    found = set()
    tensors = list(tensors_of((args, kwargs)))
    for group in {x.dtype for x in tensors}:
        numbers = [number for number, x in enumerate(tensors[:4]) if x.dtype == group]
        for name, dtype in DTYPES.items():
            if all((number, name) in met for number in numbers):
                continue
            call = _changed(args, kwargs, lambda _, x, g=group, d=dtype: x.to(d) if x.dtype == g else x)
            if _accepted(func, *call):
                found |= {(number, name) for number in numbers}
    return found


def _other_layouts(func: Any, args: Any, kwargs: Any, met: set[tuple[int, str]]) -> set[tuple[int, str]]:
    found = set()
    for wanted in range(min(4, len(list(tensors_of((args, kwargs)))))):
        for name, change in _CUTS.items():
            if (wanted, name) in met:
                continue
            try:
                call = _changed(args, kwargs, lambda n, x, w=wanted, c=change: c(x) if n == w else x)
            except (RuntimeError, IndexError):
                continue
            if list(tensors_of(call))[wanted].numel() and _accepted(func, *call):
                found.add((wanted, name))
    return found | _together(func, args, kwargs, met)


def _together(func: Any, args: Any, kwargs: Any, met: set[tuple[int, str]]) -> set[tuple[int, str]]:
    """Ask for operands that are empty or without dimensions, all at once: one alone seldom fits the others."""
    found = set()
    for name, change in {"no_dimensions": _scalar, "empty": lambda x: x[:0]}.items():
        if all((number, name) in met for number in range(min(4, _count((args, kwargs))))):
            continue
        for first_only in (False, True):
            try:
                call = _changed(args, kwargs, lambda n, x, c=change, f=first_only: x if f and n else c(x))
            except (RuntimeError, IndexError):
                continue
            if _accepted(func, *call):
                found |= {(number, name) for number in range(1 if first_only else min(4, _count(call)))}
    return found


def _count(call: Any) -> int:
    return len(list(tensors_of(call)))


def _scalar(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1)[0].clone()


def _step(x: torch.Tensor) -> torch.Tensor:
    wide = torch.zeros((*x.shape[:-1], 2 * x.shape[-1]), dtype=x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


def _offset(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[:1], x])[1:]


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 4 or min(x.shape[1:]) < 2:
        raise IndexError
    return x.contiguous(memory_format=torch.channels_last)


def _transposed(x: torch.Tensor) -> torch.Tensor:
    if x.dim() < 2 or min(x.shape[-2:]) < 2:
        raise IndexError
    return x.transpose(-1, -2).contiguous().transpose(-1, -2)


def _expanded(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] < 2:
        raise IndexError
    return x[:1].expand(x.shape)


_CUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dense": lambda x: x[None][0],
    "transposed": _transposed,
    "offset": _offset,
    "step": _step,
    "expanded": _expanded,
    "channels_last": _channels_last,
}


def _other_sizes(func: Any, args: Any, kwargs: Any, met: set[str]) -> set[str]:
    """Put another length in the place of one side wherever it stands, and add or drop leading dimensions."""
    tensors = list(tensors_of((args, kwargs)))
    if not tensors or tensors[0].dtype not in (torch.float32, torch.int64, torch.bool):
        return set()
    found = set()
    for side in set(tensors[0].shape):
        for name, new in _NEW_SIDES.items():
            if name not in met | found and (name != ">65535" or len(tensors) < 4):
                found |= _asked(func, *_resized(args, kwargs, side, new))
    for rank in RANKS:
        if f"rank {rank}" in met | found:
            continue
        found |= _asked(func, *_changed(args, kwargs, lambda _, x, r=rank: _of_rank(x, r - tensors[0].dim())))
    return found


def _asked(func: Any, args: Any, kwargs: Any) -> set[str]:
    return sizes_of(next(tensors_of((args, kwargs)))) if _accepted(func, args, kwargs) else set()


def _resized(args: Any, kwargs: Any, old: int, new: int) -> Any:
    def resized(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            index = torch.zeros((), dtype=torch.int64)
            for dim, side in enumerate(value.shape):
                if side == old and value.numel():
                    index = torch.arange(new) % side
                    value = value.index_select(dim, index)
            return value
        if isinstance(value, (tuple, list)):
            if len(value) > 1 and all(isinstance(one, int) and not isinstance(one, bool) for one in value):
                return type(value)(new if one == old else one for one in value)
            return type(value)(resized(one) for one in value)
        return {key: resized(one) for key, one in value.items()} if isinstance(value, dict) else value

    whole = 1
    for side in next(tensors_of((args, kwargs))).shape:
        whole *= new if side == old else side
    return resized((args, kwargs)) if whole < 1 << 17 else (args, {**kwargs, "out of reach": 0})


def _of_rank(x: torch.Tensor, more: int) -> torch.Tensor:
    for _ in range(max(more, 0)):
        x = x.unsqueeze(0)
    for _ in range(min(max(-more, 0), x.dim())):
        x = x.select(0, 0) if x.shape[0] else x
    return x
