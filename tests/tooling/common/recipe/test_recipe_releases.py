"""The recipes in the folder: what each release states, the matrix and the tables made of them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.commands.shared.generated import between_marks, generated_files, schemas
from mps_build.common import strict_yaml
from mps_build.common.errors import UsageError
from mps_build.common.recipe.catalogue import (
    all_recipes,
    data_root,
    defaults_file,
    find_recipe,
    load_recipe,
    newest_stable,
    patches_root,
    recipes_root,
)
from mps_build.common.recipe.forms import support_table
from mps_build.common.recipe.model import Recipe
from mps_build.wheel_build.patches.file import read_patch
from packaging.version import Version

V2_6 = recipes_root() / "v2.6.0.yaml"
RELEASES = tuple(recipe for recipe in all_recipes() if recipe.release is not None)
NEWEST = max(recipe.release for recipe in RELEASES if recipe.release)
# Whose official wheels were read; what is stated of later ones may only rise.
READ = (
    *("1.12.1", "1.13.1", "2.0.1", "2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0"),
    *("2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"),
)


@pytest.mark.parametrize("argument", ["v2.6.0", "2.6.0", "2.6", "V2.6", " 2.6 ", str(V2_6)])
def test_a_recipe_is_found_by_version_minor_or_path(argument: str) -> None:
    assert find_recipe(argument).version == "2.6.0"


def test_minor_ten_is_not_minor_one() -> None:
    assert find_recipe("2.1").version == "2.1.2"
    assert find_recipe("2.10").version == "2.10.0"


def test_recipes_are_sorted_by_version_and_not_by_name() -> None:
    names = [recipe.name for recipe in all_recipes()]

    assert names.index("v2.9.1") < names.index("v2.10.0") < names.index("nightly")
    assert newest_stable().name == RELEASES[-1].name
    assert newest_stable().release == max(recipe.release for recipe in RELEASES if recipe.release)


@pytest.mark.parametrize(
    ("argument", "near"),
    [
        (f"2.{NEWEST.minor + 1}", f"v{NEWEST}"),
        ("v2.6.1", "v2.6.0"),
        ("2.7.0", "v2.7.1"),
        ("nigtly", "nightly"),
        ("smaple", "sample"),
    ],
)
def test_an_unknown_recipe_is_answered_with_near_names(argument: str, near: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_recipe(argument)

    assert argument in str(caught.value)
    assert near in str(caught.value.hint).split(";")[0]


def test_a_recipe_in_the_folder_bears_the_name_of_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "v2.7.0.yaml").write_text(V2_6.read_text())
    shutil.copy(defaults_file(), tmp_path)
    monkeypatch.setattr("mps_build.common.recipe.catalogue.recipes_root", lambda: tmp_path)

    with pytest.raises(UsageError, match=r"its name must be v2\.6\.0\.yaml"):
        load_recipe(tmp_path / "v2.7.0.yaml")


def test_no_minor_from_1_12_on_lacks_a_recipe() -> None:
    minors = {recipe.release.release[:2] for recipe in RELEASES if recipe.release}

    assert minors == {(1, 12), (1, 13), *((2, minor) for minor in range(NEWEST.minor + 1))}
    assert {recipe.version for recipe in RELEASES} >= set(READ)


@pytest.mark.parametrize("version", READ)
def test_a_release_states_what_the_evidence_says(version: str) -> None:
    """Floors, targets and sections by release, as read in the official wheels' machine code and headers."""
    recipe = find_recipe(version)
    minor = Version(version).release[:2]
    assert recipe.mps_floor == _by(minor, ((1, 12), "12.3"), ((2, 5), "13.0"), ((2, 9), "14.0"), ((2, 15), "15.0"))
    assert recipe.mps_message == _by(minor, ((1, 12), "12.3"), ((2, 6), "13.0"), ((2, 9), "14.0"), ((2, 15), "15.0"))
    assert recipe.deployment_target == _by(minor, ((1, 12), "11.0"), ((2, 6), "13.0"), ((2, 9), "14.0"))
    assert recipe.gate.cxx_standard == _by(minor, ((1, 12), "14"), ((2, 0), "17"), ((2, 12), "20"))
    assert recipe.wheel.openmp is recipe.gate.openmp is (minor >= (2, 2))
    assert recipe.host.sdk == _by(minor, ((1, 12), "12.3"), ((2, 2), "13.3"), ((2, 6), "14.0"), ((2, 12), "26.2"))
    sections = {
        (1, 12): {},
        (2, 6): {"metal_basic": "13.0", "metal_bfloat": "14.0"},
        (2, 9): {"metal_basic": "14.0"},
        (2, 12): {"metal_basic": "14.0", "metal_40": "26.0"},
        (2, 14): {"metal_basic": "14.0", "metal_40": "26.2"},
    }
    assert recipe.wheel.metal_sections == _by(minor, *sections.items())
    assert recipe.backend == ("scikit-build-core" if minor >= (2, 14) else "setuptools")
    assert recipe.evidence == ("wheel" if version == "2.15.0" else "tag")
    assert set(recipe.companions) == {"torchvision", "torchaudio"}


@pytest.mark.parametrize("recipe", [recipe for recipe in RELEASES if recipe.version not in READ], ids=lambda r: r.name)
def test_a_later_release_asks_for_no_less_than_the_one_before(recipe: Recipe) -> None:
    before = RELEASES[RELEASES.index(recipe) - 1]

    for field in ("mps_floor", "mps_message", "deployment_target"):
        assert Version(getattr(recipe, field)) >= Version(getattr(before, field)), field
    assert Version(recipe.host.sdk) >= Version(before.host.sdk)
    assert recipe.backend == "scikit-build-core"
    assert {"torchvision", "torchaudio"} >= set(recipe.companions)


