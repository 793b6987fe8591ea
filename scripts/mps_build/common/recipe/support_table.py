"""What the recipes support, as rows: for the table of releases and for a workflow's matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import UsageError
from .model import Recipe

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
