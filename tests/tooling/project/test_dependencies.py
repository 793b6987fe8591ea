"""Every module that a command may import or call with -m is a dependency of the package, or of a named extra."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from mps_build.common.errors import BuildEnvironmentError
from mps_build.wheel_build.steps.finish_wheel import check_delocate
from packaging.markers import Marker
from packaging.requirements import Requirement
from repository import PACKAGE, source_trees, statements, walk

tomllib = pytest.importorskip("tomllib", reason="Python 3.11 and newer read TOML")

ROOT = Path(__file__).parents[3]
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DISTRIBUTION = {"detect_secrets": "detect-secrets", "yaml": "pyyaml", "PIL": "pillow", "tomllib": "python"}
# Called with -m by another Python than ours: who brings it along.
ELSEWHERE = {
    "build": "the recipe's lock (test below)",
    "pytest": "verify's own environment",
    "engine": "the suite beside the package",
    "accelerate": "the environment of the torch under test",
    "platform": "a probe's words",
}
# What scripts of ours import in the Python of the torch under test.
OF_THE_TORCH = {"torch", "torchvision", "torchaudio", "torchgen", "numpy", "pytest"}
LOOKED_AT = (ast.Import, ast.ImportFrom, ast.Call, ast.List, ast.Tuple)
LOADERS = ("import_module", "find_spec", "_library")
MAC = {"sys_platform": "darwin", "python_version": "3.12"}
LINUX = {**MAC, "sys_platform": "linux"}
OLDEST = {"sys_platform": "linux", "python_version": "3.10"}


def _distributions(requirements: list[str], environment: dict[str, str]) -> set[str]:
    parsed = [Requirement(text) for text in requirements]
    return {r.name for r in parsed if r.marker is None or Marker(str(r.marker)).evaluate(environment)}


def _trees() -> Iterator[tuple[Path, ast.Module]]:
    # The judge runs as a script in the Python of a torch, with its references; its files import each other as such.
    # pytest loads its plugin there, too.
    elsewhere = {("judge", "server"), ("upstream", "plugin")}
    for path, tree in source_trees().items():
        if path.parent.parts[-2:] not in elsewhere and not path.match("families/*/references.py"):
            yield path, tree


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            # importlib.import_module("x"), find_spec("x"), and a helper of ours that does the same
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in LOADERS and isinstance(node.args[0].value, str):
                yield node.args[0].value.split(".")[0]


def _called(tree: ast.Module, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield each X of a `-m X` in a list or tuple of words; a name stands for the constant of its module."""
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        if isinstance(node, (ast.List, ast.Tuple)):
            for first, second in zip(node.elts, node.elts[1:], strict=False):
                if getattr(second, "id", "") == "__name__":  # our own module
                    continue
                if isinstance(first, ast.Constant) and first.value == "-m":
                    word = (
                        second.value if isinstance(second, ast.Constant) else constants.get(getattr(second, "id", ""))
                    )
                    assert isinstance(word, str), f"-m of what? line {node.lineno}"
                    yield word.split(".")[0]


def _needed() -> dict[str, set[str]]:
    """Return distribution -> the files of ours that need it."""
    needed: dict[str, set[str]] = {}
    for path, tree in _trees():
        # Most files ask for another only by an import, which is a statement.
        has_calls = any(word in path.read_text(encoding="utf-8") for word in (*LOADERS, '"-m"'))
        nodes = [node for node in (walk(tree) if has_calls else statements(tree)) if isinstance(node, LOOKED_AT)]
        for module in {*_imported(nodes), *(set(_called(tree, nodes)) - ELSEWHERE.keys())}:
            if module not in sys.stdlib_module_names | OF_THE_TORCH | {"mps_build", ""}:
                needed.setdefault(DISTRIBUTION.get(module, module), set()).add(str(path.relative_to(PACKAGE)))
    return needed


def test_what_is_imported_or_called_is_a_dependency_or_of_an_extra() -> None:
    project = METADATA["project"]
    extras = [text for texts in project["optional-dependencies"].values() for text in texts]
    offered = _distributions(project["dependencies"] + extras, MAC) | _distributions(extras, OLDEST)
    offered |= _distributions(project["dependencies"], LINUX)  # kernels are executed on Linux alone

    needed = _needed()

    assert {"delocate", "pydantic", "sigstore", "uv"} <= needed.keys()  # the test sees each kind of use
    assert {name: files for name, files in needed.items() if name not in offered} == {}


def test_what_an_extra_brings_is_imported_where_it_is_used_and_never_at_the_start() -> None:
    project = METADATA["project"]
    always = _distributions(project["dependencies"], MAC)

    early = {
        f"{path.relative_to(PACKAGE)}: {module}"
        for path, tree in _trees()
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for module in _imported([node])
        if module not in sys.stdlib_module_names | OF_THE_TORCH | {"mps_build"}
        if DISTRIBUTION.get(module, module) not in always
    }

    assert early == set()


def test_a_session_brings_what_the_installed_package_has() -> None:
    groups = METADATA["dependency-groups"]
    always = METADATA["project"]["dependencies"]
    assert groups["tool"] == [text for text in always if text not in groups["llvm"]]
    assert set(groups["llvm"]) < set(always), "what pip cannot add to an environment of uv tool or pipx is always there"
    for name, extra in METADATA["project"]["optional-dependencies"].items():
        assert [text for text in groups[name] if isinstance(text, str)] == extra


def test_each_lock_brings_what_the_build_environment_is_requested() -> None:
    locks = sorted((ROOT / "build_recipes" / "locks").glob("*.txt"))
    assert locks
    for lock in locks:
        assert re.search(r"^build==", lock.read_text(encoding="utf-8"), re.MULTILINE), lock.name


def test_delocate_is_missed_before_the_compile(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'delocate'\" >&2\nexit 1\n")
    python.chmod(0o755)

    with pytest.raises(BuildEnvironmentError, match="No module named 'delocate'"):
        check_delocate(python)


def test_the_session_of_slow_tests_has_zig_and_runs_every_test_of_it() -> None:
    groups = METADATA["dependency-groups"]
    zig = [each for each in groups["tests_slow"] if isinstance(each, str) and each.startswith("ziglang==")]
    assert zig and zig[0] in groups["check_mm"], "the compiler that users get"
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    assert '"slow or zig"' in noxfile and '"MPS_BUILD_TESTS_NEED_ZIG": "1"' in noxfile


@pytest.mark.parametrize(("needed", "outcome"), [("1", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_where_zig_tests_belong_a_missing_zig_is_no_skip(
    needed: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ROOT / "tests/tooling/conftest.py"
    names = runpy.run_path(str(path))
    hook = names["pytest_runtest_setup"]
    monkeypatch.setitem(hook.__globals__, "find_spec", lambda name: None)
    monkeypatch.setenv("MPS_BUILD_TESTS_NEED_ZIG", needed)
    with pytest.raises(outcome, match="zig"):
        hook(SimpleNamespace(get_closest_marker=lambda name: name == "zig" or None))
