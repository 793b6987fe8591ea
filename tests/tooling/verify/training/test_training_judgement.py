"""From what two runs reported to the cases: each way to be wrong has its case, none passes unjudged."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from mps_build.common.process import Captured
from mps_build.common.records.device_record import Case
from mps_build.verify.training import judgement
from mps_build.verify.training.children import ChildReport
from mps_build.verify.training.judgement import compare_losses, judge_processes, judge_training, not_applicable
from mps_build.verify.training.request import WORKLOADS, Workload

TRAINING = Workload(name="w", part="accelerate", kind="training", gate=0.95)
LOSSES = [0.7 - 0.01 * step for step in range(20)]
BATCHES = [f"{step:016x}" for step in range(20)]


def device_event(device: str, **changes: Any) -> dict[str, Any]:
    on = f"{device}:0" if device != "cpu" else "cpu"
    facts = {"parameters": [on], "gradients": [on], "batch": [on], "loss": on, "parameter_bytes": 1000}
    return {"event": "device", **facts, "allocated_bytes": 5000 if device == "mps" else None, **changes}


def run_on(device: str) -> ChildReport:
    return ChildReport(
        events=[
            {"event": "session", "torch": "2.13.0", "fallback": None},
            device_event(device),
            device_event(device, gradients=[]),
            {"event": "losses", "losses": list(LOSSES), "batches": list(BATCHES)},
            {"event": "accuracy", "value": 0.98, "count": 512},
            {"event": "fallbacks", "operators": []},
        ]
    )


def cpu_run() -> ChildReport:
    reported = run_on("cpu")
    reported.events.append({"event": "reference", "losses": list(LOSSES), "batches": list(BATCHES)})
    parameters = {
        "a.weight": {"device": 1e-6, "cpu": 1e-7, "scale": 0.1},
        "a.bias": {"device": 1e-11, "cpu": 0.0, "scale": 1e-12},
    }
    reported.events.append({"event": "gradients", "parameters": parameters})
    return reported


def judged(run: ChildReport, cpu: ChildReport | None, workload: Workload = TRAINING) -> dict[str, Case]:
    return {case.id.removeprefix("w-"): case for case in judge_training(workload, "mps", run, cpu)}


def change(reported: ChildReport, kind: str, **changes: Any) -> ChildReport:
    reported.events = [
        {**event, **changes} if event["event"] == kind else event for event in copy.deepcopy(reported.events)
    ]
    return reported


def test_a_right_training_passes_every_question_with_its_figures() -> None:
    cases = judged(run_on("mps"), cpu_run())

    assert {name: case.outcome for name, case in cases.items()} == dict.fromkeys(
        ("runs", "device", "cpu", "fallback", "gradients", "losses", "accuracy"), "passed"
    )
    assert cases["gradients"].bound == pytest.approx(1e-4)
    assert "0.980 of 512" in str(cases["accuracy"].reason)


@pytest.mark.parametrize("what", ["parameters", "batch", "gradients", "loss"])
def test_a_model_that_stays_on_the_cpu_is_noticed(what: str) -> None:
    run = run_on("mps")
    run.events[1] = device_event("mps", **{what: "cpu" if what == "loss" else ["cpu", "mps:0"]})

    case = judged(run, cpu_run())["device"]

    assert case.outcome == "failed"
    assert f"{what} on cpu, not on mps (look 1)" in str(case.reason)


def test_a_model_that_leaves_the_device_at_the_end_is_noticed() -> None:
    run = run_on("mps")
    run.events[2] = device_event("cpu")

    assert "(look 2)" in str(judged(run, cpu_run())["device"].reason)


def test_an_allocator_that_gave_out_less_than_the_parameters_is_noticed() -> None:
    run = change(run_on("mps"), "device", allocated_bytes=10)

    assert "mps's allocator gave out 10 bytes" in str(judged(run, cpu_run())["device"].reason)


def test_an_allocator_that_does_not_answer_is_said() -> None:
    run = change(run_on("mps"), "device", allocated_bytes=None)

    case = judged(run, cpu_run())["device"]
    assert (case.outcome, "does not say how much" in str(case.reason)) == ("passed", True)


def test_a_wrong_gradient_is_a_failure_that_names_the_parameter() -> None:
    cpu = change(cpu_run(), "gradients", parameters={"a.weight": {"device": 1e-3, "cpu": 1e-7, "scale": 0.1}})

    case = judged(run_on("mps"), cpu)["gradients"]

    assert case.outcome == "failed"
    assert "gradient of a.weight: off by 0.001" in str(case.reason)
    assert case.largest == 1e-3
    assert case.bound == pytest.approx(1e-4)


@pytest.mark.parametrize("value", [None, "nan"])
def test_a_gradient_that_is_missing_or_no_number_is_a_failure(value: Any) -> None:
    cpu = change(cpu_run(), "gradients", parameters={"a.weight": {"device": value, "cpu": 1e-7, "scale": 0.1}})

    assert judged(run_on("mps"), cpu)["gradients"].outcome == "failed"


def test_losses_that_leave_the_bound_name_the_step() -> None:
    run = change(run_on("mps"), "losses", losses=[*LOSSES[:7], 0.7, *LOSSES[8:]])

    case = judged(run, cpu_run())["losses"]

    assert case.outcome == "failed"
    assert "step 8: loss 0.700000, in float64 0.630000" in str(case.reason)


def test_a_nan_is_named_by_its_step_though_the_run_went_on() -> None:
    run = change(run_on("mps"), "losses", losses=[*LOSSES[:3], "nan", *LOSSES[4:]])

    assert "step 4: the loss is nan" in str(judged(run, cpu_run())["losses"].reason)


def test_a_nan_is_named_by_its_step_though_the_run_died() -> None:
    run = ChildReport(events=[{"event": "step", "loss": 0.7}, {"event": "step", "loss": "nan"}], trouble="exit 1: x")

    assert "step 2: the loss is nan" in str(judged(run, None)["losses"].reason)


def test_runs_that_saw_other_batches_are_not_compared() -> None:
    run = change(run_on("mps"), "losses", batches=["f" * 16, *BATCHES[1:]])

    assert "different batches" in str(judged(run, cpu_run())["losses"].reason)


def test_the_bound_is_the_cpus_own_drift_but_never_as_wide_as_a_fault() -> None:
    outcome, _, off, bound = compare_losses([0.5004], [0.5001], [0.5])
    assert (outcome, bound) == ("passed", pytest.approx(8e-4))
    assert off == pytest.approx(4e-4)
    assert compare_losses([0.52], [0.51], [0.5])[0] == "failed"
    assert compare_losses([0.5006], [0.5], [0.5])[0] == "failed"


@pytest.mark.parametrize(
    ("ours", "theirs", "says"), [(0.9, 0.98, "0.900 of"), (0.98, 0.9, "the CPU itself learnt too little")]
)
def test_an_accuracy_below_the_gate_fails_on_either_run(ours: float, theirs: float, says: str) -> None:
    run, cpu = change(run_on("mps"), "accuracy", value=ours), change(cpu_run(), "accuracy", value=theirs)

    case = judged(run, cpu)["accuracy"]

    assert case.outcome == "failed"
    assert says in str(case.reason)


def test_an_operator_that_fell_back_unbidden_is_a_failure() -> None:
    run = change(run_on("mps"), "fallbacks", operators=["aten::x ... will fall back to run on the CPU."])

    assert judged(run, cpu_run())["fallback"].outcome == "failed"


def test_with_the_variable_set_what_fell_back_is_said_and_is_no_failure() -> None:
    workload = Workload(name="w", part="transformers", kind="training", fallback=True, against="v", steps=20)
    run = change(run_on("mps"), "fallbacks", operators=["aten::x"])
    run = change(run, "session", fallback="1")

    cases = judged(run, cpu_run(), workload)

    assert {name: case.outcome for name, case in cases.items()} == dict.fromkeys(
        ("runs", "device", "fallback", "losses"), "passed"
    )
    assert "aten::x" in str(cases["fallback"].reason)
    assert judged(run_on("mps"), cpu_run(), workload)["fallback"].outcome == "failed"  # the variable did not arrive


def test_a_run_that_died_leaves_no_question_passed() -> None:
    run = ChildReport(events=[], trouble="the process died with SIGABRT: x", outcome="crashed")

    cases = judged(run, None)

    assert cases["runs"].outcome == "crashed"
    assert {case.outcome for name, case in cases.items() if name != "runs"} == {"skipped"}


PROCESSES = next(workload for workload in WORKLOADS if workload.kind == "processes")
# As torch says it: https://github.com/pytorch/pytorch/issues/149537, and of gloo from 2.8 on.
NO_BACKEND = (
    "ValueError: We detected accelerator mps on your machine. But we don't know which communication backend to use for "
    "this accelerator. Please specify the `backend` argument in the `init_process_group` call."
)
GLOO = (
    "RuntimeError: ProcessGroupGloo::allreduce: invalid tensor type at index 0 "
    "(expected TensorOptions(...device=cpu), got device=mps:0)"
)


def two(*, processes: int, device: str = "mps", message: str | None = None, total: float | None = None) -> ChildReport:
    reported = ChildReport(trouble="the process ended with exit 1: x" if message else None)
    for rank in (0, 1):
        reported.events.append({"event": "joined", "rank": rank, "processes": processes, "device": device})
        if message is not None:
            reported.events.append({"event": "refused", "rank": rank, "message": message})
        if total is not None:
            reported.events.append({"event": "reduced", "rank": rank, "sum": total})
    return reported


@pytest.mark.parametrize("message", [NO_BACKEND, GLOO, "Distributed package doesn't have NCCL built in"])
def test_a_clear_refusal_of_two_processes_is_what_the_pages_promise(message: str) -> None:
    case = judge_processes(PROCESSES, two(processes=1, message=message), "")

    assert case.outcome == "passed"
    assert "Accelerate took 2 of them for single processes" in str(case.reason)


@pytest.mark.parametrize(
    ("reported", "outcome", "says"),
    [
        (two(processes=2, message="KeyError: 'x'"), "failed", "no clear reason"),
        (two(processes=2, total=3.0), "unexpected_pass", "the announced limit is gone"),
        (two(processes=2, total=1.0), "failed", "not [3.0, 3.0]"),
        (two(processes=2, device="cpu", total=3.0), "failed", "ran on cpu without a word"),
        (ChildReport(trouble="ended by the watchdog", outcome="timeout"), "timeout", "hang"),
        (ChildReport(events=[]), "failed", "no refusal"),
    ],
)
def test_anything_else_of_two_processes_is_no_pass(reported: ChildReport, outcome: str, says: str) -> None:
    case = judge_processes(PROCESSES, reported, "Traceback")

    assert case.outcome == outcome
    assert says in str(case.reason)


def test_where_there_is_no_mps_the_limit_is_not_applicable_and_never_passed() -> None:
    case = not_applicable(PROCESSES, "cuda")

    assert (case.outcome, "not applicable" in str(case.reason)) == ("skipped", True)


def answer(stdout: str = "", exit: int | None = 0) -> Captured:
    return Captured(
        argv=("accelerate",), stdout=stdout, stderr="boom" if exit else "", exit=exit, timed_out=exit is None
    )


def test_a_default_config_that_keeps_the_device_off_is_a_failure() -> None:
    case = judgement.judge_config(answer(), {"use_cpu": True, "distributed_type": "NO"}, "mps")

    assert case.outcome == "failed"
    assert "stays on the CPU, not on mps" in str(case.reason)
    assert judgement.judge_config(answer(), {"use_cpu": True}, "cpu").outcome == "passed"
    assert judgement.judge_config(answer(), {"use_cpu": False}, "mps").outcome == "passed"


@pytest.mark.parametrize("bad", [answer(exit=1), answer(exit=None)])
def test_a_command_that_fails_is_no_pass(bad: Captured) -> None:
    assert judgement.judge_env(bad).outcome in ("failed", "timeout")
    assert judgement.judge_config(bad, None, "mps").outcome in ("failed", "timeout")


def test_an_env_that_names_nothing_is_a_failure() -> None:
    assert judgement.judge_env(answer("hello")).outcome == "failed"
    assert judgement.judge_env(answer("- `Accelerate` version: 1\n- PyTorch version: 2")).outcome == "passed"


def test_the_launches_take_the_default_config_with_the_device_on() -> None:
    config = judgement.launch_config({"use_cpu": True, "num_processes": 8, "debug": False}, device="mps")

    assert config == {"use_cpu": False, "num_processes": 1, "distributed_type": "NO", "num_machines": 1, "debug": False}
