"""What the rules on gradients, windows, written operands, broadcasts and long rows could ask: changes of a call.

They range over every overload of a kind, by its tags and its schema; rule_verdicts*.py say what has one answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from device_suite.overloads.described import dtype_of, shape_of, tensor_text, texts
from device_suite.rules.asked import packet_of
from device_suite.rules.asking import ALGEBRAIC
from device_suite.rules.changes import ChangedCall
from device_suite.rules.ways import DERIVE
from device_suite.rules.windows import overlaps

Change = list[Any]
_FLOATS, _HALVES = ("float32", "float16", "bfloat16"), ("float16", "bfloat16")
_EVERY = (*_FLOATS, "bool", "uint8", "int8", "int16", "int32", "int64", "complex64")
_FEW = 12  # elements: too few for every value of a word
# Its answers say of each number whether it is there, or which of two is.
_TRUTHS = frozenset(
    """all any nonzero nonzero_static count_nonzero logical_and logical_or logical_xor logical_not eq ne isclose equal
    is_nonzero isnan isinf isfinite isreal where masked_select _to_copy argwhere""".split()  # noqa: SIM905
)
# What writes to all of its first operand, or to some of it, without being pointwise by its tag.
_FILLS = frozenset(("copy", "fill", "zero", "masked_fill", "index_fill", "tril", "triu", "cumsum", "where"))
# Gradients with a kernel of their own for each element: one expression in float32.
_GRADIENTS = frozenset(
    f"{name}_backward"
    for name in """elu gelu glu silu mish sigmoid tanh logit softplus softshrink hardshrink hardsigmoid hardswish
    hardtanh leaky_relu log_sigmoid threshold rrelu_with_noise mse_loss smooth_l1_loss huber_loss soft_margin_loss
    binary_cross_entropy native_dropout""".split()  # noqa: SIM905
)
# Gradients whose formula chooses what comes of infinity: it has a kernel of its own, or divides by what may be 0.
_OPEN = ("norm", "std", "var", "lerp", "addcmul", "addcdiv", "weight", "pow", "prelu", "cdist", "softmax", "logsumexp")
# Of many tensors: their gradients are those of the single ones, and their lists are laid alike.
_LISTS = ("_foreach", "_fused", "_amp")
# Interpolation: a weight of zero times NaN, or no such product.
_WEIGHTED = ("upsample", "_upsample", "grid_sampler", "affine_grid")


def _packet(func: Any) -> str:
    return packet_of(func._schema.name.split("::")[1])


def _is_pointwise(func: Any) -> bool:
    return torch.Tag.pointwise in func.tags


def _writes(func: Any) -> bool:
    return bool(func._schema.is_mutable)


def sized(call: Any, sides: str, *, fewest: int = 0) -> list[Change]:
    """Return changes by which all tensors have another shape, and no constant value; what is pointwise can have any.

    `fewest`: no change where each has so many elements.
    """
    every = texts(call)
    if fewest and all(math.prod(shape_of(text)) >= fewest for text in every):
        return []
    found: list[Change] = []
    for number, text in enumerate(every):
        low, high = map(float, text.split(" ")[3:])
        found.append(["sides", number, sides])
        if not low < high:
            found.append(["within", number, low, low + 2])
    return found


def completed(func: Any, call: Any) -> tuple[list[Change], Any]:
    """Return changes, and the call with them: a tensor where a number stood, and statistics where a call had none."""
    every = texts(call)
    lines = [text for text in every if len(shape_of(text)) == 1]
    changes: list[Change] = []
    for place, argument in enumerate(func._schema.arguments):
        if argument.kwarg_only or place >= len(call[0]):
            continue
        given, kind = call[0][place], str(argument.type)
        writes = argument.alias_info is not None and argument.alias_info.is_write
        if kind == "Tensor" and isinstance(given, (int, float)) and every:
            changes.append(["arg", argument.name, every[0]])
        elif kind == "Optional[Tensor]" and given is None and writes and lines:
            changes.append(["arg", argument.name, _positive(lines[0])])
    return changes, ChangedCall(func, call, changes).call


def _positive(text: str) -> str:
    return tensor_text(dtype_of(text), shape_of(text), "dense", 0.5, 2)


def _moderate(call: Any) -> list[Change]:
    """Return changes by which no operand is so large that nothing of a function's curve is left."""
    found = []
    for number, text in enumerate(texts(call)):
        low, high = map(float, text.split(" ")[3:])
        if text.startswith("@float32 ") and (low < -4 or high > 4):
            found.append(["within", number, max(low, -4.0), min(high, 4.0)])
    return found


