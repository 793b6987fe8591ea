"""The command from its arguments to its exit status and its files, on a torch and a programme that play their parts."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from fake_suites import write_python
from mps_build.cli import main
from mps_build.common.records.benchmark import load_benchmark
from mps_build.verify import preparation
from mps_build.verify.benchmark import benchmark, judging
from mps_build.verify.suite.request import Limits
from mps_build.verify.target import resolve as target
from mps_build.verify.target.diagnosis import HostFacts
from processes import LONGEST_SECONDS, wait_until

SCRIPTS = Path(__file__).parents[3] / "scripts"
STATE: dict[str, Any] = {"version": "2.13.0", "built": True, "available": True, "name": "Apple M3", "sum": 1000}
MAC = HostFacts(
    system="Darwin", macos="15.3", chip="Apple M3", virtual=False, rosetta=False, apple_silicon=True, document={}
)
# Tells rows as measure.py does; acts.json says how each of them goes.
PROGRAMME = """
import argparse, json, os, pathlib, signal, sys, time
parser = argparse.ArgumentParser()
for name in ("--device", "--out", "--seconds", "--only", "--skip", "--lower", "--ceilings", "--inject"):
    parser.add_argument(name, default="")
parser.add_argument("--quick", action="store_true")
arguments = parser.parse_args()
acts = json.loads(pathlib.Path(__file__).with_name("acts.json").read_text())
def tell(event, **facts):
    sys.stdout.flush(); sys.stderr.flush()
    with open(arguments.out, "a") as file:
        file.write(json.dumps({"event": event, **facts, "output_bytes": os.fstat(2).st_size}) + "\\n")
if arguments.inject.endswith("refused"):
    sys.exit("no callable") if print("--inject: no callable refused", file=sys.stderr) else sys.exit(4)
is_chosen = lambda name: not arguments.only or name.split(":")[0] in arguments.only.split(",")
ids = [name for name in acts if ":" in name and is_chosen(name)]
tell("plan", ids=ids, names=[])
tell("facts", threads=acts.get("threads", 8), cores=8, cpu_bfloat16=False, device=arguments.device, torch="2.13.0")
if not arguments.ceilings:
    tell("started", id="ceilings")
    tell("finished", id="ceilings", ceilings={"bytes_per_second": 1e9}, which={})
for name in ids:
    if name in arguments.skip.split(","):
        continue
    act = acts[name]
    lowered = dict(pair.split("=") for pair in arguments.lower.split(",") if pair)
    batch = int(lowered.get(name, 64))
    tell("started", id=name, limit_seconds=act.get("limit", 60))
    tell("size", id=name, key="batch", number=batch)
    if act.get("die_above", 1000) < batch:
        os.kill(os.getpid(), signal.SIGKILL)
    if act.get("abort"):
        print("Assertion failed: no such kernel", file=sys.stderr)
        os.abort()
    if act.get("hang"):
        time.sleep(100)
    if act.get("writes"):
        print(act["writes"], file=sys.stderr)
    row = {"name": name.split(":")[0], "mode": name.split(":")[1], "outcome": "measured", "flags": [],
           "ratio": {"median": 7.0, "low": 6.5, "high": 7.5}, "size": {"batch": batch}, "batch": batch,
           "seconds": {"cpu": 0.7, "device": 0.1}, "samples": {"cpu": [0.7] * 5, "device": [0.1] * 5}}
    row.update(act.get("row", {}))
    tell("finished", id=name, row=row, fault_hits=act.get("hits"))
tell("sentinel", seconds=[1.0], growth=0.2, drift=bool(acts.get("drifts")))
tell("fault", hits=acts.get("hits", 3) if arguments.inject else None)
tell("end")
"""
GOOD: dict[str, Any] = {"resnet50:training": {}, "bert:training": {}}
WRONG = {"outcome": "wrong", "ratio": None, "flags": [{"id": "wrong_result", "text": "out: off by 0.3"}]}

Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command with arguments and returns its status and its JSON document."""
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setattr(target, "make_overlay", lambda interpreter, store: pytest.fail("it needs no pytest"))
    monkeypatch.setattr(benchmark, "data_root", lambda: tmp_path)
    programme = tmp_path / "benchmarks" / "device"
    programme.mkdir(parents=True)
    (programme / "measure.py").write_text(PROGRAMME)

    def call(
        *arguments: str, acts: dict[str, Any] = GOOD, host: HostFacts = MAC, **state: Any
    ) -> tuple[int, dict[str, Any]]:
        monkeypatch.setattr(preparation, "observe_host", lambda recording: host)
        (programme / "acts.json").write_text(json.dumps(acts))
        python = tmp_path / "python"
        if not python.exists():
            write_python(python, "")
        (python / "site" / "torch" / "state.json").write_text(json.dumps(STATE | state))
        answer = tmp_path / "answer.json"
        status = main("benchmark_mps", ["--python", str(python / "python"), "--json", str(answer), *arguments])
        return status, json.loads(answer.read_text())

    return call


