"""Macs of the specimens as recordings, the form in which commands take them with --host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mps_build.common import strict_yaml

HOSTS = Path(__file__).parents[2] / "recorded" / "specimens" / "hosts.yaml"


def recorded_mac(folder: Path, name: str) -> Path:
    """Write the recording of one host of the specimens, and return its path."""
    path = folder / "mac.json"
    path.write_text(json.dumps(recorded_document(name)))
    return path


def recorded_document(name: str) -> dict[str, Any]:
    """Return the recording of one host of the specimens."""
    host = next(each for each in strict_yaml.unchecked(HOSTS.read_text(encoding="utf-8")) if each["id"] == name)
    probes = [{key: probe.get(key) for key in ("argv", "stdout", "stderr", "exit")} for probe in host["probes"]]
    return {"schema": 1, "recorded_on": "2026-11-01", "tool": "test", "probes": probes}