# What a forward leaves for its gradient, and leaves neither 0 nor negative.
_LEFT = ("rstd", "save_invstd", "save_var", "total_weight")


def names_of(func: Any, call: Any) -> list[str]:
    """Return the argument that each tensor of a call is of."""
    args, kwargs = call
    given = [*zip((one.name for one in func._schema.arguments), args), *kwargs.items()]
    return [name for name, value in given for _ in texts([[value], {}])]


def _derived(func: Any, call: Any) -> Iterator[list[Change]]:
    """Put special values into each operand, and ask for the gradients; a gradient's own kernel is asked as it is."""
    name = _packet(func)
    if _writes(func) or name.startswith((*_WEIGHTED, *_LISTS)):
        return
    first, call = completed(func, call)
    every = texts(call)
    backward, pointwise = "_backward" in name, _is_pointwise(func)
    own = hasattr(torch.ops.aten, f"{name}_backward") or any(part in name for part in _OPEN)
    way = [] if backward else [DERIVE]
    more = [*first, *(sized(call, "3x5", fewest=_FEW) if pointwise else [])]
    names = names_of(func, call)
    for number, text in enumerate(every[:4]):
        if dtype_of(text) != torch.float32 or 0 in shape_of(text) or (backward and names[number] in _LEFT):
            continue
        for dtype in _FLOATS:
            kind = [["kind", "float32", dtype]] if dtype != "float32" else []
            if pointwise and not (own or backward):
                yield [*more, *kind, ["fill", number, "every"], *way]  # the others where this has no one answer
            put = "fill" if pointwise or name in _GRADIENTS else "put"
            words = [(put, "unit"), ("put", "nan")]
            if not pointwise and dtype != "bfloat16":  # all of a sum is NaN by one: a dtype will do
                words = words[:1]
            yield from ([*more, *kind, [how, number, word], *way] for how, word in words)


def rounded_once(func: Any, call: Any) -> Iterator[list[Change]]:
    """Ask gradients in half precision: their own kernels, and those of every pointwise function."""
    name = _packet(func)
    if _writes(func) or name.startswith(_LISTS) or not any(text.startswith("@float32 ") for text in texts(call)):
        return
    first, call = completed(func, call)
    own = name in _GRADIENTS and name not in ALGEBRAIC
    if own or (_is_pointwise(func) and "_backward" not in name):
        for dtype in _HALVES:
            yield [*first, *_moderate(call), ["kind", "float32", dtype], *([] if own else [DERIVE])]


def truths(func: Any, call: Any) -> Iterator[list[Change]]:
    """Fill an operand with complex numbers of which one part is zero: neither part alone says what is true."""
    if _packet(func) not in _TRUTHS or _writes(func):
        return
    every = texts(call)
    groups = {text.split(" ")[0][1:] for text in every}
    for number, text in enumerate(every[:3]):
        if "index" in str(func) or 0 in shape_of(text):
            continue
        kinds = [["kind", group, "complex64"] for group in sorted(groups) if group != "complex64"]
        dtype = (
            [["kind", text.split(" ")[0][1:], "complex64"]] if _packet(func) in ("where", "masked_select") else kinds
        )
        more = sized(call, "3x5", fewest=_FEW) if _is_pointwise(func) else []
        yield from ([*more, *dtype, ["fill", number, word]] for word in ("imaginary", "real", "axes"))


def _names_a_place(func: Any) -> bool:
    return "max_pool" in _packet(func) and len(func._schema.returns) > 1


