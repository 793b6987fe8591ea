"""The rows of the announcement's unified memory: copies both ways, and the largest batch that trains."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import torch

import suite_in_process  # noqa: F401 - the meter comes into reach by it
from device_benchmark import memory
from device_benchmark.agreement import disagreement
from device_benchmark.transfers import SIZES, CopyJob
from device_benchmark.workloads import workloads

CPU = torch.device("cpu")


@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_copy_has_its_own_memory_and_its_size_in_bytes(direction: str) -> None:
    values = torch.randn(1024)
    job = CopyJob(values, direction).to(CPU, torch.float32)

    copied = job.step()

    assert job.bytes == 4096
    assert torch.equal(copied, values)
    assert copied.data_ptr() not in (values.data_ptr(), job._values.data_ptr())


def test_a_copy_that_drops_a_part_is_not_what_the_cpu_gives() -> None:
    job = CopyJob(torch.randn(1024), "out").to(CPU, torch.float32)
    wrong = {"out": job.step()}
    wrong["out"][512:] = 0.0

    _, lines = disagreement(wrong, job.results(), "float32", jittered=job.jittered)

    assert lines


def test_there_is_a_row_for_each_size_and_direction_and_one_for_the_batch() -> None:
    rows = {row.id: row for row in workloads()}

    for name, full, _ in SIZES:
        for direction in ("in", "out"):
            assert rows[f"copy_{direction}_{name}:kernel"].size(quick=False) == full
    assert rows["largest_batch:memory"].is_of_memory


def _machine(monkeypatch: pytest.MonkeyPatch, bytes_of: Any) -> dict[str, Any]:
    monkeypatch.setattr(memory, "_tried", lambda device, batch, side, seconds: bytes_of(device, batch))
    return memory.largest_batches("mps", quick=False)


def test_the_largest_batch_is_the_last_one_within_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 10 * 2**30

    def took(device: str, batch: int) -> dict[str, Any]:
        if device == "mps" and batch == 64:
            return {"short": "memory: MPS backend out of memory"}
        return {"bytes": batch * 2**30 // (16 if device == "mps" else 1), "limit": limit}

    found = _machine(monkeypatch, took)

    assert (found["device"]["batch"], found["device"]["ended_by"]) == (32, "memory: MPS backend out of memory")
    assert (found["cpu"]["batch"], found["cpu"]["bytes"], found["cpu"]["limit"]) == (8, 8 * 2**30, limit)
    assert found["share"] == memory.SHARE


def test_what_ended_the_search_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = _machine(monkeypatch, lambda device, batch: {"bytes": 1, "limit": 2})
    slow = _machine(monkeypatch, lambda device, batch: {"timed_out": True})

    assert (fits["cpu"]["batch"], fits["cpu"]["ended_by"]) == (1024, "the largest batch that is tried")
    assert (slow["cpu"]["batch"], slow["cpu"]["ended_by"]) == (0, "time")


def test_one_batch_is_trained_in_a_process_of_its_own() -> None:
    own = [sys.executable, memory.__file__, "--device", "cpu", "--batch", "1", "--side", "64"]

    said = json.loads(subprocess.run(own, capture_output=True, check=True).stdout.splitlines()[-1])

    # ResNet-50's weights, gradients and momentum alone are 307 MB.
    assert 300e6 < said["bytes"] < said["limit"]