def test_a_run_on_a_mac_is_measured_and_each_row_has_its_ratio(run: Run) -> None:
    status, document = run()

    assert (status, document["verdict"], document["partial"]) == (0, "measured", False)
    assert [(row["name"], row["mode"]) for row in document["rows"]] == [("resnet50", "training"), ("bert", "training")]
    assert document["rows"][0]["ratio"] == {"median": 7.0, "low": 6.5, "high": 7.5}
    assert document["statement"] == "MPS on Apple M3, against the CPU of this machine."


def test_a_rehearsal_says_so_in_its_first_line(run: Run) -> None:
    status, document = run("--device", "cpu", "--quick")

    assert (status, document["verdict"]) == (0, "rehearsed")
    assert document["statement"].startswith("Reduced shapes (--quick)")
    assert "A rehearsal, CPU against CPU: it says nothing about MPS" in document["statement"]


def test_a_wrong_row_is_flagged_and_the_run_is_doubtful(run: Run) -> None:
    status, document = run(acts={**GOOD, "bert:training": {"row": WRONG}})

    assert (status, document["verdict"], document["cause"]) == (10, "doubtful", "regressed")
    assert document["rows"][1]["ratio"] is None
    assert "bert:training" in document["message"]


@pytest.mark.parametrize(
    ("acts", "arguments", "fault", "expected"),
    [
        ({**GOOD, "bert:training": {"row": WRONG}}, (), "caught", 10),
        ({**GOOD, "drifts": {}}, ("--only", "resnet50"), "missed", 0),
        (GOOD, (), "missed", 0),
        ({**GOOD, "hits": 0}, (), "not_exercised", 2),
        ({"resnet50:training": {"row": WRONG, "hits": 0}, "bert:training": {"hits": 3}}, (), "missed", 10),
        (
            {"resnet50:training": {"row": WRONG, "hits": 0}, "bert:training": {"row": WRONG, "hits": 3}},
            (),
            "caught",
            10,
        ),
    ],
)
def test_a_fault_is_caught_by_a_doubt_and_missed_without_one(
    run: Run, tmp_path: Path, acts: dict[str, Any], arguments: tuple[str, ...], fault: str, expected: int
) -> None:
    (tmp_path / "fault.py").write_text("")
    acts = {name: act for name, act in acts.items() if ":" in name or name == "hits"}
    status, document = run("--inject", f"{tmp_path / 'fault.py'}:fault", *arguments, acts=acts)

    assert (document["fault"], status) == (fault, expected)
    assert document["statement"].startswith("A fault was injected")


def test_a_fault_that_cannot_be_loaded_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "fault.py").write_text("")
    status, document = run("--inject", f"{tmp_path / 'fault.py'}:refused")

    assert (status, document["fault"]) == (2, "error")
    assert "no callable refused" in document["error"]


def test_a_row_that_crashes_costs_that_row_alone(run: Run) -> None:
    status, document = run(acts={"resnet50:training": {"abort": True}, "bert:training": {}})

    rows = {row["name"]: row for row in document["rows"]}
    assert status == 10
    assert rows["resnet50"]["outcome"] == "crashed"
    assert "SIGABRT" in rows["resnet50"]["reason"] and "no such kernel" in rows["resnet50"]["reason"]
    assert rows["bert"]["ratio"]["median"] == 7.0


def test_a_process_killed_for_its_memory_comes_back_with_half_the_batch(run: Run) -> None:
    status, document = run(acts={"resnet50:training": {"die_above": 16}, "bert:training": {}})

    assert status == 0
    assert document["rows"][0]["batch"] == 16
    assert [note for note in document["notes"] if "batch 32 -> 16" in note]


