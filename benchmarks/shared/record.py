"""Keeps the figures that benchmarks measure: benchmarks/results.json, one row per name."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import statistics
import tempfile
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from mps_build.common.cores import usable_cores

from .page import README, RESULTS, render


def record(
    name: str, values: Sequence[float], *, unit: str, command: str, target: str, versions: str = "", on: str = ""
) -> dict[str, object]:
    """Add the row of `name`, or put it in the old one's place, and write README.md anew; return the row.

    Args:
        values: every measurement of this run; median, least and most are kept.
        target: what it is held against, as the issue words it (`<= 1.1`).
        on: the machine, where it was not this one.
        versions: the programs that the figure is of, beside Python (`clang 19.1.7, ccache 4.11.2`).
    """
    row: dict[str, object] = {
        "name": name,
        "median": round(statistics.median(values), 4),
        "low": round(min(values), 4),
        "high": round(max(values), 4),
        "unit": unit,
        "command": command,
        "machine": on or machine(),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "target": target,
    } | ({"versions": versions} if versions else {})
    # Two benchmarks may end at once.
    with (Path(tempfile.gettempdir()) / "mps-build-benchmarks.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _keep(row)
    return row


def _keep(row: dict[str, object]) -> None:
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    rows = sorted([*(each for each in rows if each["name"] != row["name"]), row], key=lambda each: str(each["name"]))
    texts = {RESULTS: json.dumps(rows, indent=2, ensure_ascii=False) + "\n", README: render(rows)}
    for path, text in texts.items():
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)


def machine() -> str:
    """Return what a reader must know of this machine: system, processor, cores, Python."""
    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else processor
    system = f"{platform.system()} {platform.machine()}"
    return f"{system}, {processor}, {usable_cores()} cores, Python {platform.python_version()}"