def _by(minor: tuple[int, ...], *steps: tuple[tuple[int, int], Any]) -> Any:
    return [value for first, value in steps if minor >= first][-1]


@pytest.mark.parametrize("recipe", RELEASES, ids=lambda recipe: recipe.name)
def test_a_release_sets_what_every_mac_build_needs_and_says_why(recipe: Recipe) -> None:
    values = {variable.name: variable.value for variable in recipe.environment}

    assert values["USE_MPS"] == "1"
    assert values["USE_DISTRIBUTED"] == "1"
    assert values["PYTORCH_BUILD_VERSION"] == recipe.version
    assert values["MACOSX_DEPLOYMENT_TARGET"] == recipe.deployment_target
    assert values["_PYTHON_HOST_PLATFORM"] == f"macosx-{recipe.deployment_target}-arm64"
    assert values["USE_OPENMP"] == ("1" if recipe.gate.openmp else "0")
    assert not {"CC", "CXX", "PATH", "DEVELOPER_DIR"} & values.keys(), "these are the pipeline's"
    assert all(len(variable.reason) > 10 for variable in recipe.environment)


@pytest.mark.parametrize("recipe", all_recipes(), ids=lambda recipe: recipe.name)
def test_every_build_can_take_the_overrides_file(recipe: Recipe) -> None:
    """CMAKE_PROJECT_TOP_LEVEL_INCLUDES needs CMake 3.24; old releases do not configure with CMake 4 (B1)."""
    from packaging.requirements import Requirement

    cmake = next(Requirement(line) for line in recipe.build_requirements if line.startswith("cmake"))
    assert not cmake.specifier.contains("3.23")
    assert cmake.specifier.contains("3.31.6")
    if recipe.release is not None and recipe.release < Version("2.7"):
        assert not cmake.specifier.contains("4.0")


def test_the_release_without_an_evidenced_tag_says_so() -> None:
    recipe = find_recipe("2.15.0")

    assert recipe.commit == "d0f2af8b66b20da4baa50644c0cd3f887a2eae2e"
    assert any("tag v2.15.0" in line for line in recipe.unproved)


@pytest.mark.parametrize("version", ["2.3.1", "2.4.1", "2.6.0", "2.8.0", "2.9.1"])
def test_a_release_whose_official_wheel_is_of_another_commit_says_so(version: str) -> None:
    assert any("no parity check may compare" in line for line in find_recipe(version).unproved)


def test_the_order_of_patches_names_files_whose_fixes_are_known_breakages() -> None:
    used = {name for recipe in all_recipes() for name in (*recipe.patches, *recipe.rehearsal_patches)}

    assert used == {path.name for path in patches_root().glob("*.patch")}, "a patch that no recipe lists is dead"
    assert all(read_patch(patches_root() / name).description for name in used)


def test_each_recipe_names_its_schema_for_editors() -> None:
    for path in recipes_root().glob("*.yaml"):
        first = path.read_text().splitlines()[0]
        assert first == "# yaml-language-server: $schema=../schemas/recipe.schema.json", path.name


def test_the_schemas_are_the_ones_that_the_models_give() -> None:
    for name, text in schemas().items():
        assert (data_root() / "schemas" / f"{name}.schema.json").read_text() == text


def test_the_schema_knows_every_key_of_every_recipe() -> None:
    schema = json.loads((data_root() / "schemas" / "recipe.schema.json").read_text())

    for path in recipes_root().glob("*.yaml"):
        assert set(strict_yaml.unchecked(path.read_text())) <= set(schema["properties"]), path.name


def test_recipes_hold_no_conditions_and_no_templates() -> None:
    for path in recipes_root().glob("*.yaml"):
        assert not re.search(r"\{\{|\{%|\$\{|\bif:|\bwhen:", path.read_text()), path.name


def test_the_matrix_of_all_releases_fits_github(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("matrix", ["--json", str(tmp_path / "m.json")]) == 0

    printed = json.loads(capsys.readouterr().out)
    written = json.loads((tmp_path / "m.json").read_text())
    assert printed["include"] == written["include"]
    assert len(printed["include"]) == sum(len(recipe.pythons) for recipe in RELEASES) <= 256
    assert {"recipe": "v2.7.1", "python": "3.13t"}.items() <= next(
        entry for entry in printed["include"] if entry["python"] == "3.13t"
    ).items()


def test_the_matrix_can_be_one_entry_per_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("matrix", ["v2.6.0", "--per-recipe"]) == 0

    assert json.loads(capsys.readouterr().out)["include"][0]["python"] == "3.9,3.10,3.11,3.12,3.13"


def test_the_support_table_has_a_row_for_every_release() -> None:
    table = support_table(recipe for recipe in all_recipes() if recipe.release is not None)

    assert (
        "| 2.5.1 | 3.9 to 3.12 | 14.3 (14.3.1) | 13.3 | compiled at first use | 11.0 | 13.0 (its message says 12.3) |"
        in table
    )


@pytest.mark.parametrize("text", ["no marks\n", "{end}\n{begin}\n", "{begin}\n{begin}\n{end}\n"])
def test_a_page_without_its_marks_is_an_error(text: str) -> None:
    begin, end = "<!-- generated: x -->", "<!-- end: x -->"

    with pytest.raises(UsageError, match="each mark once"):
        between_marks(text.format(begin=begin, end=end), "x", "new", page="p.md")


def test_everything_generated_is_up_to_date() -> None:
    stale = [path.name for path, text in generated_files(data_root()) if path.read_text(encoding="utf-8") != text]

    assert not stale, "run `nox -s dev -- regenerate`"
