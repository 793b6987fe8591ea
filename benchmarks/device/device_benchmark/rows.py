"""One row: the results compared, then blocks of CPU and device in turn, then what the times can be trusted for."""

from __future__ import annotations

import gc
import math
import time
from dataclasses import dataclass
from statistics import median
from typing import Any, Callable, Dict

import torch

from .agreement import disagreement
from .ceilings import Ceilings
from .intervals import bootstrap_median, growth, is_drift
from .jobs import Job
from .memory import largest_batches
from .pace import Pace
from .timed_device import Block, TimedDevice
from .workloads import Workload

# After a synchronise that waited, reading a number takes nearly nothing.
_TAIL_SHARE, _TAIL_SECONDS = 0.1, 2e-3
# A library's best is measured, not given: a row may be a little luckier.
_BEYOND = 1.25

Flag = Dict[str, str]


class Skipped(Exception):
    """The row has nothing to measure here; the message says why."""


@dataclass(frozen=True)
class Bench:
    """What rows are measured with."""

    device: TimedDevice
    cpu: TimedDevice
    quick: bool
    cpu_bfloat16: bool

    def dtypes(self, workload: Workload) -> tuple[torch.dtype, torch.dtype]:
        """Return the dtype of the device's side and of the CPU's: the faster one for the CPU, as its user would take.

        Raises:
            Skipped: both sides are the CPU, and the row asks for nothing else than a dtype that is slow there.
        """
        if workload.dtype == "float32":
            return torch.float32, torch.float32
        cpu = torch.bfloat16 if self.cpu_bfloat16 else torch.float32
        if self.device.name != "cpu":
            return torch.bfloat16, cpu
        if workload.mode == "kernel" and cpu is torch.float32:
            raise Skipped("this CPU computes bfloat16 slower than float32: nobody would use it")
        return cpu, cpu


@dataclass
class _Sides:
    """Both sides of a row, and what their first work showed."""

    device: Job
    cpu: Job
    first: dict[str, float]
    expected: dict[str, torch.Tensor]
    share: float
    lines: list[str]
    dtype: str


def measure(
    workload: Workload,
    bench: Bench,
    pace: Pace,
    ceilings: Ceilings,
    *,
    lowered: int | None = None,
    on_size: Callable[[str, int], None] = lambda key, number: None,
) -> dict[str, Any]:
    """Return one row; the batch is halved for as long as memory is short, and the row says so.

    Raises:
        Skipped: not even the smallest batch fits, or the row is nothing for this device.
    """
    if workload.is_of_memory:
        return _memory_row(workload, bench)
    events: list[str] = []
    while True:
        size = workload.size(quick=bench.quick, on_cpu=bench.device.name == "cpu", lowered=lowered)
        key, number = next(iter(size.items()))
        on_size(key, number)
        try:
            row = _measure_size(workload, bench, pace, ceilings, size)
            return {**row, "lowered": events}
        except (RuntimeError, MemoryError) as error:
            if not is_memory_shortage(error):
                raise
            said = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        gc.collect()
        bench.device.free()
        if number == 1:
            raise Skipped(f"out of memory even with {key} 1: {said}")
        lowered = number // 2
        events.append(f"{key} {number} -> {lowered}: {said}")


def _memory_row(workload: Workload, bench: Bench) -> dict[str, Any]:
    """Return the row of the largest batch that trains; its ratio is of batches, not of times."""
    found = largest_batches(bench.device.name, quick=bench.quick)
    device, cpu = found["device"], found["cpu"]
    said = "; ".join(
        f"{name}: batch {side['batch']} in {_gigabytes(side['bytes'])} of {_gigabytes(side['limit'])} allowed, "
        f"ended by {side['ended_by']}"
        for name, side in (("device", device), ("CPU", cpu))
    )
    if not device["batch"] or not cpu["batch"]:
        raise Skipped(f"not even batch 1 was trained: {said}")
    size = {"batch": device["batch"]}
    ratio = float(f"{device['batch'] / cpu['batch']:.5g}")
    return {
        "name": workload.name,
        "mode": workload.mode,
        "size": size,
        "batch": device["batch"],
        "reduced": "sides of 64, batches up to 2" if bench.quick else None,
        "dtype": workload.dtype,
        "cpu_dtype": workload.dtype,
        "facts": {**workload.facts, "memory": found, "ratio": "of the largest batches, not of times"},
        "ratio": {"median": ratio, "low": ratio, "high": ratio},
        "flags": [],
        "lowered": [],
        "outcome": "measured",
        "reason": said,
    }


