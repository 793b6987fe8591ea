"""The largest batch whose training step stays within a share of the memory: on the device, and on the CPU.

Each batch is tried in a process of its own, so that a shortage, or a peak of an earlier one, bears on no other:

    python memory.py --device mps --batch 64 --side 224
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SHARE = 0.5
_MOST, _QUICK_MOST = 1024, 2
_SECONDS, _QUICK_SECONDS = 1500.0, 40.0


def largest_batches(device: str, *, quick: bool) -> dict[str, Any]:
    """Return the row's figures: for each side the largest batch, what it took, and what ended the search."""
    side, most = (64, _QUICK_MOST) if quick else (224, _MOST)
    seconds = _QUICK_SECONDS if quick else _SECONDS
    found = {
        name: _largest(where, side=side, most=most, deadline=time.monotonic() + seconds)
        for name, where in (("device", device), ("cpu", "cpu"))
    }
    return {"share": SHARE, "side": side, "most_tried": most, **found}


def _largest(device: str, *, side: int, most: int, deadline: float) -> dict[str, Any]:
    best: dict[str, Any] = {"batch": 0, "bytes": None, "limit": None, "ended_by": "memory"}
    batch = 1
    while batch <= most:
        left = deadline - time.monotonic()
        if left <= 0:
            return {**best, "ended_by": "time"}
        reported = _tried(device, batch, side, left)
        if reported.get("timed_out"):
            return {**best, "ended_by": "time"}
        best["limit"] = reported.get("limit", best["limit"])
        if "bytes" not in reported or reported["bytes"] > reported["limit"]:
            return {**best, "ended_by": reported.get("short", "memory")}
        best.update(batch=batch, bytes=reported["bytes"])
        batch *= 2
    return {**best, "ended_by": "the largest batch that is tried"}


def _tried(device: str, batch: int, side: int, seconds: float) -> dict[str, Any]:
    own = [
        sys.executable,
        str(Path(__file__).resolve()),
        "--device",
        device,
        "--batch",
        str(batch),
        "--side",
        str(side),
    ]
    try:
        ran = subprocess.run(own, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"timed_out": True}
    try:
        return dict(json.loads(ran.stdout.decode("utf-8", "replace").splitlines()[-1]))
    except (ValueError, IndexError):
        said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        return {"short": "memory: " + (said or [f"ended with {ran.returncode}"])[-1][:200]}


def main() -> None:
    """Train two steps and print what they took; bytes, and the limit that holds here."""
    options = argparse.ArgumentParser()
    options.add_argument("--device", required=True)
    options.add_argument("--batch", type=int, required=True)
    options.add_argument("--side", type=int, required=True)
    arguments = options.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    import torch

    from device_benchmark.images import resnet50
    from device_benchmark.jobs import ModelJob
    from device_benchmark.timed_device import TimedDevice, read_back

    timed = TimedDevice(arguments.device)
    given = torch.randn(arguments.batch, 3, arguments.side, arguments.side)
    job = ModelJob(resnet50(), given, torch.randint(0, 1000, (arguments.batch,)), "training", "SGD")
    moved = job.to(timed.device, torch.float32)
    for _ in range(2):
        read_back(moved.step())
    timed.synchronise()
    taken, whole = _taken(timed.name)
    print(json.dumps({"bytes": taken, "limit": int(whole * SHARE)}))


def _taken(device: str) -> tuple[int, int]:
    """Return what the process took at most of the device's memory, and how much there is."""
    import torch

    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if device == "cuda":
        return int(torch.cuda.max_memory_allocated()), int(torch.cuda.get_device_properties(0).total_memory)
    if device == "mps":  # the allocator keeps what it took, so what it holds now is its peak
        backend: Any = torch.mps
        return int(backend.driver_allocated_memory()), whole
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024, whole


if __name__ == "__main__":
    main()
