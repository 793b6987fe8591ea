"""What an interrupted run left behind, and whether it was one of the same thing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mps_build.common.errors import UsageError
from mps_build.common.json_text import read_json

from ..record_builder import RecordBuilder
from .benchmark_request import BenchmarkRequest
from .measuring import Event, events_in

_CIRCUMSTANCES = "circumstances.json"


def circumstances(builder: RecordBuilder, request: BenchmarkRequest, programme: Path) -> dict[str, Any]:
    """Return what must be equal for rows of two sessions to stand in one record."""
    wheel, plant = builder.torch.wheel, request.plant
    return {
        "target": {**request.asked(), "sha256": wheel.sha256 if wheel else None},
        "torch": [builder.torch.version, builder.torch.commit],
        "python": [builder.python.executable, builder.python.version] if builder.python else None,
        "device": [request.device, builder.gpu.get("name")],
        "macos": builder.host.get("macos"),
        "environment": dict(builder.environment.get("kept", {})),
        "selection": request.selection(),
        "plant": _digest([Path(plant.rpartition(":")[0])]) if plant else None,
        "programme": _digest(sorted(programme.parent.rglob("*.py"))),
    }


def key_of(found: Mapping[str, Any]) -> str:
    """Return the name of a folder for these circumstances."""
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]


def left_behind(folder: Path, found: Mapping[str, Any], *, fresh: bool) -> Iterator[Event]:
    """Make the folder ready and yield what an interrupted run reported; a finished one is put aside.

    Raises:
        UsageError: the folder holds a benchmark of something else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / _CIRCUMSTANCES
    before = read_json(kept) if kept.is_file() else None
    if before is not None and before != found:
        differing = ", ".join(sorted(name for name in found if before.get(name) != found[name]))
        raise UsageError(
            f"--record {folder}: holds a benchmark of something else ({differing} differ)", hint="name another folder"
        )
    if before is not None and (fresh or not _is_partial(folder)):
        _put_aside(folder)
    kept.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    yield from events_in(folder)


def _is_partial(folder: Path) -> bool:
    try:
        document = read_json(folder / "record.json")
    except (OSError, ValueError):
        return True
    return not isinstance(document, dict) or bool(document.get("partial"))


def _put_aside(folder: Path) -> None:
    for path in (*folder.glob("rows.*.jsonl"), folder / "measure.log"):
        path.unlink(missing_ok=True)
    record = folder / "record.json"
    if record.is_file():
        record.replace(folder / "record.before.json")


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + (file.read_bytes() if file.is_file() else b""))
    return digest.hexdigest()
