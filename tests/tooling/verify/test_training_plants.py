"""Real trainings with a fault in the device run: each is caught, and by the question that is asked about it.

The environment is made by the command itself (torch for the CPU, by pip), or named by MPS_BUILD_TRAINING_PYTHON.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main

pytestmark = pytest.mark.slow
FAULTS = Path(__file__).parents[2] / "sensitivity" / "training_plants.py"


@pytest.fixture
def rehearse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that rehearses workloads on the CPU and returns the status and the document."""
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    python = os.environ.get("MPS_BUILD_TRAINING_PYTHON")
    target = ["--python", python] if python else ["torch==2.13.0"]

    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        answer = tmp_path / "answer.json"
        status = main("verify_training", [*target, "--device", "cpu", "--json", str(answer), *arguments])
        return status, json.loads(answer.read_text())

    return run


@pytest.mark.parametrize(
    ("fault", "workload", "caught_by", "says"),
    [
        ("GeluBackward", "accelerate-vision", "accelerate-vision-gradients", "first step, gradient of"),
        ("NotANumber", "accelerate-vision", "accelerate-vision-losses", "step 10: the loss is nan"),
        ("wrong_metric", "accelerate-vision", "accelerate-vision-accuracy", "on the device, 0.97"),
        ("GeluBackward", "transformers-architectures", "transformers-bert", "gradient of"),
        ("ShortSum", "transformers-generate", "transformers-generate-", ""),
    ],
)
def test_an_injected_fault_is_caught_by_its_question(
    rehearse: Any, fault: str, workload: str, caught_by: str, says: str
) -> None:
    status, document = rehearse("--only", workload, "--inject", f"{FAULTS}:{fault}")

    assert (status, document["fault"], document["cause"]) == (10, "caught", "regressed")
    bad = document["cases"][-1]
    assert bad["id"].startswith(caught_by)
    assert (bad["outcome"], says in bad["reason"]) == ("failed", True), bad["reason"]
    assert all(case["outcome"] == "passed" for case in document["cases"][:-1])


def test_a_fault_that_never_fires_is_not_exercised_and_everything_passes(rehearse: Any) -> None:
    status, document = rehearse("--only", "accelerate-vision", "--inject", f"{FAULTS}:never")

    assert (status, document["fault"]) == (2, "not_exercised")
    assert {case["outcome"] for case in document["cases"]} == {"passed"}


def test_a_model_that_silently_stays_on_another_device_is_noticed(rehearse: Any, tmp_path: Path) -> None:
    """The real run is told to expect MPS on a host that has none: it trains on the CPU, and must not pass for MPS."""
    from mps_build.verify.training.children import ChildReport
    from mps_build.verify.training.judgement import judge_training
    from mps_build.verify.training.request import WORKLOADS

    status, _ = rehearse("--only", "accelerate-vision", "--record", str(tmp_path / "record"))
    assert status == 0
    workload = next(row for row in WORKLOADS if row.name == "accelerate-vision")
    files = {name: tmp_path / "record" / f"{workload.name}.{name}.outcomes.jsonl" for name in ("device", "cpu")}
    runs = {name: [json.loads(line) for line in file.read_text().splitlines()] for name, file in files.items()}

    cases = judge_training(workload, "mps", ChildReport(events=runs["device"]), ChildReport(events=runs["cpu"]))

    found = {case.id: case for case in cases}
    assert found["accelerate-vision-device"].outcome == "failed"
    assert "parameters on cpu, not on mps" in str(found["accelerate-vision-device"].reason)
    assert found["accelerate-vision-losses"].outcome == "passed"


def test_a_saved_model_of_the_user_is_asked_and_a_broken_one_is_a_failure(rehearse: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    config = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 32, "num_hidden_layers": 1}
    config |= {"num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50, "max_position_embeddings": 32}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"no weights at all")

    status, document = rehearse("--only", "transformers-real-weights", "--real-weights", str(folder))

    assert (status, document["cases"][0]["outcome"]) == (10, "failed")
