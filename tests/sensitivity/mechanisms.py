"""Mechanisms by which a back end answers wrongly, as data: where each may be, what calls meet it, what goes wrong.

Each belongs to any overload whose schema has a place for it. None of them knows the suite. `provoke` makes a call that
meets the condition of another call; it serves the draw (fresh_faults.py) alone, never the suite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Tuple

import torch
from torch.utils._pytree import tree_flatten, tree_map

from misreading import in_storage_order, is_dense, without_offset

Call = Tuple[Tuple[Any, ...], Dict[str, Any]]
Detail = Any
ELEMENTS = 1 << 16
_DIMENSIONS = ("dim", "axis", "dims", "dim0", "dim1", "dim2")


@dataclass(frozen=True)
class Mechanism:
    """One way to be wrong.

    Attributes:
        places: of a schema, the details that it may have (an operand, an argument, a dtype); none: it does not fit.
        meets: whether a call meets the condition. misread: the call that is made instead; or
        spoil: what becomes of one tensor of the answer; or neither: the call is refused.
        provoke: a call that meets the condition, made of one that need not; None where there is none.
        remembers: it needs the calls before.
    """

    name: str
    places: Callable[[Any], Iterable[Detail]]
    meets: Callable[[Any, Call, Detail], bool]
    provoke: Callable[[Any, Call, Detail], Call | None]
    misread: Callable[[Any, Call, Detail], Call] | None = None
    spoil: Callable[[torch.Tensor], torch.Tensor] | None = None
    remembers: str = ""
    loses: bool = False


def is_written(argument: Any) -> bool:
    """Say whether an operator writes to an argument."""
    return argument.alias_info is not None and bool(argument.alias_info.is_write)


def written(func: Any, call: Call) -> list[torch.Tensor]:
    """Return the tensors that a call writes to."""
    values = [value_of(func, call, one.name) for one in func._schema.arguments if is_written(one)]
    return tensors(values)


def tensors(value: Any) -> list[torch.Tensor]:
    """Return the tensors of nested values that have numbers in memory."""
    leaves = tree_flatten(value)[0]
    return [one for one in leaves if isinstance(one, torch.Tensor) and one.layout == torch.strided]


def value_of(func: Any, call: Call, name: str) -> Any:
    """Return an argument of a call, or its default."""
    args, kwargs = call
    for place, argument in enumerate(func._schema.arguments):
        if argument.name == name:
            return args[place] if place < len(args) else kwargs.get(name, argument.default_value)
    return None


def with_value(func: Any, call: Call, name: str, value: Any) -> Call:
    """Return a call with another argument."""
    args, kwargs = call
    for place, argument in enumerate(func._schema.arguments):
        if argument.name == name and place < len(args):
            return (*args[:place], value, *args[place + 1 :]), kwargs
    return args, {**kwargs, name: value}


def _operands(schema: Any) -> list[str]:
    """Return the names of the tensors that are read alone."""
    return [one.name for one in schema.arguments if str(one.type) in _TENSORS and not is_written(one)]


def _destinations(schema: Any) -> list[str]:
    return [one.name for one in schema.arguments if str(one.type) in _TENSORS and is_written(one)]


_TENSORS = ("Tensor", "Optional[Tensor]", "Tensor?")


def _optional(schema: Any) -> list[str]:
    """Return the names of the arguments that have a default and are no tensors."""
    kinds = ("int", "bool", "float", "number", "Scalar", "SymInt", "List[int]", "List[SymInt]")
    return [one.name for one in schema.arguments if one.has_default_value() and str(one.type) in kinds]


def _scalars(schema: Any) -> list[str]:
    return [one.name for one in schema.arguments if str(one.type) in ("number", "Scalar", "float")]


def _named_dimensions(schema: Any) -> list[str]:
    kinds = ("int", "SymInt", "List[int]", "Optional[List[int]]", "Optional[int]")
    return [one.name for one in schema.arguments if one.name in _DIMENSIONS and str(one.type) in kinds]


def _operand(func: Any, call: Call, name: str) -> torch.Tensor | None:
    value = value_of(func, call, name)
    return value if isinstance(value, torch.Tensor) and value.layout == torch.strided else None


def _of(condition: Callable[[torch.Tensor], bool]) -> Callable[[Any, Call, Detail], bool]:
    """Make a condition of a call of one of its operand."""

    def meets(func: Any, call: Call, name: Detail) -> bool:
        x = _operand(func, call, name)
        return x is not None and condition(x)

    return meets


def _reading(read: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any, Call, Detail], Call]:
    def misread(func: Any, call: Call, name: Detail) -> Call:
        return with_value(func, call, name, read(value_of(func, call, name)))

    return misread


def _made(make: Callable[[torch.Tensor], torch.Tensor | None]) -> Callable[[Any, Call, Detail], Call | None]:
    """Make a provocation of what changes one operand."""

    def provoke(func: Any, call: Call, name: Detail) -> Call | None:
        x = _operand(func, call, name)
        y = None if x is None else make(x)
        return None if y is None else with_value(func, call, name, y)

    return provoke


def _all(make: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any, Call, Detail], Call | None]:
    """Make a provocation of what changes every tensor alike."""

    def provoke(func: Any, call: Call, detail: Detail) -> Call | None:
        changed: Call = tree_map(lambda x: make(x) if isinstance(x, torch.Tensor) else x, call)
        return changed

    return provoke


# How tensors lie and are cut.


def _permuted(x: torch.Tensor) -> torch.Tensor | None:
    if x.dim() < 2 or x.numel() < 2:
        return None
    return x.transpose(0, -1).contiguous().transpose(0, -1)


def _stepped(x: torch.Tensor) -> torch.Tensor | None:
    if not x.dim() or x.numel() < 2:
        return None
    return torch.stack([x, x.flip(-1)], -1).select(-1, 0)


def _offset(x: torch.Tensor) -> torch.Tensor | None:
    base = torch.cat([x.reshape(-1)[:3].flip(0), x.reshape(-1)])
    return base[base.numel() - x.numel() :].view(x.shape) if x.numel() else None


def _expanded(x: torch.Tensor) -> torch.Tensor | None:
    return x[:1].expand_as(x) if x.dim() and x.shape[0] > 1 else None


def _channels_last(x: torch.Tensor) -> torch.Tensor | None:
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else None


def _without_elements(x: torch.Tensor) -> torch.Tensor | None:
    return x[:0] if x.dim() else None


def _tiled(dim: int, least: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return what repeats a tensor along a dimension until it is longer than `least`, by one."""

    def tile(x: torch.Tensor) -> torch.Tensor:
        if not x.dim() or not x.numel():
            return x
        side = x.shape[dim]
        times = [1] * x.dim()
        times[dim] = least // side + 2
        return x.repeat(times).narrow(dim, 0, least + 1 if dim else times[0] * side)

    return tile


