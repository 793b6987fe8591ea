"""What recipes take from defaults.yaml, and that nobody changes what they mean without seeing it."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from git_history import git, repository
from jsonschema import Draft202012Validator
from mps_build.cli import main
from mps_build.commands.dev.matrix import run
from mps_build.commands.shared.generated import schemas
from mps_build.commands.shared.parser import parse_options
from mps_build.common import strict_yaml
from mps_build.common.console import Console
from mps_build.common.receipts import digest_of
from mps_build.common.recipe.catalogue import (
    all_recipes,
    defaults_file,
    find_recipe,
    load_recipe,
    recipe_file,
    recipes_root,
)
from mps_build.common.recipe.defaults import DEFAULTS
from mps_build.common.recipe.forms import as_yaml, changes, record
from mps_build.common.recipe.model import Recipe
from mps_build.publish.fleet import changed_recipes
from mps_build.wheel_build.editable import watched
from mps_build.wheel_build.planning import plan
from rich.console import Console as RichConsole

RECIPES = all_recipes()
EXTENDING = [recipe for recipe in RECIPES if "extends" in strict_yaml.read(recipe_file(recipe.name)).data]


def _with_defaults(recipe: Recipe, folder: Path, edit: Callable[[str], str]) -> Recipe:
    """Return what a recipe is with other defaults."""
    text = defaults_file().read_text(encoding="utf-8")
    assert edit(text) != text
    (folder / DEFAULTS).write_text(edit(text), encoding="utf-8")
    return load_recipe(recipe_file(recipe.name), defaults=folder / DEFAULTS)


def _with(folder: Path, rows: str) -> list[tuple[str, str]]:
    """Return names and values of v2.6.0's environment where its file has these rows."""
    text = recipe_file("v2.6.0").read_text(encoding="utf-8")
    path = folder / "mine.yaml"
    path.write_text(text.replace("patches:\n", f"environment:\n{rows}patches:\n", 1), encoding="utf-8")
    return [(row.name, row.value) for row in load_recipe(path).environment]


def _row(name: str, value: str) -> str:
    return f'  - name: {name}\n    value: {value}\n    reason: "for a test"\n'


def test_a_variable_takes_the_place_of_its_namesake_and_a_new_one_follows_the_one_before_it(tmp_path: Path) -> None:
    plain = _with(tmp_path, _row("USE_MPS", '"1"'))
    names = [name for name, _ in plain]

    changed = _with(tmp_path, _row("USE_CUDA", '"1"') + _row("USE_ROCM", '"0"') + _row("USE_MPS", '"0"'))
    assert changed[0] == ("USE_MPS", "0")
    place = names.index("USE_CUDA")
    assert changed[place : place + 2] == [("USE_CUDA", "1"), ("USE_ROCM", "0")]
    assert [name for name, _ in changed if name != "USE_ROCM"] == names

    assert _with(tmp_path, _row("USE_ROCM", '"0"')) == [*plain, ("USE_ROCM", "0")]


def test_a_variable_that_is_null_is_dropped(tmp_path: Path) -> None:
    assert "USE_CUDA" not in dict(_with(tmp_path, _row("USE_CUDA", "null")))
    assert "PYTORCH_BUILD_VERSION" not in {row.name for row in find_recipe("nightly").environment}