def test_a_row_that_hangs_is_ended(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits
    monkeypatch.setattr(
        benchmark, "Limits", lambda *, case_seconds, memory_bytes: limits(case_seconds=1, memory_bytes=memory_bytes)
    )
    _, document = run(acts={"resnet50:training": {"hang": True, "limit": 1}, "bert:training": {}})

    assert [row["outcome"] for row in document["rows"]] == ["timeout", "measured"]


def test_a_row_during_which_the_gpu_dropped_work_is_withheld(run: Run) -> None:
    text = (
        "Error: command buffer exited with error status.\n\tThe Metal Performance Shaders operations encoded on it may "
        "not have completed.\n\tError: Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)"
    )
    status, document = run(acts={"resnet50:training": {"writes": text}, "bert:training": {}})

    assert status == 10
    assert (document["rows"][0]["ratio"], document["rows"][0]["flags"][0]["id"]) == (None, "gpu_fault")
    assert document["rows"][1]["ratio"]["median"] == 7.0


def test_few_threads_of_many_cores_are_named(run: Run, tmp_path: Path) -> None:
    _, document = run(acts={**GOOD})
    assert not document["notes"]

    programme = PROGRAMME.replace('acts.get("threads", 8)', "1")
    assert programme != PROGRAMME
    (tmp_path / "benchmarks" / "device" / "measure.py").write_text(programme)
    _, document = run()

    assert document["notes"] == ["the CPU computed with 1 of 8 cores: ratios are larger than against all of them"]


@pytest.mark.parametrize(
    ("host", "state", "status"),
    [
        (HostFacts(system="Linux", document={}), {}, 3),
        (MAC, {"built": False, "available": False}, 12),
        (HostFacts(system="Darwin", macos="13.6", chip="Apple M1", document={}), {}, 13),
        (MAC, {"available": False}, 14),
        (MAC, {"machine": "x86_64"}, 15),
        (HostFacts(system="Darwin", macos="15.3", virtual=True, document={}), {}, 16),
        (MAC, {"sum": 999}, 17),
    ],
)
def test_where_nothing_can_be_measured_the_causes_are_those_of_verify_mps(
    run: Run, host: HostFacts, state: dict[str, Any], status: int
) -> None:
    found, document = run(host=host, version="2.15.0" if status == 13 else "2.13.0", **state)

    assert (found, document["verdict"]) == (status, "not_verified")
    assert document["rows"] == []
    assert document["error"].startswith("not verified: ")


def test_what_rosetta_does_to_our_own_python_says_nothing_of_the_one_under_test(run: Run) -> None:
    status, _ = run(host=replace(MAC, rosetta=True))

    assert status == 0


def test_one_wrong_row_among_right_ones_is_refused_before_an_environment_is_made(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "prepare", lambda *_, **__: pytest.fail("nothing is prepared for a wrong name"))
    status, document = run("--only", "bert,resnet51,vgg16:training,copy_in_4MB")

    assert (status, document["cause"]) == (2, "usage")
    assert document["error"] == "no row resnet51, copy_in_4MB"
    assert "did you mean resnet50" in document["hint"]


def test_the_names_of_the_rows_are_those_of_the_programme() -> None:
    python = os.environ.get("MPS_BUILD_TEST_TORCH") or os.environ.get("MPS_BUILD_TORCH_PYTHON")
    if not python:
        pytest.skip("no torch here; MPS_BUILD_TEST_TORCH names an interpreter with it")
    question = "from device_benchmark.workloads import workloads; print(*(row.id for row in workloads()))"
    programme = Path(__file__).parents[3] / "benchmarks" / "device"
    answer = subprocess.run([python, "-c", question], cwd=programme, capture_output=True, text=True, check=True)

    assert sorted(answer.stdout.split()) == sorted(judging.ROWS)


def test_a_torch_that_cannot_run_the_programme_is_an_environment_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "benchmarks" / "device" / "measure.py").write_text("import no_such_package\n")
    status, document = run()

    assert (status, document["cause"]) == (6, "environment")
    assert "no_such_package" in document["error"]


