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
# For who changes them; the locks go in as one file.
LEFT_OUT = {"README.md", "ruff.toml", "locks"}


class DataOfTheTool(BuildHookInterface):
    """Adds the data to a wheel; an editable installation reads that of its clone."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name what goes into the wheel, by where it lies."""
        if version == "editable":
            return
        root = Path(self.root)
        for folder in FOLDERS:
            for path in sorted((root / folder).iterdir()):
                if path.name not in LEFT_OUT and not path.name.startswith((".", "__pycache__")):
                    build_data["force_include"][str(path)] = f"mps_build/data/{folder}/{path.name}"
        packing = runpy.run_path(str(root / "scripts" / "mps_build" / "common" / "recipe" / "packed_locks.py"))
        locks = sorted((root / "build_recipes" / "locks").glob("*.txt"))
        self.made = Path(tempfile.mkdtemp(prefix="mps-build-locks-"))
        packed = self.made / packing["PACKED"]
        packed.write_text(packing["pack"]({path.name: path.read_text("utf-8") for path in locks}), encoding="utf-8")
        build_data["force_include"][str(packed)] = f"mps_build/data/build_recipes/{packed.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made for it."""
        if version != "editable":
            shutil.rmtree(self.made)