def test_a_mapping_is_joined_key_by_key_and_null_takes_it_away(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    text = recipe_file("v2.6.0").read_text(encoding="utf-8")
    path.write_text(text.replace("patches:\n", 'libomp:\n  version: "22.1"\npatches:\n', 1), encoding="utf-8")

    libomp, ours = load_recipe(path).libomp, find_recipe("v2.6.0").libomp
    assert libomp is not None and ours is not None
    assert libomp == ours.model_copy(update={"version": "22.1"})
    assert find_recipe("v1.12.1").libomp is None


def test_a_recipe_that_stands_alone_reads_no_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for recipe in RECIPES:
        (tmp_path / f"{recipe.name}.yaml").write_text(as_yaml(recipe), encoding="utf-8")
    monkeypatch.setattr("mps_build.common.recipe.catalogue.defaults_file", lambda: tmp_path / "absent.yaml")

    assert [load_recipe(tmp_path / f"{recipe.name}.yaml") for recipe in RECIPES] == list(RECIPES)


@pytest.mark.parametrize("recipe", EXTENDING, ids=lambda recipe: recipe.name)
def test_a_copy_elsewhere_is_the_same_recipe(recipe: Recipe, tmp_path: Path) -> None:
    shutil.copy(recipe_file(recipe.name), tmp_path / "mine.yaml")

    assert load_recipe(tmp_path / "mine.yaml") == recipe


def test_a_change_of_the_defaults_changes_the_digests_of_what_it_touches_alone(tmp_path: Path) -> None:
    def touched(edit: Callable[[str], str]) -> set[str]:
        changed = ((recipe, _with_defaults(recipe, tmp_path, edit)) for recipe in RECIPES)
        return {one.name for one, two in changed if digest_of(one.model_dump()) != digest_of(two.model_dump())}

    extending = {recipe.name for recipe in EXTENDING}
    assert touched(lambda text: text.replace("# What releases", "# What most releases")) == set()
    assert touched(lambda text: text.replace('value: "-arch arm64"', 'value: "-arch arm64e"')) == extending
    without = {recipe.name for recipe in RECIPES if recipe.libomp is None}
    assert touched(lambda text: text.replace("21.1.8", "22.1.0")) == extending - without
    assert len(extending) == len(RECIPES) - 1  # the sample is not torch


def test_what_is_shown_is_the_recipe(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for recipe in RECIPES:
        assert main("matrix", [recipe.name, "--show"]) == 0
        (tmp_path / "shown.yaml").write_text(capsys.readouterr().out, encoding="utf-8")
        assert load_recipe(tmp_path / "shown.yaml") == recipe


def test_what_is_shown_on_a_narrow_terminal_can_be_copied(tmp_path: Path) -> None:
    printed = io.StringIO()
    console = Console(rich=RichConsole(file=printed, force_terminal=True, width=40))

    run(parse_options("matrix", ["v2.6.0", "--show"]), console)

    (tmp_path / "shown.yaml").write_text(printed.getvalue(), encoding="utf-8")
    assert load_recipe(tmp_path / "shown.yaml") == find_recipe("v2.6.0")


@pytest.mark.parametrize("names", [[], ["v2.6.0", "v2.7.1"]])
def test_one_recipe_is_shown_at_a_time(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main("matrix", [*names, "--show"]) == 2
    assert "--show takes one recipe" in capsys.readouterr().err


def test_regenerate_says_which_field_of_which_recipe_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = defaults_file().read_text(encoding="utf-8")
    (tmp_path / DEFAULTS).write_text(text.replace('value: "-arch arm64"', 'value: "-arch arm64e"'), encoding="utf-8")
    monkeypatch.setattr("mps_build.common.recipe.catalogue.defaults_file", lambda: tmp_path / DEFAULTS)

    assert main("regenerate", ["--check"]) == 2

    said = capsys.readouterr().err
    assert "tests/recorded/recipes.json" in said
    assert 'v2.13.0: environment.ARCHFLAGS.value was "-arch arm64", is "-arch arm64e"' in said
    assert said.count("ARCHFLAGS") == len(EXTENDING)


def test_every_kind_of_change_is_reported_with_its_field() -> None:
    one, two = find_recipe("v2.6.0"), find_recipe("v2.7.1")
    rows = one.environment
    changed = one.model_copy(
        update={
            "environment": (rows[1], rows[0], *rows[3:], rows[2].model_copy(update={"reason": "another"})),
            "gate": one.gate.model_copy(update={"cxx_standard": None}),
            "companions": {"torchvision": "0.21.0"},
            "unproved": (),
        }
    )
    reported = changes(record([one, two]), [changed, find_recipe("v2.8.0")])

    assert [line.partition(" was ")[0] for line in reported] == [
        "v2.8.0: is new",
        "v2.7.1: is gone",
        "v2.6.0: unproved",
        "v2.6.0: environment (order)",
        "v2.6.0: environment._PYTHON_HOST_PLATFORM.reason",
        "v2.6.0: gate.cxx_standard",
        "v2.6.0: companions.torchaudio",
    ]
    assert 'gate.cxx_standard was "17", is null' in reported[5]
    assert reported[6].endswith('was "2.6.0", is missing')
    assert changes(record(RECIPES), RECIPES) == []


def test_the_record_holds_every_field_of_every_recipe() -> None:
    recorded = json.loads((recipes_root().parent / "tests" / "recorded" / "recipes.json").read_text(encoding="utf-8"))

    assert {name: Recipe.model_validate(fields) for name, fields in recorded.items()} == {
        recipe.name: recipe for recipe in RECIPES
    }
    assert all(set(fields) == set(Recipe.model_fields) for fields in recorded.values())


@pytest.fixture(name="clone")
def _clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with these recipes, whose branch `base` is its first commit."""
    recipes = {f"build_recipes/{path.name}": path.read_text(encoding="utf-8") for path in recipes_root().glob("*.yaml")}
    clone = tmp_path / "clone"
    repository(clone, recipes)
    shutil.copytree(recipes_root().parent / "patches", clone / "patches")
    git(clone, "branch", "base")
    monkeypatch.setattr("mps_build.common.recipe.catalogue.CHECKOUT", clone)
    return clone


def _commit(clone: Path, name: str, edit: Callable[[str], str]) -> None:
    path = clone / "build_recipes" / name
    path.write_text(edit(path.read_text(encoding="utf-8")), encoding="utf-8")
    git(clone, "commit", "-qam", "change")


def test_a_workflow_tries_the_recipes_that_a_change_of_the_defaults_touches(clone: Path) -> None:
    _commit(clone, DEFAULTS, lambda text: f"{text}# nothing\n")
    assert changed_recipes("base") == []

    _commit(clone, DEFAULTS, lambda text: text.replace("21.1.8", "22.1.0"))
    wanted = [recipe.name for recipe in RECIPES if recipe.release is not None and recipe.libomp is not None]
    assert changed_recipes("base") == wanted

    git(clone, "branch", "-f", "base")
    _commit(clone, "v2.6.0.yaml", lambda text: f"{text}# nothing\n")
    assert changed_recipes("base") == ["v2.6.0"]


def test_defaults_that_the_base_did_not_have_touch_every_release(clone: Path) -> None:
    git(clone, "mv", "build_recipes/defaults.yaml", "build_recipes/others.txt")
    git(clone, "commit", "-qm", "before")
    git(clone, "branch", "-f", "base")
    git(clone, "mv", "build_recipes/others.txt", "build_recipes/defaults.yaml")
    git(clone, "commit", "-qm", "after")

    assert changed_recipes("base") == [recipe.name for recipe in RECIPES if recipe.release is not None]


def _edits() -> dict[str, tuple[str, Callable[[dict[str, Any]], object]]]:
    return {
        "a whole one without a part of gate": ("whole", lambda data: data["gate"].pop("openmp")),
        "a whole one without a part of libomp": ("whole", lambda data: data["libomp"].pop("sha256")),
        "a whole one without a source": ("whole", lambda data: data.pop("source")),
        "a whole one that drops a variable": ("whole", lambda data: data["environment"][0].update(value=None)),
        "a value and its source": ("whole", lambda data: data["environment"][0].update({"from": "version"})),
        "one without a host": ("v2.13.0", lambda data: data.pop("host")),
        "one without its SDK": ("v2.13.0", lambda data: data["host"].pop("sdk")),
        "one without a version": ("v2.13.0", lambda data: data.pop("version")),
        "one that extends another": ("v2.13.0", lambda data: data.update(extends="v2.12.1.yaml")),
        "one with a key too many": ("v2.13.0", lambda data: data.update(backendd="x")),
        "defaults from a field that is none": ("defaults", lambda data: data["environment"][1].update({"from": "tag"})),
        "defaults without a value": ("defaults", lambda data: data["environment"][0].pop("value")),
        "defaults with a key too many": ("defaults", lambda data: data["gate"].update(omp=True)),
        "another system's gate in part": ("sample", lambda data: data["cross"]["gate"].pop("openmp")),
    }


def _written(name: str) -> dict[str, Any]:
    text = as_yaml(find_recipe("v2.13.0")) if name == "whole" else None
    data: dict[str, Any] = strict_yaml.unchecked(text or (recipes_root() / f"{name}.yaml").read_text(encoding="utf-8"))
    return data


def test_the_schema_takes_every_file_as_it_is_written() -> None:
    schema = Draft202012Validator(json.loads(schemas()["recipe"]))

    schema.check_schema(schema.schema)
    for name in (*(path.stem for path in recipes_root().glob("*.yaml")), "whole"):
        assert not list(schema.iter_errors(_written(name))), name


@pytest.mark.parametrize("what", _edits())
def test_the_schema_refuses_what_the_reader_refuses(what: str) -> None:
    name, edit = _edits()[what]
    data = _written(name)
    edit(data)

    assert list(Draft202012Validator(json.loads(schemas()["recipe"])).iter_errors(data))


@pytest.mark.parametrize("argument", ["sample", "mine.yaml"])
def test_an_editable_build_goes_the_whole_way_again_where_its_recipe_or_the_defaults_changed(
    argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recipe of the caller's own is the file that he named, not ours of that version."""
    for name in ("MPS_BUILD_WORK", "MPS_BUILD_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    file = shutil.copy(recipe_file("sample"), tmp_path / "mine.yaml") if "." in argument else recipe_file("sample")
    options = parse_options("build_wheel", [str(file)])
    request, _ = plan(options)

    assert {file, defaults_file()} <= set(watched(options, request))