def _windows(func: Any, call: Any) -> Iterator[list[Change]]:
    """Lay each operand that is read in windows that overlap; of a gradient's, not the places that a forward chose.

    A pool that names the place of its largest number would have two equal ones: which it names is its own choice.
    """
    if _writes(func) or _packet(func).startswith(_LISTS) or _names_a_place(func):
        return
    pointwise = _is_pointwise(func)
    first, call = completed(func, call)
    more = [*first, *(sized(call, "4x6") if pointwise else [])]
    for number, text in enumerate(texts(call)[:3]):
        dtype = dtype_of(text)
        places = "_backward" in _packet(func) and not (dtype.is_floating_point or dtype.is_complex)
        if pointwise or (overlaps(shape_of(text)) and not places):
            yield [*more, ["layout", number, "windows"]]


def _written(func: Any, call: Any) -> Iterator[list[Change]]:
    """Lay what is written besides the one result: statistics, noise, masks, a second result."""
    if func._schema.name.split("::")[1].startswith(_LISTS):
        return
    places: list[int] = []
    results: list[int] = []
    count = 0
    first, call = completed(func, call)
    for place, argument in enumerate(func._schema.arguments):
        value = call[0][place] if place < len(call[0]) and not argument.kwarg_only else call[1].get(argument.name)
        many = len(texts(value))
        if argument.alias_info is not None and argument.alias_info.is_write:
            places += range(count, count + many)
            returned = {name for one in func._schema.returns if one.alias_info for name in one.alias_info.before_set}
            results += range(count, count + many) if argument.alias_info.before_set & returned else ()
        count += many
    if len(places) < 2 and places == results:
        return  # one result, which other rules lay
    every = texts(call)
    for number in places[:5]:
        shape = shape_of(every[number])
        if shape and 0 not in shape:
            yield from ([*first, ["layout", number, layout]] for layout in ("step", "transposed", "inside"))


_BRANCHED = ("logaddexp", "logaddexp2")  # a complex number has many logarithms


def _broadcast(func: Any, call: Any) -> Iterator[list[Change]]:
    """Ask columns beside a row, 2**16 elements in all, in every dtype."""
    first, call = completed(func, call)
    every = texts(call)
    if not _is_pointwise(func) or _writes(func) or len(every) < 2 or "_backward" in _packet(func):
        return
    sides = {0: "257x1", 1: "1x257"}
    shapes = [[*one[:2], sides.get(one[1], one[2])] if one[0] == "sides" else one for one in sized(call, "257x257")]
    groups = {text.split(" ")[0][1:] for text in every}
    masks = set() if groups == {"bool"} else {"bool"}
    for dtype in _EVERY:
        if "complex" in dtype and _packet(func) in _BRANCHED:
            continue
        kinds = [["kind", group, dtype] for group in sorted(groups - masks - {dtype})]
        yield [*first, *shapes, *kinds]
        if dtype == "float32":
            yield [*first, *shapes, *kinds, DERIVE]


def _rows(func: Any, call: Any) -> Iterator[list[Change]]:
    """Write in place to slices of rows of 2**16 columns; and one row to each of many."""
    first = func._schema.arguments[0] if func._schema.arguments else None
    writes = first is not None and first.alias_info is not None and first.alias_info.is_write
    wanted = _is_pointwise(func) or _packet(func) in _FILLS
    if writes and func._schema.name.endswith("_") and str(first.type) == "Tensor" and wanted:
        before, call = completed(func, call)
        yield [*before, *sized(call, "2x65540"), ["layout", 0, "rows"]]
        if len(texts(call)) > 1:
            sides = [[*one[:2], "1x257"] if one[:2] == ["sides", 1] else one for one in sized(call, "257x257")]
            yield [*before, *sides]


RULES = {
    "derived": _derived,
    "windows": _windows,
    "written": _written,
    "broadcast": _broadcast,
    "rows": _rows,
}
RULES_IN_WORDS = {
    "derived": "2: zeros, ones, NaN and infinity in each operand of a gradient, in float32 and both halves",
    "windows": "5: each operand that is read, in windows that overlap",
    "written": "5: layouts of what is written besides the one result: statistics, noise, a second result",
    "broadcast": "3: columns beside a row, past 2**16 elements, in every dtype",
    "rows": "3: in place on slices of rows of 2**16 columns, and a row written to 257 others",
}
