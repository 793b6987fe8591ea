"""Conditions over the numbers of a launch, as a rule of a family states them: `size > 4 * threads`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

Number = int | tuple[int, ...] | Mapping[str, int]

FUNCTIONS: dict[str, Callable[..., int]] = {
    "min": min,
    "max": max,
    "ceil_div": lambda a, b: -(-a // b),
    "bit_ceil": lambda n: 1 << max(n - 1, 0).bit_length(),  # the next power of two
}
_NODES = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.Eq, ast.NotEq, ast.Lt,
    ast.LtE, ast.Gt, ast.GtE, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Call, ast.Subscript,
    ast.Name, ast.Load, ast.Constant,
)  # fmt: skip


def names_in(text: str) -> set[str]:
    """Return the numbers that a condition names; a member of a mapping as `mapping.member`.

    >>> sorted(names_in("dims[0] > 4 * threads and element['x'] == 2"))
    ['dims', 'element.x', 'threads']

    Raises:
        ValueError: it is no condition.
    """
    tree = _parsed(text)
    members = {
        f"{node.value.id}.{node.slice.value}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    }
    mappings = {each.partition(".")[0] for each in members}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return (names - set(FUNCTIONS) - mappings) | members


def holds(text: str, numbers: Mapping[str, Number]) -> bool:
    """Return whether a condition holds.

    >>> holds("bit_ceil(dims[0]) == threads", {"dims": (5, 1), "threads": 8})
    True

    Raises:
        KeyError, NameError: a number that it names is not there.
    """
    code = compile(_parsed(text), "condition", "eval")
    return bool(eval(code, {"__builtins__": {}, **FUNCTIONS}, dict(numbers)))


def _parsed(text: str) -> ast.Expression:
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{text!r} is not a condition: {error.msg}") from None
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise ValueError(f"{text!r} is not a condition: {type(node).__name__} is not allowed")
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS):
            raise ValueError(f"{text!r} is not a condition: only {', '.join(FUNCTIONS)} may be called")
    return tree


def _checked(value: Any) -> Any:
    if value:
        names_in(value)
    return value


Condition = Annotated[str, AfterValidator(_checked)]
"""A condition in a data file."""
