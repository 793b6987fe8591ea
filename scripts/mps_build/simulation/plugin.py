"""What a simulated program can import of ours: the pytest plugin with the known issues, and the answers of a Mac."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from mps_build.common.files import write_whole
from mps_build.common.known_issues import load_issues
from mps_build.common.receipts import digest_of
from mps_build.common.recipe.catalogue import data_root
from mps_build.common.workspace import cache_folder, remove_tree

_PLUGIN = Path(__file__).resolve().parents[1] / "pytest_plugin"
_AS_MAC = Path(__file__).parent / "python" / "as_mac.py"


def plugin_folder() -> Path:
    """Return the folder that holds `mps_build` as simulated programs see it, made once for each of its versions.

    The tool's own folder would not do: a simulated program has another Python, and packages of its own.
    """
    issues = data_root() / "tests/device/known_issues.yaml"
    sources = sorted(_PLUGIN.glob("*.py"))
    digest = digest_of([path.read_text(encoding="utf-8") for path in (*sources, _AS_MAC, issues)])[:16]
    home = cache_folder() / "simulation" / "plugin" / digest
    if home.is_dir():
        return home
    part = home.with_name(f".{digest}.{os.getpid()}")
    package = part / "mps_build" / _PLUGIN.name
    package.mkdir(parents=True, exist_ok=True)
    (part / "mps_build" / "__init__.py").touch()
    shutil.copyfile(_AS_MAC, package.parent / _AS_MAC.name)
    for path in sources:
        shutil.copyfile(path, package / path.name)
    rows = [{**issue.model_dump(mode="json"), "where": list(issue.places)} for issue in load_issues(issues)]
    write_whole(package / "known_issues.json", json.dumps(rows, indent=1) + "\n")
    try:
        part.rename(home)
    except OSError:  # another process was faster
        remove_tree(part)
    return home