def _gigabytes(count: int | None) -> str:
    return "?" if count is None else f"{count / 1e9:.2f} GB"


def is_memory_shortage(error: BaseException) -> bool:
    """True for what a back end says when memory is short."""
    text = str(error).lower()
    words = ("out of memory", "can't allocate memory", "not enough memory", "invalid buffer size", "alloc_cpu")
    return isinstance(error, MemoryError) or any(word in text for word in words)


def _measure_size(
    workload: Workload, bench: Bench, pace: Pace, ceilings: Ceilings, size: dict[str, int]
) -> dict[str, Any]:
    device_dtype, cpu_dtype = bench.dtypes(workload)
    row: dict[str, Any] = {
        "name": workload.name,
        "mode": workload.mode,
        "size": size,
        "batch": size.get("batch"),
        "reduced": workload.reduced(size),
        "dtype": _name(device_dtype),
        "cpu_dtype": _name(cpu_dtype),
        "facts": workload.facts,
        "ratio": None,
        "flags": [],
    }
    sides = _prepare(workload, bench, size, device_dtype, cpu_dtype)
    row["first_step_seconds"] = {name: _short(value) for name, value in sides.first.items()}
    row["agreement"] = {"share_of_bound": _short(sides.share), "bound_of": sides.dtype}
    if sides.lines:
        row["flags"] = [_wrong(sides.lines, "before the timing")]
        row["outcome"] = "wrong"
        return row
    blocks = _interleave(sides, bench, pace, workload.weight)
    if len(blocks["cpu"]) < 2:
        raise Skipped("no time was left for it")
    if workload.mode != "training":
        _share, lines = _compare(sides, bench)
        if lines:
            row["flags"].append(_wrong(lines, "after the timing, though right before"))
    row.update(_figures(sides.device, blocks))
    row["flags"] += _doubts(sides.device, blocks, row, ceilings)
    ratio = bootstrap_median([c.step_seconds / d.step_seconds for c, d in zip(blocks["cpu"], blocks["device"])])
    ids = {flag["id"] for flag in row["flags"]}
    row["outcome"] = "wrong" if "wrong_result" in ids else "untrusted" if ids - {"drift"} else "measured"
    if row["outcome"] == "measured":
        row["ratio"] = ratio.document()
    return row


def _prepare(
    workload: Workload, bench: Bench, size: dict[str, int], device_dtype: torch.dtype, cpu_dtype: torch.dtype
) -> _Sides:
    torch.manual_seed(1 + sum(map(ord, workload.id)))
    job = workload.job(workload.mode, **size)
    if device_dtype is not torch.float32:
        job.round_to(device_dtype)
    cpu = job.to(torch.device("cpu"), cpu_dtype)
    first, expected = {}, {}
    began = time.perf_counter()
    expected = cpu.results()
    first["cpu"] = time.perf_counter() - began
    with bench.device.entered():
        device = job.to(bench.device.device, device_dtype)
        del job
        bench.device.synchronise()
        began = time.perf_counter()
        actual = device.results()
        first["device"] = time.perf_counter() - began
    dtype = _name(device_dtype)
    share, lines = disagreement(actual, expected, dtype, jittered=cpu.jittered)
    if workload.mode == "training":
        expected = {}  # gradients of hundreds of megabytes, computed once
    return _Sides(device=device, cpu=cpu, first=first, expected=expected, share=share, lines=lines, dtype=dtype)


def _compare(sides: _Sides, bench: Bench) -> tuple[float, list[str]]:
    with bench.device.entered():
        actual = sides.device.results()
    return disagreement(actual, sides.expected, sides.dtype)


def _interleave(sides: _Sides, bench: Bench, pace: Pace, weight: float) -> dict[str, list[Block]]:
    """Return pairs of blocks: CPU first in every other pair, so that neither side always has the warmer machine."""
    both = {"cpu": (bench.cpu, sides.cpu), "device": (bench.device, sides.device)}
    limit = pace.row(weight)
    steps = {name: _steps(*both[name], limit.block_seconds, sides.first[name]) for name in both}
    blocks: dict[str, list[Block]] = {"cpu": [], "device": []}
    for pair in range(limit.most_pairs):
        if limit.is_over(pair):
            break
        for name in ("cpu", "device") if pair % 2 == 0 else ("device", "cpu"):
            timed, job = both[name]
            blocks[name].append(timed.run(steps[name], job.step))
        if pair >= 2 and _tail(blocks["device"]) is not None:
            break
    return blocks


