"""Which libraries go with a torch: the table, what it refuses, and the page that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.common.recipe.catalogue import all_recipes
from mps_build.verify.training.libraries import (
    TABLE,
    Versions,
    choose,
    installed_fault,
    load_versions,
    python_release,
    refuse_old_torch,
    table_rows,
)
from packaging.version import Version


@pytest.fixture(scope="module")
def table() -> Versions:
    return load_versions()


def test_every_release_from_1_13_on_has_libraries_for_each_of_its_pythons(table: Versions) -> None:
    pairs = 0
    for recipe in all_recipes():
        if recipe.version == "sample" or recipe.name in ("sample", "nightly"):
            continue
        if Version(recipe.version) < Version("1.13"):
            with pytest.raises(UsageError, match="82707"):
                choose(table, torch=recipe.version, python="3.10")
            continue
        for python in recipe.pythons:
            chosen = choose(table, torch=recipe.version, python=python)
            for library in ("accelerate", "transformers"):
                floor = table.floors.of(library, getattr(chosen, library))
                assert floor is not None
                assert Version(recipe.version) >= Version(floor.torch), (recipe.version, python, library)
                assert python_release(python) >= Version(floor.python), (recipe.version, python, library)
            pairs += 1
    assert pairs > 60


def test_a_newer_torch_never_gets_older_libraries(table: Versions) -> None:
    versions = [
        "1.13.1",
        "2.0.1",
        "2.1.2",
        "2.2.2",
        "2.4.1",
        "2.5.1",
        "2.6.0",
        "2.13.0",
        "2.15.0",
        "2.17.0.dev20270101",
    ]
    for python in ("3.9", "3.10", "3.12"):
        chosen = [choose(table, torch=version, python=python) for version in versions]
        assert chosen == sorted(chosen, key=lambda row: (Version(row.transformers), Version(row.accelerate)))


@pytest.mark.parametrize(
    ("torch", "python", "transformers", "accelerate"),
    [
        ("1.13.1", "3.10", "4.46.3", "1.0.1"),
        ("2.2.2", "3.8", "4.46.3", "1.0.1"),
        ("2.2.2", "3.12", "4.57.6", "1.10.1"),
        ("2.6.0+mps.g1eba9b3", "3.13", "5.23.0", "1.15.0"),
        ("2.6.0", "3.10", "5.20.2", "1.15.0"),
        ("2.16.0.dev20261101", "3.13t", "5.23.0", "1.15.0"),
    ],
)
def test_the_newest_that_fits_is_chosen(
    table: Versions, torch: str, python: str, transformers: str, accelerate: str
) -> None:
    chosen = choose(table, torch=torch, python=python)

    assert (chosen.transformers, chosen.accelerate) == (transformers, accelerate)


def test_numpy_2_is_kept_from_a_torch_that_was_compiled_against_1(table: Versions) -> None:
    assert "numpy<2" in choose(table, torch="2.2.2", python="3.11").requirements(("accelerate",))
    assert "numpy" in choose(table, torch="2.3.1", python="3.11").requirements(("accelerate",))


def test_accelerate_alone_does_not_bring_transformers_and_trainer_brings_accelerate(table: Versions) -> None:
    chosen = choose(table, torch="2.13.0", python="3.12")

    assert not any("transformers" in wanted for wanted in chosen.requirements(("accelerate",)))
    assert {"accelerate==1.15.0", "transformers==5.23.0"} <= set(chosen.requirements(("transformers",)))


def test_a_torch_too_old_for_the_requested_transformers_learns_which_version_fits(table: Versions) -> None:
    with pytest.raises(UsageError) as caught:
        choose(table, torch="2.2.2", python="3.11", given={"transformers": "5.23.0"})

    assert "torch 2.2.2 is too old for transformers 5.23.0, which needs torch 2.6 or later" in str(caught.value)
    assert "transformers 4.57.6 fits" in str(caught.value)
    assert "--transformers 4.57.6" in str(caught.value.hint)


def test_the_same_is_said_before_anything_is_fetched(table: Versions) -> None:
    with pytest.raises(UsageError, match=r"accelerate 1\.0\.1 fits"):
        refuse_old_torch(table, "1.13.1", {"accelerate": "1.15.0"})

    refuse_old_torch(table, None, {"accelerate": "1.15.0"})


def test_a_python_too_old_for_the_requested_version_is_refused_so(table: Versions) -> None:
    with pytest.raises(UsageError, match=r"Python 3\.10 is too old for transformers 5\.23\.0, which needs 3\.11"):
        choose(table, torch="2.13.0", python="3.10", given={"transformers": "5.23.0"})


@pytest.mark.parametrize(("version", "says"), [("newest", "is not a version"), ("4.20.0", "is older than any")])
def test_a_version_that_is_none_or_unsupported_is_refused(table: Versions, version: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        choose(table, torch="2.13.0", python="3.12", given={"transformers": version})


def test_a_requested_version_that_fits_is_taken(table: Versions) -> None:
    chosen = choose(table, torch="2.13.0", python="3.12", given={"transformers": "4.57.6"})

    assert (chosen.transformers, chosen.accelerate) == ("4.57.6", "1.15.0")


def test_1_12_is_refused_with_the_issue_that_says_why(table: Versions) -> None:
    with pytest.raises(UsageError, match=r"torch 1\.12\.1 is too old .*pytorch/issues/82707"):
        refuse_old_torch(table, "1.12.1")


def test_libraries_that_somebody_installed_are_held_against_their_torch(table: Versions) -> None:
    fault = installed_fault(
        table, torch="2.4.1", python="3.11", versions={"accelerate": "1.15.0", "transformers": "5.23.0"}
    )

    assert fault == (
        "torch 2.4.1 is too old for transformers 5.23.0, which needs torch 2.6 or later; transformers 5.14.1 fits"
    )
    assert installed_fault(table, torch="2.13.0", python="3.11", versions={"transformers": "5.23.0"}) is None


def test_what_was_tested_is_what_would_be_chosen(table: Versions) -> None:
    assert table.tested, "nothing was ever run"
    for row in table.tested:
        chosen = choose(table, torch=row.torch, python=row.python)
        floors = {name: table.floors.of(name, getattr(row, name)) for name in ("accelerate", "transformers")}
        assert all(floor and Version(floor.torch) <= Version(row.torch) for floor in floors.values()), row
        assert Version(row.transformers) <= Version(chosen.transformers), row


def test_a_fault_in_the_table_is_said_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "versions.yaml"
    path.write_text(TABLE.read_text().replace('torch: ">=2.6", python: ">=3.11"', 'torch: 2.10, python: ">=3.11"'))

    with pytest.raises(UsageError, match=r"versions\.yaml:\d+: .*must be text"):
        load_versions(path)


PAGE = Path(__file__).parents[4] / "docs" / "verify" / "promises_libraries.md"
BEGIN, END = (
    "<!-- version table: held by tests/tooling/verify/training/test_training_libraries.py -->\n",
    "<!-- end of the version table -->",
)


def version_table() -> str:
    """Return the table in Markdown, as it must stand in the page."""
    releases = {
        recipe.version: tuple(recipe.pythons)
        for recipe in all_recipes()
        if recipe.name[:1] == "v" and Version(recipe.version) >= Version("1.13")
    }
    rows = [("torch", "Python", "Accelerate", "Transformers"), ("---",) * 4, *table_rows(load_versions(), releases)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def test_the_page_says_which_versions_go_with_which_torch() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page.partition(BEGIN)[2].partition(END)[0] == version_table(), f"it should be:\n{version_table()}"
