"""The commands that there are, and which of them an installed tool has."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from mps_build.commands.shared.catalogue import COMMANDS, MAINTAINERS, TASKS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "scripts" / "mps_build"


def _left_out() -> set[Path]:
    """Return the modules that pyproject.toml leaves out of the wheel."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    places = [ROOT / place for place in settings["targets"]["wheel"]["exclude"]]
    assert all(place.exists() for place in places), "a place that is gone"
    return {each for place in places for each in ([place] if place.suffix else place.rglob("*.py"))}


def _imported(path: Path) -> Iterator[str]:
    """Yield each module of ours that a module's text names in an import, in full."""
    package = ("mps_build", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (base, *(f"{base}.{name.name}" for name in node.names))
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_a_user_sees_twenty_one_commands_and_maintainers_eight_more() -> None:
    assert len(COMMANDS) - len(MAINTAINERS) == 21
    assert len(MAINTAINERS) == 8
    assert list(TASKS)[-1] == "for this repository's maintainers"


def test_an_installed_tool_lacks_the_maintainers_commands_and_nothing_that_another_imports() -> None:
    left_out = _left_out()
    names = {".".join(("mps_build", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in left_out}
    names |= {name.removesuffix(".__init__") for name in names}

    commands = {path.stem for path in left_out if path.parent == PACKAGE / "commands" / "dev"} - {"__init__"}
    importing = {
        str(path.relative_to(PACKAGE)): found
        for path in PACKAGE.rglob("*.py")
        if path not in left_out and (found := names.intersection(_imported(path)))
    }

    assert commands == MAINTAINERS
    assert importing == {}
