"""The meter of benchmark_mps on the CPU: it reads 1.0 of itself, and no injected fault gets past it."""

from __future__ import annotations

import time
from typing import Any, Callable, Iterator

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import meter_faults
import suite_in_process  # noqa: F401 - the meter comes into reach by it
from device_benchmark.ceilings import Ceilings
from device_benchmark.images import resnet50, vgg16
from device_benchmark.jobs import ModelJob
from device_benchmark.pace import Pace
from device_benchmark.rows import Bench, Skipped, measure
from device_benchmark.texts import Bert, Decoder
from device_benchmark.timed_device import TimedDevice
from device_benchmark.workloads import Workload, _layer_norm_job, _matmul_job, workloads

MATMUL = Workload("matmul", "kernel", _matmul_job, ({"n": 640}, {"n": 640}))
LAYER_NORM = Workload("layer_norm", "kernel", _layer_norm_job, ({"rows": 2048, "width": 512},) * 2)


def _tiny_job(mode: str, *, batch: int) -> ModelJob:
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 10))
    return ModelJob(model, torch.randn(batch, 256), torch.randint(0, 10, (batch,)), mode, "AdamW")


TINY = {mode: Workload("tiny", mode, _tiny_job, ({"batch": 256},) * 2) for mode in ("training", "inference")}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the clock count what this process computes: other programs would slow down one of two devices."""
    monkeypatch.setattr(time, "perf_counter", time.process_time)
    monkeypatch.setattr(time, "sleep", _work_for)
    meter_faults.forget()
    yield
    meter_faults.forget()


def _work_for(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def _row(workload: Workload, fault: Any = None, ceiling: float | None = None, seconds: float = 30.0) -> dict[str, Any]:
    run = TimedDevice("cpu", around=fault)
    values = {"flops_per_second.float32": ceiling} if ceiling else {}
    bench = Bench(device=run, cpu=TimedDevice("cpu"), quick=True, cpu_bfloat16=False)
    pace = Pace(quick=True, weights=1.0, total=seconds)
    return measure(workload, bench, pace, Ceilings(TimedDevice("cpu"), quick=True, values=values))


def _quiet(reads: Callable[[dict[str, Any]], bool], *given: Any, **how: Any) -> dict[str, Any]:
    """Return a row that reads as it must, of three at most: other programs disturb a clock; the meter's faults stay."""
    row: dict[str, Any] = {}
    for _ in range(3):
        meter_faults.forget()
        row = _row(*given, **how)
        if row["ratio"] is not None and reads(row):
            break
    return row


def _flags(row: dict[str, Any]) -> set[str]:
    return {flag["id"] for flag in row["flags"]}


@pytest.mark.parametrize("workload", [MATMUL, LAYER_NORM, *TINY.values()], ids=lambda workload: workload.id)
def test_the_cpu_against_itself_reads_one_within_its_interval(workload: Workload) -> None:
    row = _quiet(lambda row: row["ratio"]["low"] <= 1.0 <= row["ratio"]["high"], workload)

    assert row["outcome"] == "measured", row
    assert row["ratio"]["low"] <= 1.0 <= row["ratio"]["high"], row
    assert len(row["samples"]["cpu"]) == row["pairs"] >= 3


def test_a_device_half_as_fast_reads_a_half() -> None:
    row = _quiet(lambda row: row["ratio"]["high"] < 0.8, MATMUL, fault=lambda: _Double())

    assert row["ratio"]["high"] < 0.8
    assert row["ratio"]["low"] <= 0.5 <= row["ratio"]["high"] * 1.3


class _Double(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(func) == "aten.mm.default":
            func(*args)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("fault", "workload", "flag"),
    [
        ("NoSynchronise", MATMUL, "unsynchronised"),
        ("NoSynchronise", LAYER_NORM, "unsynchronised"),
        ("WrongMatmul", MATMUL, "wrong_result"),
        ("WrongMatmul", TINY["training"], "wrong_result"),
        ("WrongMatmul", TINY["inference"], "wrong_result"),
        ("WrongLater", MATMUL, "wrong_result"),
    ],
)
def test_a_injected_fault_is_flagged_and_its_ratio_withheld(fault: str, workload: Workload, flag: str) -> None:
    row = _row(workload, fault=getattr(meter_faults, fault))

    assert meter_faults.HITS[fault] > 0
    assert flag in _flags(row), row
    assert row["ratio"] is None


def test_work_that_was_never_done_is_flagged_though_its_result_is_right() -> None:
    row = _row(MATMUL, fault=meter_faults.SkippedWork, ceiling=1e9)

    assert meter_faults.HITS["SkippedWork"] > 0
    assert "beyond_ceiling" in _flags(row), row
    assert row["ratio"] is None


def test_a_injected_thermal_drift_is_flagged_and_the_ratio_kept() -> None:
    row = _quiet(lambda row: "drift" in _flags(row), MATMUL, fault=meter_faults.heating)

    assert meter_faults.HITS["heating"] > 0
    assert "drift" in _flags(row), row
    assert row["ratio"] is not None
    assert row["drift"]["device"] > 0.1


def test_a_batch_is_halved_until_it_fits_and_the_row_says_so() -> None:
    row = _row(MATMUL, fault=meter_faults.NoMemory)

    assert row["size"] == {"n": 80}
    assert [text.partition(":")[0] for text in row["lowered"]] == ["n 640 -> 320", "n 320 -> 160", "n 160 -> 80"]
    assert "MPS backend out of memory" in row["lowered"][0]


def test_a_row_that_never_fits_is_skipped_with_the_reason() -> None:
    def job(mode: str, *, batch: int) -> Any:
        raise RuntimeError("MPS backend out of memory")

    with pytest.raises(Skipped, match="out of memory even with batch 1"):
        _row(Workload("huge", "training", job, ({"batch": 8},) * 2))


def test_the_models_are_of_the_announced_size() -> None:
    if not hasattr(torch, "set_default_device"):
        pytest.skip("this torch builds no model without memory")
    with torch.device("meta"):
        counts = [sum(weight.numel() for weight in make().parameters()) for make in (resnet50, vgg16, Bert, Decoder)]

    # As torchvision and transformers count them: resnet50, vgg16, BertForMaskedLM, GPT2LMHeadModel.
    assert counts == [25_557_032, 138_357_544, 109_514_298, 124_439_808]


def test_every_announced_row_is_there_in_its_announced_shape() -> None:
    shapes = {row.id: row.size(quick=False) for row in workloads()}

    for mode in ("training", "inference"):
        assert shapes[f"resnet50:{mode}"] == {"batch": 128}
        assert shapes[f"vgg16:{mode}"] == {"batch": 64}
        assert shapes[f"bert:{mode}"] == {"batch": 64, "sequence": 512}
    assert all(row.reduced(row.size(quick=True)) for row in workloads())
