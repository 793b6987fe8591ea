"""Real trainings, with a fault in the device run and without, and the user's own program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.verify.training.commands import Bench, script_environ
from mps_build.verify.training.request import SCRIPT

pytestmark = pytest.mark.slow
FAULTS = Path(__file__).parents[3] / "sensitivity" / "training_faults.py"


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
    """The real run is set to expect MPS on a host that has none: it trains on the CPU, and must not pass for MPS."""
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


def test_a_saved_model_of_the_user_is_tested_and_a_broken_one_is_a_failure(rehearse: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    config = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 32, "num_hidden_layers": 1}
    config |= {"num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50, "max_position_embeddings": 32}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"no weights at all")

    status, document = rehearse("--only", "transformers-real-weights", "--real-weights", str(folder))

    assert (status, document["cases"][0]["outcome"]) == (10, "failed")


ROOT = Path(__file__).parents[4]
# Picks its device by itself, as the libraries' examples do; its dropout is random, its data are not.
PROGRAM = """
import sys, torch
from torch import nn
import helper
device = sys.argv[sys.argv.index("--device") + 1] if "--device" in sys.argv else helper.device()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3)).to(device)
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[sys.argv.index("--steps") + 1])):
    x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
    loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
"""
HELPER = "import torch\ndef device():\n    return 'cuda' if torch.cuda.is_available() else 'cpu'\n"
# A gradient that is off by a hundredth on the device run alone.
FAULT = """
import contextlib, torch
@contextlib.contextmanager
def off():
    whole = torch.nn.functional.linear
    def wrong(x, weight, bias=None):
        return whole(x, weight * 1.01, bias)
    torch.nn.functional.linear = wrong
    try:
        yield
    finally:
        torch.nn.functional.linear = whole
"""


def _python() -> str:
    """Return a Python that has torch: the one that tests are given, or ours."""
    python = os.environ.get("MPS_BUILD_TEST_TORCH", sys.executable)
    if subprocess.run([python, "-c", "import torch, numpy"], capture_output=True, check=False).returncode:
        pytest.skip("no Python with torch here (MPS_BUILD_TEST_TORCH names one)")
    return python


@pytest.fixture(name="program")
def _program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    folder = tmp_path / "my programs"
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "helper.py").write_text(HELPER, encoding="utf-8")
    (folder / "faults.py").write_text(FAULT, encoding="utf-8")
    return folder / "train.py"


def _python_without_numpy(folder: Path) -> str:
    """Return a Python that has the torch of `_python`, and no NumPy."""
    base = _python()
    subprocess.run([base, "-m", "venv", "--without-pip", folder], check=True)
    ask = "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))"
    packages = subprocess.run([base, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    (site,) = (folder / "lib").glob("python3.*/site-packages")
    (site / "numpy.py").write_text("raise ModuleNotFoundError('no NumPy', name='numpy')\n", encoding="utf-8")
    (site / "torch.pth").write_text(f"{packages}\n", encoding="utf-8")
    return str(folder / "bin" / "python")


def _run(
    program: Path, *words: str, behind: tuple[str, ...] = ("--steps", "30"), python: str | None = None
) -> tuple[int, dict[str, Any]]:
    answer = program.parent / "answer.json"
    own = ["--python", python or _python(), "--device", "cpu", "--script", str(program), "--json", str(answer), *words]
    status = main("verify_training", [*own, "--", *behind])
    return status, json.loads(answer.read_text(encoding="utf-8"))


def _outcomes(document: dict[str, Any]) -> dict[str, str]:
    return {case["id"]: case["outcome"] for case in document["cases"]}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("--steps", "30"), ("--steps", "3", "--device", "{device}")])
def test_a_program_of_the_users_own_is_run_as_it_is(program: Path, arguments: tuple[str, ...]) -> None:
    status, document = _run(program, behind=arguments)

    assert status == 0, document
    assert _outcomes(document) == dict.fromkeys(
        ("script-runs", "script-device", "script-cpu", "script-gradients", "script-losses"), "passed"
    )
    losses = next(case for case in document["cases"] if case["id"] == "script-losses")
    assert losses["reason"] == f"{min(20, int(arguments[1]))} steps"
    assert document["statement"].startswith("Training by train.py.")


@pytest.mark.slow
def test_the_program_is_watched_where_there_is_no_numpy(program: Path, tmp_path: Path) -> None:
    status, document = _run(program, python=_python_without_numpy(tmp_path / "bare"))

    assert status == 0, document
    assert set(_outcomes(document).values()) == {"passed"}


@pytest.mark.slow
def test_a_failure_of_the_observer_says_nothing_of_the_torch(program: Path) -> None:
    # What the observer computes with, and the program does not.
    text = program.read_text(encoding="utf-8")
    program.write_text(text.replace("import helper", "import hashlib, helper; hashlib.sha256 = None"), encoding="utf-8")

    status, document = _run(program)

    assert (status, document["verdict"], document["cause"]) == (20, "not_verified", "own_fault"), document
    assert "a part of mps-build failed, not the torch under test: the observer: TypeError" in document["error"]


@pytest.mark.slow
def test_a_fault_of_the_device_is_found_in_its_losses(program: Path) -> None:
    status, document = _run(program, "--inject", f"{program.parent / 'faults.py'}:off")

    assert status == 10, document
    assert "failed" in _outcomes(document).values()


@pytest.mark.slow
def test_a_program_that_never_trains_or_fails_is_a_failure(program: Path) -> None:
    status, document = _run(program, behind=("--steps", "0"))

    assert status == 10
    runs = next(case for case in document["cases"] if case["id"] == "script-runs")
    assert "ended without a step" in runs["reason"]
    program.write_text("raise ValueError('mine')\n", encoding="utf-8")
    assert "mine" in str(_run(program)[1]["cases"])


def test_what_cannot_be_run_is_refused_before_the_machine_is_looked_at(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in (
        (["--script", str(program.parent / "none.py")], "no such file"),
        (["--script", str(program), "--only", "accelerate-vision"], "cannot be combined"),
        (["--", "--epochs", "1"], "need --script FILE"),
    ):
        assert main("verify_training", ["--python", sys.executable, "--device", "cpu", *words]) == 2
        assert said in capsys.readouterr().err


def test_the_program_gets_its_arguments_its_folder_and_its_own_caches(tmp_path: Path) -> None:
    own = {"HF_HOME": "/mine", "SECRET": "x"}
    environ = script_environ({"PATH": "/bin"}, own=own, device="cpu")
    bench = Bench(
        python=Path("/p/python"),
        environ=environ,
        scripts=ROOT / "tests" / "training",
        folder=tmp_path,
        device="mps",
        force_cpu=False,
        program=("/my/train.py", "--device", "{device}"),
    )

    command = bench.training(SCRIPT, "device")

    assert command.argv[-5:] == ("--program", "/my/train.py", "--", "--device", "{device}")
    assert command.cwd == Path.cwd()
    assert (environ["HF_HOME"], "SECRET" in environ) == ("/mine", False)
