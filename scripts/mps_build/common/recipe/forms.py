"""Recipes in other forms: written whole, as a JSON schema, as rows of the table of releases and of a matrix."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import yaml

from ..errors import UsageError
from . import model as recipe_model
from .defaults import DEFAULTS, SOURCES
from .model import Recipe


def as_yaml(recipe: Recipe) -> str:
    """Return a recipe with every field, as YAML that is read as the same recipe."""
    return yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=float("inf"))


def record(recipes: Iterable[Recipe]) -> str:
    """Return every field of every recipe as JSON, one variable of an environment a line."""
    return _lines({recipe.name: recipe.model_dump(mode="json") for recipe in recipes}) + "\n"


def changes(recorded: str, recipes: Iterable[Recipe]) -> list[str]:
    """Return which field of which recipe is not what the record says.

    Raises:
        ValueError: the record is not JSON.
    """
    before = json.loads(recorded)
    after = {recipe.name: recipe.model_dump(mode="json") for recipe in recipes}
    lines = [f"{name}: is new" for name in after if name not in before]
    lines += [f"{name}: is gone" for name in before if name not in after]
    for name in (name for name in after if name in before):
        was, now = dict(_fields(before[name])), dict(_fields(after[name]))
        lines += [
            f"{name}: {field} was {_said(was, field)}, is {_said(now, field)}"
            for field in dict.fromkeys([*now, *was])
            if _said(was, field) != _said(now, field)
        ]
    return lines


def _fields(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each field by its path; rows that have names go by them, and their order is a field too."""
    named = isinstance(value, list) and bool(value) and all(isinstance(row, dict) and "name" in row for row in value)
    if named:
        yield f"{at} (order)", [row["name"] for row in value]
        value = {str(row["name"]): {key: part for key, part in row.items() if key != "name"} for row in value}
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _fields(part, f"{at}.{key}" if at else str(key))
    else:
        yield at, value


def _said(fields: Mapping[str, Any], field: str) -> str:
    return json.dumps(fields[field], ensure_ascii=False) if field in fields else "missing"


def _lines(value: Any, depth: int = 0) -> str:
    """Return JSON in which a row of a list, and a list of plain values, stand in one line."""
    is_long = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(row, dict) for row in value))
    if depth > 2 or not value or not is_long:
        return json.dumps(value, ensure_ascii=False)
    begin, end = "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_lines(part, depth + 1)}" for key, part in value.items()]
    else:
        parts = [_lines(part, depth + 1) for part in value]
    indent = " " * (depth + 1)
    return f"{begin}\n" + ",\n".join(f"{indent}{part}" for part in parts) + f"\n{' ' * depth}{end}"


def model_schema() -> dict[str, Any]:
    """Return the schema of a recipe that is resolved, each field with the text that stands below it.

    pydantic's `use_attribute_docstrings` reads the same whenever the module is imported: a sixth of a command's start.
    """
    schema = Recipe.model_json_schema()
    for declared in ast.parse(inspect.getsource(recipe_model)).body:
        if not isinstance(declared, ast.ClassDef):
            continue
        found = schema if declared.name == Recipe.__name__ else schema["$defs"].get(declared.name, {})
        for field, text in zip(declared.body, declared.body[1:], strict=False):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                    described = {**found["properties"][name], "description": inspect.cleandoc(said)}
                    found["properties"][name] = dict(sorted(described.items()))
    return schema


