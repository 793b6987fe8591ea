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
PACKED = {"locks", "sample"}


class DataOfTheTool(BuildHookInterface):
    """Adds the data to a wheel; an editable installation reads that of its clone."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name what goes into the wheel, by where it lies."""
        if version == "editable":
            return
        root = Path(self.root)
        packing = runpy.run_path(str(root / "scripts" / "mps_build" / "common" / "recipe" / "packed.py"))
        self.made = Path(tempfile.mkdtemp(prefix="mps-build-packed-"))
        for folder in FOLDERS:
            for path in sorted((root / folder).iterdir()):
                if path.name in LEFT_OUT or path.name.startswith((".", "__pycache__")):
                    continue
                source = path
                if path.name in PACKED:
                    source = packing["packed_file"](self.made / path.name)
                    source.write_text(packing["pack"](path), encoding="utf-8")
                build_data["force_include"][str(source)] = f"mps_build/data/{folder}/{source.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made for it."""
        if version != "editable":
            shutil.rmtree(self.made)
