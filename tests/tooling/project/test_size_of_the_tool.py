"""The wheel of the tool stays below 2.0 MB (test_packaging builds it), and a folder has at most 25 files."""

from __future__ import annotations

import base64
import hashlib
import io
import runpy
import sys
import types
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
LIMIT_BYTES = 2_000_000
# METADATA, WHEEL and the entry points, compressed, with what a zip says of each.
REST_BYTES = 1_500
MOST_FILES = 25
# docs/contributing/where.md has the reasons; tests/device/engine and operators: test_size_of_the_suite.
LARGER = {"schemas", "tests/device/engine", "tests/device/operators"}


def _data(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, bytes]]:
    """Yield what the build's own hook adds; hatchling gives it a class to inherit from, and its root."""
    interface = types.ModuleType("hatchling.builders.hooks.plugin.interface")
    vars(interface)["BuildHookInterface"] = type("BuildHookInterface", (), {"root": str(ROOT)})
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))["DataOfTheTool"]()
    build: dict[str, Any] = {"force_include": {}}
    hook.initialize("standard", build)
    for source, name in build["force_include"].items():
        for path in [Path(source)] if Path(source).is_file() else sorted(Path(source).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{name}/{path.relative_to(source)}".removesuffix("/."), path.read_bytes()
    hook.finalize("standard", build, "")
    assert not hook.made.exists()


def _code() -> Iterator[tuple[str, bytes]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    left_out = [ROOT / place for place in settings["wheel"]["exclude"]]
    for path in sorted((ROOT / "scripts" / "mps_build").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and not {path, *path.parents} & {*left_out}:
            yield str(path.relative_to(ROOT / "scripts")), path.read_bytes()


def test_the_wheel_is_small_and_holds_the_suite_the_recipes_and_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    members = dict([*_code(), *_data(monkeypatch), ("mps_build.dist-info/LICENSE", (ROOT / "LICENSE").read_bytes())])
    digests = {name: base64.urlsafe_b64encode(hashlib.sha256(data).digest())[:-1] for name, data in members.items()}
    record = "".join(f"{name},sha256={digests[name].decode()},{len(data)}\n" for name, data in members.items())

    with zipfile.ZipFile(file := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in {**members, "mps_build.dist-info/RECORD": record.encode()}.items():
            wheel.writestr(name, data)

    assert len(file.getvalue()) + REST_BYTES <= LIMIT_BYTES
    names = {name.removeprefix("mps_build/data/") for name in members}
    assert {"build_recipes/v2.6.0.yaml", "build_recipes/locks.txt", "build_recipes/sample.txt"} <= names
    assert "mps_build/simulation/native.txt" in members
    assert {"tests/device/conftest.py", "tests/device/known_issues.yaml", "tests/device/engine/cases.py"} <= names
    assert not [name for name in names if name.endswith((".md", "ruff.toml", ".pyc"))]


def test_no_folder_is_a_heap() -> None:
    places = ("benchmarks", "build_recipes", "docs", "patches", "runner", "schemas", "scripts", "tests")
    made = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}
    files = [path for place in places for path in (ROOT / place).rglob("*") if path.is_file()]
    folders = Counter(str(path.parent.relative_to(ROOT)) for path in files if not made & set(path.parts))

    assert {folder for folder, count in folders.items() if count > MOST_FILES} == LARGER
