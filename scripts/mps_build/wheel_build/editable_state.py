"""What `build_wheel --editable` remembers between two runs, so that the second begins with ninja.

Light on purpose: the loop of edit and import must not wait for recipes to be read and hosts to be probed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mps_build import __version__
from mps_build.common.files import write_whole
from mps_build.common.json_text import read_json
from mps_build.common.receipts import digest_of
from mps_build.common.workspace import Workspace, work_folder

from .artifacts import Editable, editable_of
from .options import BuildOptions

_SCHEMA = 1
# What neither the tree nor the venv depends on.
_PASSING = ("jobs", "offline", "wheelhouse", "given")
_OF_THE_CALLER = ("DEVELOPER_DIR", "SDKROOT", "MACOSX_DEPLOYMENT_TARGET")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """One editable build that stands: where it works, what it is, and how it is made anew."""

    workspace: Workspace
    editable: Editable
    module: str
    recipe: str


def remember(options: BuildOptions, found: Remembered, *, watched: Iterable[Path]) -> None:
    """Keep a build for the next run with the same options.

    Args:
        watched: files whose change means that the whole way must be gone again: recipe, lock, patches, Xcode.
    """
    document = {
        "schema": _SCHEMA,
        "tool": __version__,
        "workspace": str(found.workspace.root),
        "module": found.module,
        "recipe": found.recipe,
        "watched": {str(path): _stamp(path) for path in watched},
        "editable": found.editable.document(),
    }
    write_whole(_place(options), json.dumps(document, indent=2) + "\n")


def recall(options: BuildOptions) -> Remembered | None:
    """Return the build that these options made last time, if nothing that it rests on has changed."""
    try:
        document = read_json(_place(options))
    except (OSError, ValueError):
        return None
    if not isinstance(document, dict) or (document.get("schema"), document.get("tool")) != (_SCHEMA, __version__):
        return None
    if any(_stamp(Path(path)) != stamp for path, stamp in document["watched"].items()):
        return None
    editable = editable_of(document["editable"])
    # The interpreter is a link, which in a rehearsal points into the root.
    if not (os.path.lexists(editable.python) and (editable.build / "build.ninja").is_file()):
        return None
    return Remembered(
        workspace=Workspace(root=Path(document["workspace"])),
        editable=editable,
        module=document["module"],
        recipe=document["recipe"],
    )


def forget(options: BuildOptions) -> None:
    """Let the next run go the whole way: this one began it."""
    _place(options).unlink(missing_ok=True)


def _place(options: BuildOptions) -> Path:
    given: Mapping[str, Any] = {
        name: _plain(value) for name, value in asdict(options).items() if name not in _PASSING and value is not None
    }
    where = {name: os.environ[name] for name in _OF_THE_CALLER if name in os.environ}
    return work_folder() / "editable" / f"{digest_of([given, where, str(Path.cwd())])[:16]}.json"


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def _stamp(path: Path) -> list[int] | None:
    """Return what changes with a file: time and size; None where it is not there."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return [status.st_mtime_ns, status.st_size]