def _steps(timed: TimedDevice, job: Job, block_seconds: float, first: float) -> int:
    """Return how many steps make a block; warms up where that costs little against a block."""
    if first > 4 * block_seconds and timed.name == "cpu":
        return 1
    timed.run(1, job.step)
    block = timed.run(1, job.step)
    return max(1, min(1000, math.ceil(block_seconds / max(block.seconds + block.tail_seconds, 1e-6))))


def _figures(job: Job, blocks: dict[str, list[Block]]) -> dict[str, Any]:
    seconds = {name: median([block.step_seconds for block in found]) for name, found in blocks.items()}
    best = min(block.step_seconds for block in blocks["device"])
    figures: dict[str, Any] = {
        "pairs": len(blocks["cpu"]),
        "steps": {name: found[0].steps for name, found in blocks.items()},
        "seconds": {name: _short(value) for name, value in seconds.items()},
        "samples": {name: [_short(block.step_seconds) for block in found] for name, found in blocks.items()},
        "drift": {name: growth([block.step_seconds for block in found]) for name, found in blocks.items()},
        "flops_per_second": _short(job.flops / best) if job.flops else None,
        "bytes_per_second": _short(job.bytes / best) if job.bytes else None,
    }
    return figures


def _doubts(job: Job, blocks: dict[str, list[Block]], row: dict[str, Any], ceilings: Ceilings) -> list[Flag]:
    flags: list[Flag] = []
    if (tail := _tail(blocks["device"])) is not None:
        flags.append(
            {
                "id": "unsynchronised",
                "text": f"reading a result took another {tail:.1f} times a block's time after the synchronise: "
                "it had not waited for the work",
            }
        )
    flags += _beyond(job, blocks, row, ceilings)
    for name, found in blocks.items():
        samples = [block.step_seconds for block in found]
        if is_drift(samples):
            flags.append(
                {
                    "id": "drift",
                    "text": f"the {name}'s steps became {growth(samples):.0%} slower in the course of the row: "
                    "heat, or something else that runs here",
                }
            )
    return flags


def _beyond(job: Job, blocks: dict[str, list[Block]], row: dict[str, Any], ceilings: Ceilings) -> list[Flag]:
    """Return a doubt for each figure that is more than this device can reach."""
    flags = []
    for figure, work, slack in (("flops_per_second", job.flops, job.slack), ("bytes_per_second", job.bytes, 1.0)):
        ceiling, reached = ceilings.of(figure, row["dtype"]), row[figure]
        if not ceiling or not reached:
            continue
        limit = slack * _BEYOND
        if reached > ceiling * limit and not _is_cached(job, figure):
            ceiling = ceilings.again(figure, row["dtype"])
            if ceilings.is_of_cpu:  # its other half, without an injected fault, ran on the same processor
                ceiling = max(ceiling, work / min(block.step_seconds for block in blocks["cpu"]))
        unit = figure.partition("_")[0]
        row[f"{unit}_of_ceiling"] = _short(reached / ceiling)
        if reached > ceiling * limit and not _is_cached(job, figure):
            text = f"{reached:.3g} {unit}/s is {reached / ceiling:.1f} times what this device's own libraries reach"
            flags.append({"id": "beyond_ceiling", "text": f"{text}: the work was not done, or not waited for"})
    return flags


def _is_cached(job: Job, figure: str) -> bool:
    """True where a row's bytes may lie in a cache, which is faster than memory."""
    return figure == "bytes_per_second" and job.bytes < (1 << 28)


def _tail(blocks: list[Block]) -> float | None:
    """Return the share of a block's time that came after its synchronise, if that is more than a reading takes."""
    share = median([block.tail_seconds / max(block.seconds, 1e-9) for block in blocks])
    seconds = median([block.tail_seconds for block in blocks])
    return share if share > _TAIL_SHARE and seconds > _TAIL_SECONDS else None


def _wrong(lines: list[str], when: str) -> Flag:
    more = f" (and {len(lines) - 3} more)" if len(lines) > 3 else ""
    return {"id": "wrong_result", "text": f"not what the CPU gives, {when}: {'; '.join(lines[:3])}{more}"}


def _name(dtype: torch.dtype) -> str:
    return str(dtype).replace("torch.", "")


def _short(value: float) -> float:
    return float(f"{value:.5g}")