def test_png_without_pillow_is_refused_before_any_work(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from mps_build.common import page

    monkeypatch.setattr(page, "find_spec", lambda name: None)
    status, document = run("--png", "bars.png")

    assert status == 2
    assert "Pillow" in document["error"] and "--svg" in document["hint"]


@pytest.mark.slow  # its driver is that of verify_mps, whose interruption is tried by default
def test_an_interrupted_run_keeps_its_rows_and_the_same_command_goes_on(run: Run, tmp_path: Path) -> None:
    python = write_python(tmp_path / "another", json.dumps(STATE))
    driver = (
        "import sys, pathlib; root = pathlib.Path(sys.argv.pop(1))\n"
        "from mps_build.verify.benchmark import benchmark\nfrom mps_build.cli import main\n"
        "benchmark.data_root = lambda: root\nraise SystemExit(main('benchmark_mps', sys.argv[1:]))\n"
    )
    record = tmp_path / "record"
    arguments = ("--python", str(python), "--device", "cpu", "--record", str(record))
    acts = tmp_path / "benchmarks" / "device" / "acts.json"
    acts.write_text(json.dumps({"resnet50:training": {}, "bert:training": {"hang": True}}))
    environ = {**os.environ, "PYTHONPATH": str(SCRIPTS), "MPS_BUILD_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", driver, str(tmp_path), *arguments]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: "bert:training" in _reported(record))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LONGEST_SECONDS)

    partial = load_benchmark(record / "record.json")
    assert (process.returncode, partial.partial, partial.cause) == (143, True, "interrupted")
    assert [row.id for row in partial.rows] == ["resnet50:training"]
    assert partial.missing == ("bert:training",)

    acts.write_text(json.dumps(GOOD))
    second = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False)
    whole = load_benchmark(record / "record.json")

    assert second.returncode == 0, second.stdout + second.stderr
    assert (whole.partial, [row.id for row in whole.rows]) == (False, ["resnet50:training", "bert:training"])
    assert whole.sessions[0] == {"rows": 1, "note": "taken over from an interrupted run"}


def test_a_finished_run_is_measured_anew_and_kept_beside(run: Run, tmp_path: Path) -> None:
    run("--record", str(tmp_path / "record"))
    status, document = run("--record", str(tmp_path / "record"))

    assert (status, len(document["sessions"])) == (0, 1)
    assert (tmp_path / "record" / "record.before.json").is_file()


def test_rows_of_another_torch_never_join_a_record(run: Run, tmp_path: Path) -> None:
    run("--record", str(tmp_path / "record"))
    status, document = run("--record", str(tmp_path / "record"), version="2.14.0")

    assert status == 2
    assert "torch differ" in document["error"]
    assert load_benchmark(tmp_path / "record" / "record.json").torch.version == "2.13.0"


def _reported(record: Path) -> str:
    found = sorted(record.glob("rows.*.jsonl"))
    text = found[-1].read_text() if found else ""
    return "".join(line for line in text.splitlines() if '"size"' in line)


intervals: Any = import_module("device_benchmark.intervals")  # of benchmarks/device, which runs in the venv of a torch


@pytest.mark.parametrize("pairs", [3, 5, 9, 15])
def test_an_interval_holds_the_true_ratio_about_as_often_as_it_says(pairs: int) -> None:
    draw = random.Random(pairs)
    rounds = 40
    held = 0
    for number in range(rounds):
        ratios = [2.0 * draw.lognormvariate(0.0, 0.2) for _ in range(pairs)]
        found = intervals.bootstrap_median(ratios, seed=number)
        held += found.low <= 2.0 <= found.high

    assert held >= rounds - 3


def test_an_interval_of_equal_ratios_is_as_wide_as_the_meter_can_tell() -> None:
    found = intervals.bootstrap_median([3.0] * 9)

    assert (found.median, found.low, found.high) == (
        pytest.approx(3.0),
        pytest.approx(3.0 / 1.02),
        pytest.approx(3.0 * 1.02),
    )


def test_more_pairs_give_a_narrower_interval() -> None:
    draw = random.Random(0)
    ratios = [draw.lognormvariate(0.0, 0.1) for _ in range(15)]
    few, many = intervals.bootstrap_median(ratios[:4]), intervals.bootstrap_median(ratios)

    assert many.high / many.low < few.high / few.low


def test_times_that_only_scatter_seldom_count_as_drift() -> None:
    draw = random.Random(1)
    alarms = sum(intervals.is_drift([draw.lognormvariate(0.0, 0.2) for _ in range(9)]) for _ in range(400))

    assert alarms <= 8


def test_times_that_grow_under_the_same_scatter_count_as_drift() -> None:
    draw = random.Random(2)
    grown = [(1.0 + 0.06 * step) * draw.lognormvariate(0.0, 0.03) for step in range(11)]

    assert intervals.is_drift(grown)
    assert intervals.growth(grown) == pytest.approx(0.6, abs=0.15)


def test_a_growth_of_a_few_percent_is_no_drift_however_steady() -> None:
    assert not intervals.is_drift([1.0 + 0.005 * step for step in range(12)])


def test_the_chance_of_an_order_is_counted_exactly() -> None:
    assert intervals._chance_of(3, 3) == pytest.approx(1 / 6)  # only 1 2 3
    assert intervals._chance_of(1, 3) == pytest.approx(1 / 2)  # and the two with one fall
    assert intervals._chance_of(-3, 3) == pytest.approx(1.0)
