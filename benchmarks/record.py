"""Keeps the figures that benchmarks measure: benchmarks/results.json, one row per name."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

RESULTS = Path(__file__).with_name("results.json")


def record(name: str, values: Sequence[float], *, unit: str, command: str, target: str) -> dict[str, object]:
    """Add the row of `name`, or put it in the old one's place; return it.

    Args:
        values: every measurement of this run; median, least and most are kept.
        target: what it is held against, as the issue words it (`<= 1.1`).
    """
    row: dict[str, object] = {
        "name": name,
        "median": round(statistics.median(values), 4),
        "low": round(min(values), 4),
        "high": round(max(values), 4),
        "unit": unit,
        "command": command,
        "machine": machine(),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "target": target,
    }
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    rows = sorted([*(each for each in rows if each["name"] != name), row], key=lambda each: str(each["name"]))
    beside = RESULTS.with_name(f".{RESULTS.name}.{os.getpid()}")
    beside.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.replace(RESULTS)
    return row


def machine() -> str:
    """Return what a reader must know of this machine: system, processor, cores, Python."""
    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else processor
    system = f"{platform.system()} {platform.machine()}"
    return f"{system}, {processor}, {os.cpu_count()} cores, Python {platform.python_version()}"