def written_schema(model: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of three kinds of files: a recipe that extends the defaults, a whole one, and the defaults.

    Args:
        model: the schema of a recipe that is resolved.
        defaults: what defaults.yaml says.
    """
    schema = deepcopy(dict(model))
    definitions: dict[str, Any] = schema["$defs"]
    needed = schema.pop("required")
    parts = {key: name for key in defaults if (name := _definition(schema["properties"].get(key, {})))}
    # What a part must say is required of the file that must say it, no longer of the part wherever it stands.
    parts_need = {key: definitions[name].pop("required", []) for key, name in parts.items()}
    for name, needs in zip(parts.values(), parts_need.values(), strict=True):
        _still_ask(definitions, name, needs)
    _allow_sources(definitions["Variable"])
    extends = {"const": DEFAULTS, "description": "What this recipe does not say is what build_recipes/ says in it."}
    schema["properties"] = {"extends": extends, **schema["properties"]}
    texts = {"environment": {"items": {"properties": {"value": {"type": "string"}}}}}
    return {
        **schema,
        "if": {"required": ["extends"]},
        "then": {
            "required": [key for key in needed if key not in defaults],
            "properties": {
                key: {"required": [each for each in needs if each not in defaults[key]]}
                for key, needs in parts_need.items()
            },
        },
        "else": {
            "if": {"required": ["version"]},
            "then": {
                "required": needed,
                "properties": {**{key: {"required": needs} for key, needs in parts_need.items()}, **texts},
            },
        },
    }


def _definition(field: Mapping[str, Any]) -> str | None:
    """Return the name of the definition that a field refers to, alone or beside null."""
    ways = (field, *field.get("anyOf", ()))
    return next((way["$ref"].rpartition("/")[2] for way in ways if "$ref" in way), None)


def _still_ask(definitions: Mapping[str, Any], name: str, needs: list[str]) -> None:
    """Ask the same as before of a definition wherever another one refers to it."""
    for definition in definitions.values():
        for field in definition.get("properties", {}).values():
            if _definition(field) == name:
                field["required"] = needs


def _allow_sources(variable: dict[str, Any]) -> None:
    """Let a variable's value come from another field, or be null, which drops it."""
    variable["properties"]["value"] = {"title": "Value", "type": ["string", "null"]}
    variable["properties"]["from"] = {
        "description": "The field that the value is taken from.",
        "enum": list(SOURCES),
        "title": "From",
    }
    variable["required"] = ["name", "reason"]
    variable["oneOf"] = [{"required": ["value"]}, {"required": ["from"]}]


GITHUB_LIMIT = 256  # jobs of one matrix: https://docs.github.com/actions/reference/limits


def matrix(recipes: Iterable[Recipe], *, per_recipe: bool, only_default: bool) -> dict[str, Any]:
    """Return a matrix for a workflow: one entry per recipe and Python, or per recipe with all its Pythons.

    Raises:
        UsageError: it has more entries than GitHub runs.
    """
    include: list[dict[str, str]] = []
    for recipe in recipes:
        pythons = (recipe.default_python,) if only_default else recipe.pythons
        for python in [",".join(pythons)] if per_recipe else pythons:
            include.append(
                {
                    "recipe": recipe.name,
                    "python": python,
                    "xcode": recipe.host.xcode,
                    "macos": recipe.host.macos,
                    "deployment_target": recipe.deployment_target,
                }
            )
    if len(include) > GITHUB_LIMIT:
        raise UsageError(
            f"the matrix has {len(include)} entries, GitHub runs at most {GITHUB_LIMIT}",
            hint="name some recipes, or give --per-recipe or --default-python",
        )
    return {"include": include}


def support_table(recipes: Iterable[Recipe]) -> str:
    """Return the table of releases, in Markdown."""
    columns = (
        *("torch", "Pythons", "Xcode, at least (official)", "SDK", "Metal kernels", "wheel for macOS"),
        *("MPS works from macOS", "torchvision, torchaudio"),
    )
    rows = [_row(recipe) for recipe in recipes if recipe.release is not None]
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _row(recipe: Recipe) -> Sequence[str]:
    official = f" ({recipe.host.xcode_official})" if recipe.host.xcode_official else ""
    sections = recipe.wheel.metal_sections
    kernels = "compiled at first use"
    if sections:
        kernels = "precompiled, Metal 4 too" if "metal_40" in sections else "precompiled"
    floor = recipe.mps_floor
    if recipe.mps_message and recipe.mps_message != floor:
        floor += f" (its message says {recipe.mps_message})"
    return (
        recipe.version,
        _ranges(recipe.pythons),
        recipe.host.xcode + official,
        recipe.host.sdk,
        kernels,
        recipe.deployment_target,
        floor,
        ", ".join(recipe.companions.get(name, "-") for name in ("torchvision", "torchaudio")),
    )


def _ranges(pythons: Sequence[str]) -> str:
    """Return `3.9 to 3.13, 3.13t`: the plain ones as a range (they are without a gap), then the free-threaded."""
    plain = [python for python in pythons if not python.endswith("t")]
    first_to_last = f"{plain[0]} to {plain[-1]}" if len(plain) > 1 else "".join(plain)
    return ", ".join([*filter(None, [first_to_last]), *(python for python in pythons if python.endswith("t"))])
