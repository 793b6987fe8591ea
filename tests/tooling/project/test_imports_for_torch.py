"""Files that need torch are neither type-checked nor run here; still each name they import of ours must exist."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Each folder is on sys.path where its files run.
ROOTS = [ROOT / folder for folder in ("tests/device", "tests/sensitivity", "tests/second_device", "benchmarks/device")]
OURS = {one.stem for root in ROOTS for one in root.iterdir() if one.suffix == ".py" or one.is_dir()}


def module_at(name: str, beside: Path) -> Path | None:
    """Return the file or package that a module's name means, None where it is none of ours."""
    for root in (beside, *ROOTS):
        place = root.joinpath(*name.split("."))
        if place.with_suffix(".py").is_file():
            return place.with_suffix(".py")
        if (place / "__init__.py").is_file():
            return place / "__init__.py"
    return None


def bound_in(node: ast.AST) -> Iterator[str]:
    """Give the names that a node binds in its own scope, not in those of functions, classes and comprehensions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            yield child.name
        elif isinstance(child, (ast.Import, ast.ImportFrom)):
            yield from ((one.asname or one.name).split(".")[0] for one in child.names)
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        elif not isinstance(child, (ast.expr_context, ast.Lambda, ast.comprehension)):
            yield from bound_in(child)


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return what a module binds at its top, and its submodules where it is a package."""
    within = {one.stem for one in path.parent.iterdir()} if path.name == "__init__.py" else set()
    return frozenset({*bound_in(tree_of(path)), *within})


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def wrong_imports(path: Path) -> Iterator[str]:
    for node in tree_of(path).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        folder = path.parents[node.level - 1] if node.level else path.parent
        name = node.module or ""
        if not node.level and name.split(".")[0] not in OURS:
            continue
        found = module_at(name, folder) if name else folder / "__init__.py"
        if found is None:
            yield f"{path.name}:{node.lineno}: no module {name}"
            continue
        lost = [one.name for one in node.names if one.name not in names_in(found)]
        if lost:
            yield f"{path.name}:{node.lineno}: {name} has no {', '.join(lost)}"


def test_every_name_that_is_imported_exists() -> None:
    files = [path for root in ROOTS for path in root.rglob("*.py")]

    assert len(files) > 150
    assert [text for path in files for text in wrong_imports(path)] == []


def test_a_module_that_moved_and_a_name_that_is_gone_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "test_moved.py"
    path.write_text(
        "from engine.gone import x\nfrom engine.cases import Cases, Gone\nfrom torch import y\n"
        "from used import np, local, bound\n"
    )
    (tmp_path / "used.py").write_text("bound = np.e\n\n\ndef f():\n    local = bound\n    return local\n")
    monkeypatch.setattr(f"{__name__}.OURS", OURS | {"used"})

    assert list(wrong_imports(path)) == [
        "test_moved.py:1: no module engine.gone",
        "test_moved.py:2: engine.cases has no Gone",
        "test_moved.py:4: used has no np, local",
    ]
