"""The `references` of the families: each operator as torch computes it, and how exact a kernel must be."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..families.shared.contracts import FOLDER, load_families
from .known import explanation_rows

# The release whose CPU the references and their bounds were tried with.
TORCH = "2.13.0"
# The families whose results depend on one element of each input alone.
ELEMENTWISE = ("unary", "binary")
# What an expression may use beside a kernel's inputs.
_MODULES = {"torch", "F", "math"}
_KEYS = {
    "expr",
    "function",
    "ulp",
    "alpha",
    "aten",
    "integers",
    "signed_zero",
    "strict",
    "note",
    "magnitude",
    "coarse",
    "draw",
    "skip_nan",
    "overflow",
    "least",
    "divides",
    "complex",
    "order",
}


@cache
def load_references(folder: Path = FOLDER) -> Mapping[str, Mapping[str, Any]]:
    """Return all rows by name; `parameters` holds the names of each one's inputs, in the order of a question's.

    Raises:
        ValueError: a name comes two times, or a row has an unknown key, or not exactly one of `expr` and `function`.
    """
    rows: dict[str, Mapping[str, Any]] = {}
    for family, sections in load_families(folder).items():
        for name, row in sections.get("references", {}).items():
            row = {"expr": row} if isinstance(row, str) else row  # noqa: PLW2901
            if name in rows:
                raise ValueError(f"{family}: {name} is there two times")
            if unknown := set(row) - _KEYS:
                raise ValueError(f"{family}: {name}: unknown keys {sorted(unknown)}")
            if len({"expr", "function"} & set(row)) != 1:
                raise ValueError(f"{family}: {name}: a row says `expr: EXPRESSION` or `function: NAME`")
            rows[name] = {**row, "family": family, "parameters": _parameters(row)}
    return {**rows, **explanation_rows()}


def _parameters(row: Mapping[str, Any]) -> list[str]:
    """Return the names of a row's inputs: its function's parameters, or what its expression names."""
    if "function" in row:
        return list(_functions()[row["function"]])
    parts = [row, row.get("complex", {})]
    texts = [part[key] for part in parts for key in ("expr", "magnitude", "overflow") if part.get(key)]
    return list(dict.fromkeys(name for text in texts for name in free_names(text)))


def free_names(expression: str) -> list[str]:
    """Return what an expression names that is not Python's, torch's or a function of the judge, in its order.

    >>> free_names("torch.where(x > 0, y, y * alpha)")
    ['x', 'y', 'alpha']
    >>> free_names("torch.clamp(x, min, max) * max(1, y)")
    ['x', 'min', 'max', 'y']
    """
    nodes = list(ast.walk(ast.parse(expression, mode="eval")))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    # `max(a, b)` is Python's, `torch.clamp(x, min, max)` has two inputs of these names.
    called = {node.func for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    names = [node for node in nodes if isinstance(node, ast.Name) and node.id not in bound]
    names = [node for node in names if not (node in called and hasattr(builtins, node.id))]
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(node.id for node in names if node.id not in {*_MODULES, *_functions()}))


@cache
def _functions() -> Mapping[str, tuple[str, ...]]:
    """Return the functions of families/*/references.py with their parameters: they run where torch is, not here."""
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted(FOLDER.glob("*/references.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                found[node.name] = tuple(each.arg for each in given)
    return found


def warning_of_another(torch: str) -> str:
    """Return what to say of a torch that computes the references and is another than they were tried with.

    Where the two differ, a right kernel reads as wrong: 2.11 makes NaN of what float8 cannot hold, 2.13 its largest.

    >>> warning_of_another("2.13.0+cpu"), warning_of_another("2.11.0+cu130")
    ('', 'torch 2.11.0+cu130 computes the references, tried with 2.13.0 alone')
    """
    is_tried = torch.split(".")[:2] == TORCH.split(".")[:2]
    return "" if is_tried else f"torch {torch} computes the references, tried with {TORCH} alone"
