"""What the wheel of the tool holds beside its code: the folders that a clone has, less what no command reads."""

from __future__ import annotations

import runpy
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# They stand as they are in a clone; installed, they lie beside the code (`data_root`).
FOLDERS = ("build_recipes", "patches", "benchmarks/device", "tests/device", "tests/training")
# For who changes them.
LEFT_OUT = {"README.md", "ruff.toml"}
# Of many small files, a sixth of the wheel's: each goes in as one.
PACKED = (
    "build_recipes/locks",
    "build_recipes/sample",
    "scripts/mps_build/simulation/native",
    "scripts/mps_build/wheel_build/objc/frameworks",
)


class DataOfTheTool(BuildHookInterface):
    """Adds the data to a wheel; an editable installation reads that of its clone."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name what goes into the wheel, by where it lies."""
        if version == "editable":
            return
        root = Path(self.root)
        packing = runpy.run_path(str(root / "scripts" / "mps_build" / "common" / "packed.py"))
        self.made = Path(tempfile.mkdtemp(prefix="mps-build-packed-"))
        for folder in FOLDERS:
            for path in sorted((root / folder).iterdir()):
                is_left_out = path.name in LEFT_OUT or path.name.startswith((".", "__pycache__"))
                if not is_left_out and f"{folder}/{path.name}" not in PACKED:
                    build_data["force_include"][str(path)] = f"mps_build/data/{folder}/{path.name}"
        for folder in PACKED:
            made = packing["packed_file"](self.made / Path(folder).name)
            made.write_text(packing["pack"](root / folder), encoding="utf-8")
            place = folder.removeprefix("scripts/") if folder.startswith("scripts/") else f"mps_build/data/{folder}"
            build_data["force_include"][str(made)] = str(packing["packed_file"](Path(place)))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made for it."""
        if version != "editable":
            shutil.rmtree(self.made)
