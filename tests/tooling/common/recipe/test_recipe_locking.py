"""How locks are made: versions, the hashes that fit a Python on a Mac and on Linux; stale ones are found offline."""

from __future__ import annotations

import json
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.recipe.catalogue import find_recipe, locks_root
from mps_build.common.recipe.locking import Chosen, choose_files, lock_fault, make_lock, render_lock
from mps_build.common.recipe.locks import for_python


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
    requirements, pythons = ("numpy==2.1.0",), ("3.13",)
    text = render_lock({"3.13": [choose_files(_package(*MAC_AND_LINUX), "3.13")]}, requirements=requirements)

    assert lock_fault(text, requirements, pythons) is None
    assert "stale" in str(lock_fault(text, ("numpy==2.1.1",), pythons))
    assert "stale" in str(lock_fault(text, requirements, ("3.13", "3.13t")))
    assert "edited by hand" in str(lock_fault(text.replace("2.1.0", "2.1.9"), requirements, pythons))
    assert "edited by hand" in str(lock_fault(text + "evil==1\n", requirements, pythons))
    assert "missing" in str(lock_fault(None, requirements, pythons))
    assert "stale" in str(lock_fault("numpy==2.1.0\n", requirements, pythons))


def _chosen(version: str, *, name: str = "numpy", lacking: tuple[str, ...] = ()) -> Chosen:
    return Chosen(name=name, version=version, hashes=("0" * 64, version.rjust(64, "1")[:64]), lacking=lacking)


def test_each_python_takes_its_own_version_out_of_one_lock() -> None:
    everywhere = _chosen("6", name="pyyaml")
    there = {
        "3.9": (_chosen("1"), everywhere),
        "3.10": (_chosen("2"), everywhere),
        "3.13": (_chosen("3"), everywhere),
        "3.13t": (_chosen("3"), _chosen("6", name="pyyaml", lacking=("macOS arm64",))),
    }
    text = render_lock(there, requirements=())

    for python, packages in there.items():
        mine = for_python(text, python)
        names = re.findall(r"^(\S+)==(\S+) \\$", mine, re.MULTILINE)
        assert names == [(package.name, package.version) for package in packages]
        assert ("# no wheel for macOS arm64: built from" in mine) is (python == "3.13t")


def test_versions_that_no_marker_can_tell_apart_are_refused() -> None:
    with pytest.raises(BuildEnvironmentError, match="takes another version than its neighbours"):
        render_lock({"3.13": [_chosen("1")], "3.13t": [_chosen("2")]}, requirements=())
    with pytest.raises(BuildEnvironmentError, match="takes another version than its neighbours"):
        render_lock({"3.9": [_chosen("1")], "3.10": [_chosen("2")], "3.11": [_chosen("1")]}, requirements=())


def test_check_names_each_lock_that_is_not_as_the_recipes_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "locks"
    shutil.copytree(locks_root(), folder)
    (folder / "v2.6.0.txt").unlink()
    (folder / "v2.7.1.txt").write_text("numpy==1\n")
    (folder / "v9.9.9.txt").write_text("numpy==1\n")
    monkeypatch.setattr("mps_build.commands.dev.lock.locks_root", lambda: folder)

    assert main("lock", ["--check", "--json", str(tmp_path / "out.json")]) == 2

    faults = json.loads((tmp_path / "out.json").read_text())["faults"]
    assert {name: fault.split(":")[0] for name, fault in faults.items()} == {
        "v2.6.0.txt": "is missing",
        "v2.7.1.txt": "is stale",
        "v9.9.9.txt": "is left over",
    }


def test_only_missing_and_stale_locks_are_made_and_left_over_ones_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "locks"
    shutil.copytree(locks_root(), folder)
    recipe = find_recipe("2.6")
    kept = (folder / "v2.7.1.txt").read_text()
    (folder / "v2.6.0.txt").unlink()
    (folder / "v9.9.9.txt").write_text("numpy==1\n")
    monkeypatch.setattr("mps_build.commands.dev.lock.locks_root", lambda: folder)
    made: list[str] = []

    def resolved(requirements: tuple[str, ...], python: str) -> tuple[Chosen, ...]:
        made.append(python)
        return (_chosen("1"),)

    monkeypatch.setattr("mps_build.common.recipe.locking.resolve", resolved)

    assert main("lock", []) == 0

    assert made == list(recipe.pythons)
    assert lock_fault((folder / "v2.6.0.txt").read_text(), recipe.build_requirements, recipe.pythons) is None
    assert (folder / "v2.7.1.txt").read_text() == kept
    assert not (folder / "v9.9.9.txt").exists()


def test_a_lock_that_a_new_one_makes_says_who_made_it() -> None:
    assert render_lock({"3.13": [_chosen("1")]}, requirements=()).startswith(
        "# Made by `nox -s dev -- lock`, for Python 3.13,"
    )


def test_without_uv_the_hint_names_the_session_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("mps_build.common.recipe.locking.find_spec", lambda name: None)

    with pytest.raises(BuildEnvironmentError, match="uv is needed") as caught:
        make_lock(["six"], ("3.12",))

    assert "nox -s dev -- lock" in str(caught.value.hint)


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("uv") or find_spec("uv")), reason="uv is not installed here")
def test_uv_resolves_for_a_mac_and_an_impossible_requirement_is_reported() -> None:
    requirements = ["numpy==2.1.0", "pyyaml"]

    text = make_lock(requirements, ("3.13", "3.13t"))

    assert lock_fault(text, requirements, ("3.13", "3.13t")) is None
    assert "\nnumpy==2.1.0 \\\n" in text
    with pytest.raises(BuildEnvironmentError, match=r"no versions fit Python 3\.15"):
        make_lock(["numpy==99"], ("3.15",))