def _tail(x: torch.Tensor) -> torch.Tensor:
    """Zero the last element; where it is 0 already, it becomes 1."""
    y = x.clone()
    if y.numel():
        place = tuple(side - 1 for side in y.shape)
        y[place] = 1 if bool(y[place] == 0) else 0
    return y


def _past(x: torch.Tensor) -> torch.Tensor:
    """Zero what lies past 2**16 elements, or the last one."""
    if x.numel() <= ELEMENTS:
        return _tail(x)
    y = x.clone(memory_format=torch.contiguous_format)
    y.view(-1)[ELEMENTS:] = 0
    return y


def _scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 1.02 if x.is_floating_point() or x.is_complex() else _tail(x)


# Values.

_VALUES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "nan": torch.isnan,
    "inf": torch.isposinf,
    "-inf": torch.isneginf,
    "-0": lambda x: (x == 0) & x.signbit(),
}


def _special(func: Any, call: Call, detail: Detail) -> bool:
    x = _operand(func, call, detail[0])
    return x is not None and x.is_floating_point() and bool(_VALUES[detail[1]](x).any())


def _without_special(func: Any, call: Call, detail: Detail) -> Call:
    x = value_of(func, call, detail[0])
    instead = {"inf": torch.finfo(x.dtype).max, "-inf": torch.finfo(x.dtype).min}.get(detail[1], 0.0)
    return with_value(func, call, detail[0], x.masked_fill(_VALUES[detail[1]](x), instead))


