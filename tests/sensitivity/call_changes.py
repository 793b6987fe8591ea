"""A kept call as data, and the same call with one thing changed: a dtype, a layout, a size, a rank, an argument."""

from __future__ import annotations

import math
from typing import Any

import torch

from conditions import layout_of
from device_suite.overloads.described import changed, is_tensor, shape_of, tensor_text, texts

_PLAIN_LAYOUTS = ("transposed", "offset", "step", "expanded", "channels_last")
_NEW_SIDES = {"0": 0, "1": 1, "odd": 9, "prime": 7, "x4": 4, "x16": 16, "x32": 32, ">1024": 1031, ">65535": 65543}
_MOST_ELEMENTS = 1 << 17


def describe(value: Any) -> Any:
    """Return a kept call, or a part of it, as JSON can hold it."""
    if isinstance(value, torch.Tensor):
        return _described(value)
    if isinstance(value, (tuple, list)):
        return [describe(one) for one in value]
    if isinstance(value, dict):
        return {key: describe(one) for key, one in value.items() if key not in ("layout", "generator", "pin_memory")}
    if isinstance(value, torch.dtype):
        return f"@dtype {str(value)[6:]}"
    if isinstance(value, torch.memory_format):
        return f"@format {str(value)[6:]}"
    if isinstance(value, torch.device):
        return "@device"
    if isinstance(value, complex):
        return f"@complex {value.real!r} {value.imag!r}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"@number {value}"
    return value if isinstance(value, (bool, int, float, str)) else None


def _described(x: torch.Tensor) -> str:
    layout = layout_of(x)
    low, high = _ends(x)
    return tensor_text(x.dtype, x.shape, layout if layout in _PLAIN_LAYOUTS else "dense", low, high)


def _ends(x: torch.Tensor) -> tuple[float, float]:
    """Return the least and the greatest finite value."""
    flat = (torch.view_as_real(x.resolve_conj()) if x.is_complex() else x).detach().reshape(-1).double()
    flat = flat[flat.isfinite()]
    return (float(flat.min()), float(flat.max())) if flat.numel() else (0.0, 1.0)


def change_call(func: Any, call: Any, item: Any) -> Any:
    """Return a described call with one condition more, or None where it cannot have it so."""
    kind, what = item
    if kind == "dtypes":
        return _with_dtype(call, *what)
    if kind == "layouts":
        return _with_layout(call, *what)
    if kind == "sizes":
        return _with_rank(call, int(what[5:])) if what.startswith("rank") else _with_side(call, what)
    return _with_argument(func, call, *what)


def _with_dtype(call: Any, number: int, name: str) -> Any:
    every = texts(call)
    if number >= len(every):
        return None
    group = every[number].split(" ")[0]
    return changed(call, lambda text: f"@{name} " + text.partition(" ")[2] if text.split(" ")[0] == group else text)


def _with_layout(call: Any, number: int, name: str) -> Any:
    every = texts(call)
    if number >= len(every):
        return None
    if name in ("no_dimensions", "empty"):
        whole = _each(
            call, lambda place, text: _shaped(text, () if name == "no_dimensions" else (0, *shape_of(text)[1:]))
        )
        alone = _each(
            call,
            lambda place, text: (
                _shaped(text, () if name == "no_dimensions" else (0, *shape_of(text)[1:])) if place == number else text
            ),
        )
        return whole if number == 0 and name == "empty" else alone
    if name == "channels_last" and len(shape_of(every[number])) != 4:
        return None
    return _each(call, lambda place, text: _laid(text, name) if place == number else text)


def _each(call: Any, change: Any) -> Any:
    count = iter(range(10_000))
    return changed(call, lambda text: change(next(count), text))


def _laid(text: str, layout: str) -> str:
    dtype, sides, _, low, high = text.split(" ")
    return " ".join((dtype, sides, layout, low, high))


def _shaped(text: str, shape: tuple[int, ...]) -> str:
    dtype, _, layout, low, high = text.split(" ")
    return " ".join(
        (dtype, "x".join(map(str, shape)) or "-", layout if shape and 0 not in shape else "dense", low, high)
    )


def _with_side(call: Any, name: str) -> Any:
    every = texts(call)
    if not every or not shape_of(every[0]):
        return None
    new = _NEW_SIDES[name]
    # The longest side of the first operand wherever it stands: what belongs together stays so.
    for old in sorted(set(shape_of(every[0])), reverse=True):
        found = _sides(changed(call, lambda text, old=old: _shaped(text, _put(shape_of(text), old, new))), old, new)
        if max((math.prod(shape_of(one)) for one in texts(found)), default=0) <= _MOST_ELEMENTS:
            return found
    return None


def _put(shape: tuple[int, ...], old: int, new: int) -> tuple[int, ...]:
    return tuple(new if side == old else side for side in shape)


def _sides(value: Any, old: int, new: int) -> Any:
    """Return a call with lists of whole numbers changed too: they are sizes."""
    if isinstance(value, list):
        if len(value) > 1 and all(type(one) is int for one in value):
            return [new if one == old else one for one in value]
        return [_sides(one, old, new) for one in value]
    return {key: _sides(one, old, new) for key, one in value.items()} if isinstance(value, dict) else value


def _with_rank(call: Any, rank: int) -> Any:
    every = texts(call)
    if not every:
        return None
    more = rank - len(shape_of(every[0]))
    if more >= 0:
        return changed(call, lambda text: _shaped(text, (*(1,) * more, *shape_of(text))))
    return changed(call, lambda text: _shaped(text, shape_of(text)[min(-more, len(shape_of(text))) :]))


def _with_argument(func: Any, call: Any, name: str, kind: str) -> Any:
    args, kwargs = list(call[0]), dict(call[1])
    for place, argument in enumerate(func._schema.arguments):
        if argument.name != name:
            continue
        value = _other(argument, kind)
        if value is None and kind != "default":
            return None
        if place < len(args) and not argument.kwarg_only:
            args[place] = describe(argument.default_value) if kind == "default" else value
            if kind == "default" and place == len(args) - 1:
                args.pop()
        elif kind == "default":
            kwargs.pop(name, None)
        else:
            kwargs[name] = value
        return [args, kwargs]
    return None


def _other(argument: Any, kind: str) -> Any:
    """Return another value than the default by the argument's type, or None where the type does not tell one."""
    default, text = argument.default_value, str(argument.type)
    if kind in ("true", "false"):
        return kind == "true"
    if is_tensor(default) or "Tensor" in text:
        return None
    if "List[int]" in text:
        return [2 for _ in default] if default else [0]
    if text in ("int", "SymInt") or isinstance(default, int):
        return 2 if default in (0, 1, None) else 1 if default == -1 else int(default) - 1
    if "float" in text or isinstance(default, float):
        return 0.5 if default in (None, 1.0, 0.0) else float(default) * 4
    if "int" in text.lower():
        return 0 if "dim" in argument.name else 2
    if "number" in text.lower() or "Scalar" in text:
        return 2
    return None
