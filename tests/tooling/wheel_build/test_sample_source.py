"""The sample's tree becomes git repositories whose commit depends on nothing but its files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from mps_build.common.errors import SourceError
from mps_build.common.packed import pack
from mps_build.common.process import Command, capture
from mps_build.common.recipe.catalogue import find_recipe, locks_root, recipes_root
from mps_build.common.recipe.embedded_source import materialise
from mps_build.common.recipe.locking import lock_fault
from mps_build.common.recipe.locks import lock_of
from mps_build.common.recipe.model import Recipe
from mps_build.common.reporting import SilentReporter
from mps_build.wheel_build.steps.prepare_source import fetch_source

SUBMODULE = "third_party/tiny_hash"


@pytest.fixture(name="recipe")
def _recipe() -> Recipe:
    return find_recipe("sample")


@pytest.fixture(name="copy")
def _copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(recipes_root() / "sample", tmp_path / "sample"))


def test_the_recipe_pins_the_commit_that_the_tree_makes(recipe: Recipe, tmp_path: Path) -> None:
    made = materialise(recipes_root() / "sample", tmp_path / "repositories", expected=recipe.commit)

    assert (made.commit, made.tag) == (recipe.commit, recipe.tag)


def test_the_wheel_of_the_tool_has_the_sample_in_one_file_that_makes_the_same_commit(
    recipe: Recipe, tmp_path: Path
) -> None:
    (tmp_path / "sample.txt").write_text(pack(recipes_root() / "sample"), encoding="utf-8")

    made = materialise(tmp_path / "sample", tmp_path / "repositories", expected=recipe.commit)

    assert (made.commit, made.url.name) == (recipe.commit, "sample.git")


def test_fetch_source_takes_the_sample_as_it_takes_any_repository(recipe: Recipe, tmp_path: Path) -> None:
    made = materialise(recipes_root() / "sample", tmp_path / "repositories")

    tree = fetch_source(
        repository=str(made.url),
        commit=made.commit,
        tag=recipe.tag,
        destination=tmp_path / "source",
        cache=tmp_path / "cache",
        environ={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        log=tmp_path / "fetch.log",
        reporter=SilentReporter(),
    )

    assert dict(tree.submodules) == dict(made.submodules)
    assert list(tree.submodules) == [SUBMODULE]
    pinned = recipes_root() / "sample" / SUBMODULE / "CMakeLists.txt"
    assert (tree.root / SUBMODULE / "CMakeLists.txt").read_bytes() == pinned.read_bytes()
    assert (tree.root / "CMakeLists.txt").is_file()


def test_modes_caches_and_the_users_git_configuration_change_no_commit(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = materialise(copy, tmp_path / "first")
    configuration = tmp_path / "gitconfig"
    configuration.write_text(
        "[core]\n\tautocrlf = true\n\texcludesFile = /dev/stdin\n"
        "[commit]\n\tgpgSign = true\n[init]\n\tdefaultObjectFormat = sha256\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    (copy / "tools" / "generate.py").chmod(0o755)
    (copy / "tools" / "__pycache__").mkdir()
    (copy / "tools" / "__pycache__" / "generate.cpython-311.pyc").write_bytes(b"x")
    (copy / ".DS_Store").write_bytes(b"x")

    assert materialise(copy, tmp_path / "second").commit == first.commit


@pytest.mark.parametrize("name", ["operators.txt", f"{SUBMODULE}/src/tiny_hash.cpp"])
def test_a_changed_file_changes_the_commit_and_is_refused(
    recipe: Recipe, copy: Path, tmp_path: Path, name: str
) -> None:
    with (copy / name).open("a") as file:
        file.write("\n")

    with pytest.raises(SourceError, match="is not what the recipe pins") as caught:
        materialise(copy, tmp_path / "repositories", expected=recipe.commit)

    assert materialise(copy, tmp_path / "again").commit in (caught.value.hint or "")
    assert not (tmp_path / "repositories").exists()


def test_a_tree_that_is_not_there_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="embedded source is missing"):
        materialise(tmp_path / "nothing", tmp_path / "repositories")


def test_the_submodule_is_a_gitlink_and_its_address_is_relative(tmp_path: Path) -> None:
    made = materialise(recipes_root() / "sample", tmp_path / "repositories")

    listing = capture(Command(argv=("git", "ls-tree", "-r", made.commit), cwd=made.url)).stdout

    assert f"160000 commit {made.submodules[0][1]}\t{SUBMODULE}" in listing.splitlines()
    assert f"{SUBMODULE}/" not in listing
    assert (made.url.parent / "tiny_hash.git").is_dir()


def test_the_setup_py_fixture_becomes_a_repository_without_submodules(tmp_path: Path) -> None:
    made = materialise(Path(__file__).parents[1] / "fixtures" / "setup_py_era", tmp_path / "repositories")

    assert made.submodules == ()


def test_what_a_cross_build_may_lack_is_declared(recipe: Recipe) -> None:
    assert recipe.cross is not None
    assert recipe.gate.use_mps and recipe.gate.can_compile_metal and recipe.wheel.metal_sections
    assert recipe.cross.gate.use_mps, "the .mm is compiled on Linux too"
    assert not recipe.cross.gate.can_compile_metal and not recipe.cross.wheel.metal_sections
    assert recipe.cross.wheel.members == recipe.wheel.members
    assert recipe.cross.gate.cxx_standard == recipe.gate.cxx_standard
    assert recipe.cross.wheel.rules == recipe.wheel.rules == "declared"


def test_every_python_of_the_sample_has_a_fresh_lock_with_zig(recipe: Recipe) -> None:
    text = (locks_root() / recipe.lock_name).read_text(encoding="utf-8")

    assert lock_fault(text, recipe.build_requirements, recipe.pythons) is None
    assert "\nziglang==" in text
    assert all("\nziglang==" in lock_of(recipe, python).text for python in recipe.pythons)
