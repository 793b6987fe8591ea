"""Libraries over the simulated device, as they are: Accelerate's own tests, Transformers' Trainer, Apple's script."""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from mps_build.common.cores import usable_cores
from mps_build.common.process import Captured, Command, capture
from mps_build.common.reporting import SilentReporter
from mps_build.simulation.builder.build import Built, build
from mps_build.simulation.libraries import libraries_of
from mps_build.simulation.releases import find_release
from mps_build.simulation.session import program_argv, simulated_environ

pytestmark = pytest.mark.slow

_ACCELERATE = "1.15.0"
_PACKAGES = (f"accelerate=={_ACCELERATE}", "transformers==5.24.0", "parameterized", "setuptools")
# Those of its tests that ask for a device and need neither a network nor several devices.
_FILES = (
    *("accelerator", "hooks", "modeling_utils", "optimizer", "memory_utils", "state_checkpointing"),
    *("kwargs_handlers", "grad_sync"),
)
# Accelerate: "Grad Scaler with MPS device requires a Pytorch >= 2.8.0". So it is on a Mac.
_NEED_A_NEWER_TORCH = {
    "tests/test_accelerator.py::AcceleratorTester::test_can_unwrap_model_fp16",
    "tests/test_kwargs_handlers.py::KwargsHandlerTester::test_autocast_kwargs",
    "tests/test_kwargs_handlers.py::KwargsHandlerTester::test_grad_scaler_kwargs",
    "tests/test_optimizer.py::OptimizerTester::test_accelerated_optimizer_step_was_skipped",
}
# It compares the free memory of the whole machine before and after.
_OF_THE_MACHINE = "tests/test_accelerator.py::AcceleratorTester::test_free_memory_dereferences_prepared_components"
# https://developer.apple.com/metal/pytorch
_APPLE = """
import torch
if torch.backends.mps.is_available():
    mps_device = torch.device("mps")
    x = torch.ones(1, device=mps_device)
    print (x)
else:
    print ("MPS device not found.")
"""
# Training, evaluation, prediction, a checkpoint and its resumption, against the CPU; the model is drawn, not fetched.
_TRAINER = """
import sys
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
config = BertConfig(
    vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)
state = BertForSequenceClassification(config).state_dict()
words = torch.randint(5, 99, (64, 16))
rows = [{"input_ids": row, "attention_mask": torch.ones_like(row), "labels": int(row[0] > 50)} for row in words]

def trained(device):
    model = BertForSequenceClassification(config)
    model.load_state_dict(state)
    arguments = TrainingArguments(
        f"{sys.argv[1]}/{device}", per_device_train_batch_size=8, num_train_epochs=2, learning_rate=1e-3, seed=1,
        logging_steps=1, save_steps=8, eval_strategy="epoch", report_to=[], use_cpu=device == "cpu", disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows[:16])
    assert trainer.args.device.type == device
    trainer.train()
    losses = [each["loss"] for each in trainer.state.log_history if "loss" in each]
    predicted = torch.as_tensor(trainer.predict(rows[:16]).predictions)
    trainer.train(resume_from_checkpoint=f"{sys.argv[1]}/{device}/checkpoint-8")
    again = torch.as_tensor(trainer.predict(rows[:16]).predictions)
    return losses, predicted, again

mps, cpu = trained("mps"), trained("cpu")
assert len(mps[0]) == 16
assert max(abs(one - other) for one, other in zip(mps[0], cpu[0])) < 1e-5, (mps[0], cpu[0])
assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(mps[1:], cpu[1:]))
print("trained")
"""


@pytest.fixture(scope="module")
def built() -> Built:
    return build(find_release("2.6.0"), jobs=usable_cores(), reporter=SilentReporter())


@pytest.fixture(scope="module")
def libraries(built: Built) -> Path:
    found = libraries_of(built, packages=_PACKAGES, folder=None, reporter=SilentReporter())
    assert found is not None
    return found


def _run(built: Built, argv: Sequence[str], folder: Path, libraries: Path | None = None) -> Captured:
    environ = simulated_environ(built, macos="15.2", environ={**os.environ, "HF_HUB_OFFLINE": "1"}, libraries=libraries)
    command = Command(argv=program_argv(built, argv, libraries=libraries), cwd=folder, environ=environ)
    return capture(command, timeout_seconds=3600)


def test_apples_script_finds_the_device(built: Built, tmp_path: Path) -> None:
    assert _run(built, ("python", "-c", _APPLE), tmp_path).stdout == "tensor([1.], device='mps:0')\n"


def test_the_trainer_of_transformers_trains_as_on_the_cpu(built: Built, libraries: Path, tmp_path: Path) -> None:
    answer = _run(built, ("python", "-c", _TRAINER, str(tmp_path)), tmp_path, libraries)

    assert answer.stdout.endswith("trained\n"), answer.stderr


def test_accelerates_own_tests_pass(built: Built, libraries: Path, tmp_path: Path) -> None:
    options = ("--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--disable-pip-version-check")
    fetched = _run(
        built, ("python", "-m", "pip", "download", *options, f"accelerate=={_ACCELERATE}"), tmp_path, libraries
    )
    assert fetched.ok, fetched.stderr
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as package:
        package.extractall(tmp_path, filter="data")
    files = [f"tests/test_{name}.py" for name in _FILES]
    argv = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--deselect", _OF_THE_MACHINE, *files)

    answer = _run(built, argv, tmp_path / f"accelerate-{_ACCELERATE}", libraries)

    failed = set(re.findall(r"^FAILED (\S+)", answer.stdout, re.MULTILINE))
    assert failed == _NEED_A_NEWER_TORCH, answer.stdout
    assert re.search(r"^4 failed, 110 passed, 37 skipped, 1 deselected", answer.stdout, re.MULTILINE), answer.stdout
