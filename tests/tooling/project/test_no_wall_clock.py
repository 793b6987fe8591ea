"""No test says how many seconds of wall clock something may take: a busy machine would fail it."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
# run_logged returns the wall seconds of its program.
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns", "run_logged"}


def of_wall_clock(tree: ast.AST) -> list[int]:
    """Return the lines of assertions on what a clock said, straight or by a name that holds it."""
    found = []
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        names: set[str] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and _is_clock(node.value, names):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        found += [
            node.lineno
            for node in ast.walk(function)
            if isinstance(node, ast.Assert)
            and any(isinstance(part, ast.Compare) and _is_clock(part, names) for part in ast.walk(node.test))
        ]
    return sorted(set(found))


def _is_clock(expression: ast.AST, names: set[str]) -> bool:
    for node in ast.walk(expression):
        if isinstance(node, ast.Name) and node.id in names:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if called in CLOCKS:
                return True
    return False


def test_no_assertion_is_on_wall_clock() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.py"))}
    requested = {path: text for path, text in texts.items() if any(f"{clock}(" in text for clock in CLOCKS)}
    found = [
        f"{path.relative_to(TESTS)}:{line}" for path in requested for line in of_wall_clock(ast.parse(requested[path]))
    ]
    assert found == []


def test_such_an_assertion_is_found() -> None:
    text = "def test_a():\n    began = time.monotonic()\n    a = work()\n    assert (a, {}) == (1, True)\n"
    for inner in ("time.monotonic() - began < 5", "time.time() < began", "run_logged(x) < 10"):
        assert of_wall_clock(ast.parse(text.format(inner))) == [4]
    assert of_wall_clock(ast.parse("def test_a():\n    b = time.process_time()\n    assert b < 1\n")) == []