def _with_special(func: Any, call: Call, detail: Detail) -> Call | None:
    x = _operand(func, call, detail[0])
    if x is None or not x.is_floating_point() or not x.numel():
        return None
    y = x.clone(memory_format=torch.contiguous_format)
    y.view(-1)[0] = float(detail[1])
    return with_value(func, call, detail[0], y)


def _is_far(x: torch.Tensor) -> bool:
    return x.dtype == torch.int64 and bool((x.abs() > 1 << 24).any())


def _far(x: torch.Tensor) -> torch.Tensor | None:
    return x + (1 << 24) + 1 if x.dtype in (torch.int64, torch.int32) else (x * 8).long() + (1 << 24) + 1


# Dtypes.

_DTYPES = (
    *(torch.float16, torch.bfloat16, torch.complex64, torch.int64, torch.int32, torch.int16, torch.uint8),
    *(torch.int8, torch.bool),
)


def _has_dtype(func: Any, call: Call, dtype: Detail) -> bool:
    return any(x.dtype == dtype for x in tensors(call))


def _converted(func: Any, call: Call, dtype: Detail) -> Call | None:
    wide = dtype.is_floating_point or dtype.is_complex

    def convert(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or not (x.is_floating_point() or x.is_complex()):
            return x
        return x.to(dtype) if wide or dtype == torch.bool else (x.abs() * 5).to(dtype)

    changed: Call = tree_map(convert, call)
    return changed


def _mixed(func: Any, call: Call, detail: Detail) -> bool:
    return len({x.dtype for x in tensors(call)}) > 1


def _with_two(func: Any, call: Call, name: Detail) -> Call | None:
    x = _operand(func, call, name)
    return None if x is None or not x.is_floating_point() else with_value(func, call, name, x.half())


# Arguments that are no tensors.


def _is_given(func: Any, call: Call, name: Detail) -> bool:
    default = next(one.default_value for one in func._schema.arguments if one.name == name)
    return bool(value_of(func, call, name) != default)


def _by_default(func: Any, call: Call, name: Detail) -> Call:
    default = next(one.default_value for one in func._schema.arguments if one.name == name)
    return with_value(func, call, name, default)


def _other_option(func: Any, call: Call, name: Detail) -> Call | None:
    value = value_of(func, call, name)
    if isinstance(value, bool):
        return with_value(func, call, name, not value)
    if isinstance(value, int):
        return with_value(func, call, name, value + 1)
    if isinstance(value, float):
        return with_value(func, call, name, value * 2 + 0.5)
    return with_value(func, call, name, [one + 1 for one in value]) if isinstance(value, (list, tuple)) else None


def _numbers(value: Any) -> list[int]:
    found = value if isinstance(value, (list, tuple)) else [value]
    return [one for one in found if isinstance(one, int) and not isinstance(one, bool)]


def _is_negative(func: Any, call: Call, name: Detail) -> bool:
    return any(one < 0 for one in _numbers(value_of(func, call, name)))


def _rank(func: Any, call: Call) -> int:
    found = tensors(call)
    return found[0].dim() if found else 0


def _each(change: Callable[[int], int], value: Any) -> Any:
    return [change(one) for one in value] if isinstance(value, (list, tuple)) else change(value)


def _not_wrapped(func: Any, call: Call, name: Detail) -> Call:
    value, rank = value_of(func, call, name), _rank(func, call)
    return with_value(func, call, name, _each(lambda one: min(-one, rank - 1) if one < 0 else one, value))


def _from_the_end(func: Any, call: Call, name: Detail) -> Call | None:
    value, rank = value_of(func, call, name), _rank(func, call)
    if not _numbers(value) or not rank:
        return None
    return with_value(func, call, name, _each(lambda one: one - rank if one >= 0 else one, value))


def _is_not_last(func: Any, call: Call, name: Detail) -> bool:
    found, rank = _numbers(value_of(func, call, name)), _rank(func, call)
    return bool(found) and rank > 1 and all(one % rank != rank - 1 for one in found)


def _first(func: Any, call: Call, name: Detail) -> Call | None:
    value = value_of(func, call, name)
    if _rank(func, call) < 2:
        return None
    return with_value(func, call, name, [0] if isinstance(value, (list, tuple)) or value is None else 0)


def _has_fraction(func: Any, call: Call, name: Detail) -> bool:
    value = value_of(func, call, name)
    return isinstance(value, float) and value % 1 != 0 and abs(value) < 1 << 30


def _truncated(func: Any, call: Call, name: Detail) -> Call:
    return with_value(func, call, name, float(int(value_of(func, call, name))))


# Memory that several tensors share.


def _is_shared(func: Any, call: Call, detail: Detail) -> bool:
    storages = {x.untyped_storage().data_ptr() for x in written(func, call) if x.numel()}
    return any(
        x.untyped_storage().data_ptr() in storages
        for name in _operands(func._schema)
        for x in tensors(value_of(func, call, name))
        if x.numel()
    )


def _with_itself(func: Any, call: Call, name: Detail) -> Call | None:
    """Put the destination in the place of an operand of its shape."""
    target, x = written(func, call)[:1], _operand(func, call, name)
    if not target or x is None or x.shape != target[0].shape or x.dtype != target[0].dtype:
        return None
    return with_value(func, call, name, target[0])


def _operands_beside_a_write(schema: Any) -> list[str]:
    return _operands(schema) if any(is_written(one) for one in schema.arguments) else []


def _anything(func: Any, call: Call, detail: Detail) -> bool:
    return True


def _all_empty(func: Any, call: Call, detail: Detail) -> bool:
    found = tensors(call)
    return bool(found) and not any(x.numel() for x in found)


def _none_has_dimensions(func: Any, call: Call, detail: Detail) -> bool:
    found = tensors(call)
    return bool(found) and not any(x.dim() for x in found)


def _with_fraction(func: Any, call: Call, name: Detail) -> Call | None:
    value = value_of(func, call, name)
    return with_value(func, call, name, value + 0.5) if isinstance(value, (int, float)) else None


def _as_it_is(func: Any, call: Call, detail: Detail) -> Call | None:
    return call


def _once(schema: Any) -> list[str]:
    return [""]


def _gradients(schema: Any) -> list[int]:
    return list(range(len(schema.returns))) if "backward" in schema.name else []


_TILES, _RANKS = (4, 16, 32, 64, 256, 1024), (4, 5, 6)


def _past_a_tile(func: Any, call: Call, tile: Detail) -> bool:
    return any(x.dim() and x.shape[-1] > tile and x.shape[-1] % tile for x in tensors(call))


def _has_rank(func: Any, call: Call, rank: Detail) -> bool:
    return any(x.dim() >= rank for x in tensors(call))


def _with_rank(func: Any, call: Call, rank: Detail) -> Call | None:
    return _all(lambda x: x[(None,) * max(rank - x.dim(), 0)] if x.dim() else x)(func, call, rank)


SCALED = Mechanism("scaled", _once, _anything, _as_it_is, spoil=_scaled)
# Not drawn: it is that of a dtype, of a size, and so on, without the condition.
TAIL = Mechanism("the last element", _once, _anything, _as_it_is, spoil=_tail)
MECHANISMS = (
    SCALED,
    Mechanism("refused", _once, _anything, _as_it_is),
    Mechanism(
        "permuted operand read as it lies",
        _operands,
        _of(lambda x: x.numel() > 1 and not x.is_contiguous() and is_dense(x)),
        _made(_permuted),
        misread=_reading(in_storage_order),
    ),
    Mechanism(
        "operand with gaps read as it lies",
        _operands,
        _of(lambda x: not x.is_contiguous() and not is_dense(x) and 0 not in x.stride()),
        _made(_stepped),
        misread=_reading(in_storage_order),
    ),
    Mechanism(
        "offset of an operand dropped",
        _operands,
        _of(lambda x: bool(x.storage_offset())),
        _made(_offset),
        misread=_reading(without_offset),
    ),
    Mechanism(
        "expanded operand refused",
        _operands,
        _of(lambda x: any(not step and side > 1 for side, step in zip(x.shape, x.stride()))),
        _made(_expanded),
    ),
    Mechanism(
        "channels_last operand read as it lies",
        _operands,
        _of(lambda x: x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)),
        _made(_channels_last),
        misread=_reading(in_storage_order),
    ),
    Mechanism("a dtype's last element", lambda schema: _DTYPES, _has_dtype, _converted, spoil=_tail),
    Mechanism("a dtype refused", lambda schema: _DTYPES, _has_dtype, _converted),
    Mechanism("two dtypes refused", lambda schema: _operands(schema)[1:], _mixed, _with_two),
    Mechanism(
        "past 2**16 elements",
        _once,
        lambda func, call, detail: any(x.numel() > ELEMENTS for x in tensors(call)),
        _all(_tiled(0, ELEMENTS)),
        spoil=_past,
    ),
    Mechanism(
        "past a tile",
        lambda schema: _TILES,
        _past_a_tile,
        lambda func, call, tile: _all(_tiled(-1, tile))(func, call, tile),
        spoil=_tail,
    ),
    Mechanism("empty operand refused", _operands, _of(lambda x: not x.numel()), _made(_without_elements)),
    Mechanism("empty tensors refused", _once, _all_empty, _all(lambda x: x[:0])),
    Mechanism(
        "operand without dimensions read as 0",
        _operands,
        _of(lambda x: not x.dim()),
        _made(lambda x: x.reshape(-1)[0] if x.numel() else None),
        misread=_reading(torch.zeros_like),
    ),
    Mechanism("tensors without dimensions refused", _once, _none_has_dimensions, _all(lambda x: x.reshape(-1)[0])),
    Mechanism("of so many dimensions refused", lambda schema: _RANKS, _has_rank, _with_rank),
    Mechanism("of so many dimensions, the last element", lambda schema: _RANKS, _has_rank, _with_rank, spoil=_tail),
    Mechanism(
        "a special value lost",
        lambda schema: [(name, value) for name in _operands(schema) for value in _VALUES],
        _special,
        _with_special,
        misread=_without_special,
    ),
    Mechanism(
        "integers read through float32",
        _operands,
        _of(_is_far),
        _made(_far),
        misread=_reading(lambda x: x.float().to(x.dtype)),
    ),
    Mechanism(
        "write to a destination with gaps lost",
        _destinations,
        _of(lambda x: x.numel() > 1 and not x.is_contiguous()),
        _made(_stepped),
        loses=True,
    ),
    Mechanism(
        "write to a destination with an offset lost",
        _destinations,
        _of(lambda x: bool(x.storage_offset()) and x.is_contiguous()),
        _made(_offset),
        loses=True,
    ),
    Mechanism(
        "what the destination held stays as NaN",
        _destinations,
        _of(lambda x: x.is_floating_point() and bool(x.isnan().any())),
        _made(lambda x: torch.full_like(x, float("nan")) if x.is_floating_point() else None),
        loses=True,
    ),
    Mechanism("destination and operand share memory", _operands_beside_a_write, _is_shared, _with_itself, spoil=_tail),
    Mechanism("one of the gradients", _gradients, _anything, _as_it_is, spoil=_scaled),
    Mechanism("option ignored", _optional, _is_given, _other_option, misread=_by_default),
    Mechanism("negative dimension not wrapped", _named_dimensions, _is_negative, _from_the_end, misread=_not_wrapped),
    Mechanism("dimension that is not the last", _named_dimensions, _is_not_last, _first, spoil=_tail),
    Mechanism("fraction of a number dropped", _scalars, _has_fraction, _with_fraction, misread=_truncated),
    Mechanism("answer of an earlier call of the same form", _once, _anything, _as_it_is, remembers="answer"),
    Mechanism("option of an earlier call of the same form", _optional, _anything, _other_option, remembers="option"),
)
