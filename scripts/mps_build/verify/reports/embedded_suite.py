"""The part of the device suite that one case needs, as source texts: the case's file, and the frame it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from mps_build.common.errors import UsageError
from mps_build.common.plain_text import plain

FRAME = "engine"
# What is imported of these packages is embedded.
FRAMES = (FRAME, "operators", "transforms")
# What the script itself calls, besides what the case's file imports.
_ALWAYS = ("states", "runs", "plants", "selection", "compare")


def embed(suite: Path, file: str, case_id: str) -> Mapping[str, str]:
    """Return module name -> source of all that the case needs; the other cases of its file are left out.

    Raises:
        UsageError: the suite has no such file.
    """
    # A record comes from anywhere: what it names is a file of the suite, by its bare name, or nothing.
    path = {each.name: each for each in (*suite.glob("*.py"), *suite.glob("*/test_*.py"))}.get(file, suite / "nothing")
    if path.is_symlink() or not path.is_file():
        raise UsageError(
            f"{suite / plain(file)}: the record names a file that this suite does not have",
            hint="use the tool's version that wrote the record, or verify again",
        )
    text = path.read_text(encoding="utf-8")
    sources = {path.stem: without_other_cases(text, case_id)}
    wanted = [f"{FRAME}.{name}" for name in _ALWAYS] + [FRAME, *_imports(text, package="")]
    while wanted:
        name = wanted.pop()
        if name in sources:
            continue
        source = _read(suite, name)
        if source is None:
            continue
        sources[name] = source
        package = name if (suite.joinpath(*name.split(".")) / "__init__.py").is_file() else name.rpartition(".")[0]
        wanted += [name.rpartition(".")[0] or FRAME, *_imports(source, package=package)]
    return dict(sorted(sources.items(), key=lambda pair: (pair[0] != path.stem, pair[0])))


def without_other_cases(text: str, case_id: str) -> str:
    """Return a file's source without the functions that are registered under another literal id and not used."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in reversed(tree.body):
        if not isinstance(node, ast.FunctionDef) or node.name in used:
            continue
        ids = [_literal_id(decorator) for decorator in node.decorator_list]
        if ids and all(found is not None and found != case_id for found in ids):
            begin, end = node.decorator_list[0].lineno - 1, node.end_lineno or node.lineno
            while end < len(lines) and not lines[end].strip():
                end += 1
            del lines[begin:end]
    return "".join(lines)


def _literal_id(decorator: ast.expr) -> str | None:
    """Return the id of `@cases.case("id", ...)`; None for any other decorator, or an id that is computed."""
    if (
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Attribute)
        and decorator.func.attr in ("case", "check")
        and decorator.args
        and isinstance(decorator.args[0], ast.Constant)
        and isinstance(decorator.args[0].value, str)
    ):
        return decorator.args[0].value
    return None


@lru_cache(maxsize=512)
def _imports(source: str, *, package: str) -> tuple[str, ...]:
    """Return the modules of the frame that a source imports, by their whole names: many scripts embed the same."""
    return tuple(_imported(source, package))


def _imported(source: str, package: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in FRAMES)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            above = ".".join(parents[: len(parents) - node.level + 1])
            base = f"{above}.{node.module or ''}".strip(".") if node.level else (node.module or "")
            if base.split(".")[0] in FRAMES:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)


def _read(suite: Path, module: str) -> str | None:
    path = suite.joinpath(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate.read_text(encoding="utf-8")
    return None
