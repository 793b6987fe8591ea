"""Locks: exact versions with the hashes that fit one Python, on a Mac and on Linux; stale ones are found offline."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.recipe.catalogue import all_recipes, find_recipe, locks_root
from mps_build.common.recipe.locks import choose_files, lock_fault, make_lock, render_lock
from mps_build.common.recipe.model import Recipe
from rows import for_each

LOCKED = tuple((recipe, python) for recipe in all_recipes() if recipe.build_requirements for python in recipe.pythons)


def _package(*wheels: str, sdist: bool = False) -> dict[str, Any]:
    table: dict[str, Any] = {
        "name": "numpy",
        "version": "2.1.0",
        "wheels": [
            {"url": f"index/{wheel}", "hashes": {"sha256": f"{number:064x}"}} for number, wheel in enumerate(wheels)
        ],
    }
    if sdist:
        table["sdist"] = {"url": "index/numpy-2.1.0.tar.gz", "hashes": {"sha256": "f" * 64}}
    return table


MAC_AND_LINUX = (
    "numpy-2.1.0-cp313-cp313-macosx_11_0_arm64.whl",
    "numpy-2.1.0-cp313-cp313-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "numpy-2.1.0-cp313-cp313-manylinux_2_17_aarch64.manylinux2014_aarch64.whl",
    "numpy-2.1.0-cp313-cp313t-macosx_14_0_arm64.whl",
    "numpy-2.1.0-cp312-cp312-macosx_11_0_arm64.whl",
    "numpy-2.1.0-cp313-cp313-macosx_10_13_x86_64.whl",
    "numpy-2.1.0-cp313-cp313-win_amd64.whl",
    "numpy-2.1.0-cp313-cp313-musllinux_1_2_x86_64.whl",
)


def test_only_files_that_fit_the_python_and_the_platforms_are_kept() -> None:
    chosen = choose_files(_package(*MAC_AND_LINUX), "3.13")

    assert {int(digest, 16) for digest in chosen.hashes} == {0, 1, 2}
    assert chosen.lacking == ()


def test_a_free_threaded_python_takes_its_own_wheels_and_the_source_where_there_is_none() -> None:
    chosen = choose_files(_package(*MAC_AND_LINUX, sdist=True), "3.13t")

    assert chosen.hashes == (f"{3:064x}", "f" * 64)
    assert chosen.lacking == ("Linux x86_64", "Linux aarch64")


@pytest.mark.parametrize(
    ("wheel", "python", "fits"),
    [
        ("x-1-py3-none-any.whl", "3.7", True),
        ("x-1-py2.py3-none-any.whl", "3.13t", True),
        ("x-1-py310-none-any.whl", "3.9", False),
        ("x-1-py310-none-any.whl", "3.15t", True),
        ("x-1-cp37-abi3-macosx_11_0_arm64.whl", "3.12", True),
        ("x-1-cp313-abi3-macosx_11_0_arm64.whl", "3.12", False),
        ("x-1-cp37-abi3-macosx_11_0_arm64.whl", "3.13t", False),
        ("x-1-cp310-cp310-macosx_10_10_universal2.whl", "3.10", True),
        ("x-1-cp310-cp310-macosx_11_0_x86_64.whl", "3.10", False),
        ("x-1-cp31-cp31-macosx_11_0_arm64.whl", "3.10", False),
        ("x-1-pp310-pypy310_pp73-macosx_11_0_arm64.whl", "3.10", False),
        ("no wheel at all", "3.10", False),
    ],
)
def test_a_wheel_fits_by_its_tags(wheel: str, python: str, fits: bool) -> None:
    package = _package(wheel, sdist=True)

    assert (f"{0:064x}" in choose_files(package, python).hashes) is fits


def test_a_package_that_a_mac_cannot_install_is_refused() -> None:
    with pytest.raises(BuildEnvironmentError, match=r"numpy 2\.1\.0 has no file for macOS arm64 and Python 3\.12"):
        choose_files(_package("numpy-2.1.0-cp312-cp312-manylinux2014_x86_64.whl"), "3.12")


def test_a_lock_tells_whether_it_is_fresh_stale_edited_or_missing() -> None:
    requirements = ("numpy==2.1.0",)
    text = render_lock([choose_files(_package(*MAC_AND_LINUX), "3.13")], requirements=requirements, python="3.13")

    assert lock_fault(text, requirements, "3.13") is None
    assert "stale" in str(lock_fault(text, ("numpy==2.1.1",), "3.13"))
    assert "stale" in str(lock_fault(text, requirements, "3.13t"))
    assert "edited by hand" in str(lock_fault(text.replace("2.1.0", "2.1.9"), requirements, "3.13"))
    assert "edited by hand" in str(lock_fault(text + "evil==1\n", requirements, "3.13"))
    assert "missing" in str(lock_fault(None, requirements, "3.13"))
    assert "stale" in str(lock_fault("numpy==2.1.0\n", requirements, "3.13"))


@for_each(LOCKED, name=lambda row: row[0].lock_name(row[1]))
def test_every_recipe_has_a_fresh_lock_for_each_python(recipe: Recipe, python: str) -> None:
    text = (locks_root() / recipe.lock_name(python)).read_text()

    assert lock_fault(text, recipe.build_requirements, python) is None
    assert "://" not in text, "a lock stores no address of an index"
    for block in re.sub(r"\\\n\s*", "", text).splitlines():
        assert block.startswith("#") or re.fullmatch(r"[a-z0-9-]+==\S+( --hash=sha256:[0-9a-f]{64})+", block), block


@for_each(LOCKED, name=lambda row: row[0].lock_name(row[1]))
def test_what_is_built_from_source_finds_its_own_build_requirements_in_the_lock(recipe: Recipe, python: str) -> None:
    text = (locks_root() / recipe.lock_name(python)).read_text()

    if "built from the source distribution" in text:
        sources = re.findall(r"^# no wheel for macOS.*\n(\S+)==", text, re.MULTILINE)
        assert sources == ["pyyaml"], "only PyYAML's build is known"
        assert "\ncython==" in text
        assert "\nsetuptools==" in text


def test_every_lock_holds_what_a_build_imports() -> None:
    for recipe, python in LOCKED:
        if recipe.source.kind == "embedded":
            continue
        text = (locks_root() / recipe.lock_name(python)).read_text()
        wanted = {"numpy", "pyyaml", "typing-extensions", "cmake", "ninja", "build"}
        wanted |= {"scikit-build-core"} if recipe.backend == "scikit-build-core" else {"setuptools", "wheel"}
        assert all(f"\n{name}==" in text for name in wanted), (recipe.name, python)


def test_check_names_each_lock_that_is_not_as_the_recipes_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "locks"
    shutil.copytree(locks_root(), folder)
    (folder / "v2.6.0-py3.12.txt").unlink()
    (folder / "v2.6.0-py3.11.txt").write_text("numpy==1\n")
    (folder / "v9.9.9-py3.1.txt").write_text("numpy==1\n")
    monkeypatch.setattr("mps_build.commands.lock.locks_root", lambda: folder)

    assert main("lock", ["--check", "--json", str(tmp_path / "out.json")]) == 2

    faults = json.loads((tmp_path / "out.json").read_text())["faults"]
    assert {name: fault.split(":")[0] for name, fault in faults.items()} == {
        "v2.6.0-py3.12.txt": "is missing",
        "v2.6.0-py3.11.txt": "is stale",
        "v9.9.9-py3.1.txt": "is left over",
    }


def test_only_missing_and_stale_locks_are_made_and_left_over_ones_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "locks"
    shutil.copytree(locks_root(), folder)
    recipe = find_recipe("2.6")
    kept = (folder / "v2.6.0-py3.10.txt").read_text()
    (folder / "v2.6.0-py3.12.txt").unlink()
    (folder / "v9.9.9-py3.1.txt").write_text("numpy==1\n")
    monkeypatch.setattr("mps_build.commands.lock.locks_root", lambda: folder)
    asked: list[str] = []

    def made(requirements: tuple[str, ...], python: str) -> str:
        asked.append(python)
        return render_lock([], requirements=requirements, python=python)

    monkeypatch.setattr("mps_build.commands.lock.make_lock", made)

    assert main("lock", []) == 0

    assert asked == ["3.12"]
    assert lock_fault((folder / "v2.6.0-py3.12.txt").read_text(), recipe.build_requirements, "3.12") is None
    assert (folder / "v2.6.0-py3.10.txt").read_text() == kept
    assert not (folder / "v9.9.9-py3.1.txt").exists()


def test_without_uv_the_hint_names_the_session_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("mps_build.common.recipe.locks.find_spec", lambda name: None)

    with pytest.raises(BuildEnvironmentError, match="uv is needed") as caught:
        make_lock(["six"], "3.12")

    assert "nox -s lock" in str(caught.value.hint)


@pytest.mark.slow
def test_a_lock_installs_on_this_machine(tmp_path: Path) -> None:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    lock = locks_root() / find_recipe("2.6").lock_name(python)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    pip = [str(tmp_path / "venv/bin/python"), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(lock)]

    subprocess.run(pip, check=True)

    cmake = subprocess.run([str(tmp_path / "venv/bin/cmake"), "--version"], check=True, capture_output=True, text=True)
    assert cmake.stdout.startswith("cmake version 3.")


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("uv") or find_spec("uv")), reason="uv is not installed here")
def test_uv_resolves_for_a_mac_and_an_impossible_requirement_is_told() -> None:
    requirements = ["numpy==2.1.0", "pyyaml"]

    text = make_lock(requirements, "3.13t")

    assert lock_fault(text, requirements, "3.13t") is None
    assert "\nnumpy==2.1.0 \\\n" in text
    with pytest.raises(BuildEnvironmentError, match=r"no versions fit Python 3\.15"):
        make_lock(["numpy==99"], "3.15")
