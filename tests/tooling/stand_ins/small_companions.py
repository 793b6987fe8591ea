"""A torch wheel of nothing but metadata, a tree that looks like torchvision's, and a plan for them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from mps_build.common.environment import Toolchain
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.wheel_build.companions.plan import PROJECTS, CompanionPlan, SourceChoice, given_wheel

RECIPE = find_recipe("v2.6.0")


MAC = "torch-2.6.0+mps.g1eba9b3-cp312-cp312-macosx_13_0_arm64.whl"


def torch_wheel(folder: Path, name: str = MAC) -> Path:
    """Write a wheel of nothing but metadata, sound enough to be read."""
    folder.mkdir(parents=True, exist_ok=True)
    distribution, version, *_ = name.split("-")
    with zipfile.ZipFile(folder / name, "w") as archive:
        text = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        if distribution != "torch":
            text += "Requires-Dist: torch==2.6.0+mps.g1eba9b3\n"
        archive.writestr(f"{distribution}-{version}.dist-info/METADATA", text)
    return folder / name


def vision_tree(folder: Path, version: str = "0.21.0") -> Path:
    (folder / "torchvision").mkdir(parents=True)
    (folder / "torchvision" / "__init__.py").write_text("")
    (folder / "version.txt").write_text(f"{version}\n")
    (folder / "setup.py").write_text("")
    return folder


def plan(tmp_path: Path, **changed: Any) -> CompanionPlan:
    torch = given_wheel(torch_wheel(tmp_path / "torch"), RECIPE, python=None, system="macos")
    given: dict[str, Any] = {
        "recipe": RECIPE,
        "torch": torch,
        "sources": {name: SourceChoice(kind="git", place=PROJECTS[name].repository) for name in PROJECTS},
        "toolchain": Toolchain(name="xcode"),
        "jobs": 1,
        "wheelhouse": tmp_path / "wheelhouse",
    }
    return CompanionPlan(**{**given, **changed})
