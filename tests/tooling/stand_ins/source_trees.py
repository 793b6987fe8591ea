"""The tool's modules as syntax trees: several tests ask something of all of them, and reading them takes seconds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "scripts" / "mps_build"


@cache
def source_trees() -> dict[Path, ast.Module]:
    """Return each module's tree by its path."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield every node, in no order: `ast.walk` takes three times as long."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                left.append(value)
            elif isinstance(value, list):
                left += [each for each in value if isinstance(each, ast.AST)]


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every statement, in no order, and nothing of what stands within one."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, field, ())
            if isinstance(inner, list):  # of a lambda it is an expression
                yield from inner
                left += inner
