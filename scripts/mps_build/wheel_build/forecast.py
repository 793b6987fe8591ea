"""What a build would do, before an hour is spent: from the request, earlier receipts, and published times."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from mps_build.common.json_text import read_json
from mps_build.common.workspace import Workspace

from .build_request import BuildRequest

# Published for official settings on GitHub's macos-26-xlarge, April 2026: a whole build, and each further Python.
# https://github.com/pytorch/pytorch/pull/181171
PUBLISHED_MINUTES = (35, 7)
STEPS = ("fetch_source", "create_environment", "configure", "compile_wheel", "finish_wheel", "audit_wheel")


def forecast(request: BuildRequest, workspace: Workspace) -> dict[str, Any]:
    """Return what would be built, with what, and how long it may take."""
    recipe, compilers = request.recipe, request.compilers
    host = request.host.facts
    folder = workspace.root
    while not folder.exists():
        folder = folder.parent
    return {
        "recipe": recipe.name,
        "source": request.source.repository,
        "commit": request.source.commit,
        "evidence": recipe.evidence,
        "patches": [path.name for path in request.source.patches],
        "pythons": list(request.pythons),
        "interpreters": {name: str(search.result()) for name, search in compilers.interpreters.items()} or None,
        "passed_over": [line for search in compilers.interpreters.values() for line in search.skipped_lines()],
        "profile": request.profile,
        "version": request.version(dirty=False) or recipe.version,
        "toolchain": {"name": compilers.toolchain.name, **compilers.toolchain.facts},
        "environment": {variable.name: variable.value for variable in recipe.environment} | dict(compilers.settings),
        "jobs": compilers.jobs,
        "memory_gb": (host.get("memory_bytes") or 0) >> 30 or None,
        "free_gb": None if host.get("recorded_on") else shutil.disk_usage(folder).free // 10**9,
        "work": str(workspace.root),
        "wheelhouse": str(request.wheel.folder),
        **_time(request, workspace.receipts),
    }


def _time(request: BuildRequest, receipts: Path) -> dict[str, Any]:
    """Return the seconds that this tree's steps took last time, else what others published."""
    measured = 0.0
    for path in receipts.glob("*.json") if receipts.is_dir() else ():
        try:
            receipt = read_json(path)
        except (OSError, ValueError):
            continue
        if isinstance(receipt, dict) and receipt.get("step") in STEPS:
            measured += float(receipt.get("seconds", 0.0))
    if measured:
        return {"minutes": round(measured / 60, 1), "minutes_from": "this tree's receipts"}
    if request.wheel.contents.rules != "torch":
        return {"minutes": None, "minutes_from": "no receipt yet"}
    first, further = PUBLISHED_MINUTES
    minutes = first + further * (len(request.pythons) - 1)
    return {"minutes": minutes, "minutes_from": "published for macos-26-xlarge; an older Mac takes longer"}
