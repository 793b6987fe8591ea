"""Locks: each recipe has one that is fresh, in a clone a file of its own, installed a part of one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.packed import pack
from mps_build.common.recipe.catalogue import all_recipes, find_recipe, locks_root
from mps_build.common.recipe.locking import lock_fault
from mps_build.common.recipe.locks import lock_file, lock_of, lock_text
from mps_build.common.recipe.model import Recipe
from packaging.requirements import Requirement
from rows import for_each

RECIPES = tuple(recipe for recipe in all_recipes() if recipe.build_requirements)


LOCKED = tuple((recipe, python) for recipe in RECIPES for python in recipe.pythons)


@for_each(RECIPES, name=lambda recipe: recipe.lock_name)
def test_every_recipe_has_a_fresh_lock_that_pip_reads(recipe: Recipe) -> None:
    text = (locks_root() / recipe.lock_name).read_text()

    assert lock_fault(text, recipe.build_requirements, recipe.pythons) is None
    assert "://" not in text, "a lock stores no address of an index"
    for block in re.sub(r"\\\n\s*", "", text).splitlines():
        if not block.startswith("#"):
            requirement, *hashes = block.split(" --hash=sha256:")
            assert Requirement(requirement).specifier
            assert hashes and all(re.fullmatch(r"[0-9a-f]{64} ?", each) for each in hashes), block


@for_each(LOCKED, name=lambda row: f"{row[0].name} {row[1]}")
def test_what_is_built_from_source_finds_its_own_build_requirements_in_the_lock(recipe: Recipe, python: str) -> None:
    text = lock_of(recipe, python).text

    if "built from the source distribution" in text:
        sources = re.findall(r"^# no wheel for macOS.*\n(\S+)==", text, re.MULTILINE)
        assert sources == ["pyyaml"], "only PyYAML's build is known"
        assert "\ncython==" in text
        assert "\nsetuptools==" in text


def test_every_lock_holds_what_a_build_imports() -> None:
    for recipe, python in LOCKED:
        if recipe.source.kind == "embedded":
            continue
        text = "\n" + lock_of(recipe, python).text
        wanted = {"numpy", "pyyaml", "typing-extensions", "cmake", "ninja", "build"}
        wanted |= {"scikit-build-core"} if recipe.backend == "scikit-build-core" else {"setuptools", "wheel"}
        assert all(f"\n{name}==" in text for name in wanted), (recipe.name, python)


def test_a_lock_has_nothing_for_a_python_that_it_was_not_made_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        BuildEnvironmentError, match=r"v2\.6\.0\.txt has nothing for Python 3\.14: its Pythons are 3\.9, "
    ):
        lock_of(find_recipe("2.6"), "3.14")
    (tmp_path / "v2.6.0.txt").write_text("numpy==1\n")
    monkeypatch.setattr("mps_build.common.recipe.locks.locks_root", lambda: tmp_path)
    with pytest.raises(BuildEnvironmentError, match="its first line names no Pythons"):
        lock_of(find_recipe("2.6"), "3.12")


@pytest.mark.slow
def test_a_lock_installs_on_this_machine(tmp_path: Path) -> None:
    lock = locks_root() / find_recipe("2.6").lock_name
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    pip = [str(tmp_path / "venv/bin/python"), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(lock)]

    subprocess.run(pip, check=True)

    cmake = subprocess.run([str(tmp_path / "venv/bin/cmake"), "--version"], check=True, capture_output=True, text=True)
    assert cmake.stdout.startswith("cmake version 3.")


def test_the_wheel_of_the_tool_has_the_locks_in_one_file_and_reads_each_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in locks_root().glob("*.txt")}
    packed = pack(locks_root())
    (tmp_path / "locks.txt").write_text(packed, encoding="utf-8")
    monkeypatch.setattr("mps_build.common.recipe.locks.locks_root", lambda: tmp_path / "locks")

    assert {name: lock_text(name) for name in texts} == texts
    assert lock_file("v2.6.0.txt") == tmp_path / "locks.txt"
    whole = re.findall(r"--hash=sha256:([0-9a-f]{64})", packed)
    assert len(whole) == len(set(whole)) > 100
    with pytest.raises(BuildEnvironmentError, match=r"v9\.9\.9\.txt is missing"):
        lock_text("v9.9.9.txt")
