"""The commands of the workloads: what each run is given, and what of the caller's environment it gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.verify.training.commands import Bench, training_environ
from mps_build.verify.training.request import WORKLOADS, TrainingRequest, Workload

FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"


def workload(name: str) -> Workload:
    return next(row for row in WORKLOADS if row.name == name)


def bench(device: str = "mps", *, force_cpu: bool = False, fault: str | None = None) -> Bench:
    made = Bench(
        python=Path("/v/bin/python"),
        environ={"PATH": "/bin", FALLBACK: "1"},
        scripts=Path("/s"),
        folder=Path("/f"),
        device=device,
        force_cpu=force_cpu,
        fault=fault,
    )
    return made.with_config(Path("/f/launch_config.json"))


def test_the_device_run_is_launched_with_the_config_and_the_cpus_with_cpu() -> None:
    device = bench().training(workload("accelerate-vision"), "device").argv
    cpu = bench().training(workload("accelerate-vision"), "cpu").argv

    assert device[:5] == ("/v/bin/python", "-m", "accelerate.commands.accelerate_cli", "launch", "--num_processes")
    assert "/f/launch_config.json" in device
    assert "--cpu" not in device
    assert "--cpu" in cpu[: cpu.index("/s/accelerate_vision.py")]
    assert "--config_file" not in cpu
    assert "--force-cpu" not in cpu


def test_trainer_gets_the_cpu_by_its_own_argument_and_else_for_nothing() -> None:
    device = bench().training(workload("transformers-trainer"), "device").argv
    cpu = bench().training(workload("transformers-trainer"), "cpu").argv

    assert device[:2] == ("/v/bin/python", "/s/trainer_paraphrase.py")
    assert "--force-cpu" not in device
    assert "--force-cpu" in cpu


def test_a_rehearsal_on_a_mac_keeps_both_runs_off_its_gpu() -> None:
    made = bench("cpu", force_cpu=True)

    assert "--cpu" in made.training(workload("accelerate-vision"), "device").argv
    assert "--force-cpu" in made.training(workload("transformers-trainer"), "device").argv


def test_the_fallback_is_set_for_its_own_run_only() -> None:
    trainer, fallback = workload("transformers-trainer"), workload("transformers-trainer-fallback")

    assert FALLBACK not in (bench().training(trainer, "device").environ or {})
    assert (bench().training(fallback, "device").environ or {})[FALLBACK] == "1"
    assert FALLBACK not in (bench().training(fallback, "cpu").environ or {})


def test_a_fault_is_injected_into_the_device_run_only() -> None:
    made = bench(fault="/p.py:wrong")

    assert "/p.py:wrong" in made.training(workload("accelerate-vision"), "device").argv
    assert "/p.py:wrong" not in made.training(workload("accelerate-vision"), "cpu").argv
    assert "/p.py:wrong" in made.cases(workload("transformers-generate"), after=None, weights=None).argv


def test_two_processes_do_not_take_the_default_config_which_may_keep_mps_off() -> None:
    argv = bench().processes(workload("accelerate-two-processes")).argv

    assert argv[argv.index("--num_processes") :][:2] == ("--num_processes", "2")
    assert "--multi_gpu" in argv
    assert "/f/launch_config.json" in argv


def test_nothing_of_a_users_hugging_face_reaches_the_children() -> None:
    caller = {"HF_HOME": "/u", "HF_TOKEN": "secret", "ACCELERATE_USE_CPU": "true", "CUDA_VISIBLE_DEVICES": "1"}

    made = training_environ(caller, home=Path("/ours"), device="cuda")

    assert (made["HF_HOME"], made["HF_HUB_OFFLINE"], made["CUDA_VISIBLE_DEVICES"]) == ("/ours", "1", "1")
    assert not {"HF_TOKEN", "ACCELERATE_USE_CPU"} & made.keys()
    assert training_environ(caller, home=Path("/ours"), device="cpu")["CUDA_VISIBLE_DEVICES"] == ""


def test_only_chooses_by_pattern_and_within_the_chosen_libraries() -> None:
    request = TrainingRequest(target="torch", only=("*-vision", "accelerate-command"))

    assert [row.name for row in request.workloads()] == ["accelerate-command", "accelerate-vision"]
    with pytest.raises(UsageError, match="no workload transformers-generate"):
        TrainingRequest(target="torch", parts=("accelerate",), only=("transformers-generate",)).workloads()
