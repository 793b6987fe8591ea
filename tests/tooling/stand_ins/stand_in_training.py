"""An Accelerate and workloads that only play their parts: what the driver does with them is real."""

from __future__ import annotations

from pathlib import Path

# The command line of Accelerate, as far as it is called: `env`, `config default`, `launch`.
ACCELERATE_CLI = """
import json, os, pathlib, runpy, sys

state = json.loads((pathlib.Path(__file__).parents[2] / "accelerate_state.json").read_text())
argv = sys.argv[1:]
if argv == ["env"]:
    print("- `Accelerate` version: 1.15.0\\n- PyTorch version: 2.13.0\\n- offline: " + os.environ["HF_HUB_OFFLINE"])
elif argv == ["config", "default"]:
    path = pathlib.Path(os.environ["HF_HOME"]) / "accelerate" / "default_config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"use_cpu": state["use_cpu"], "distributed_type": "NO"}))
elif argv[0] == "launch":
    place = next(i for i, word in enumerate(argv) if word.endswith(".py"))
    launch, sys.argv = argv[1:place], argv[place:]
    config = {}
    if "--config_file" in launch:
        config = json.loads(pathlib.Path(launch[launch.index("--config_file") + 1]).read_text())
    os.environ["STAND_IN_CPU"] = "1" if "--cpu" in launch or config.get("use_cpu") else ""
    if "--multi_gpu" in launch:
        os.environ["STAND_IN_PROCESSES"] = launch[launch.index("--num_processes") + 1]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""

# One run of a training, told as tests/training/README.md says; `state` says what is wrong with it.
TRAINING = """
import argparse, json, os, pathlib, sys, time
parser = argparse.ArgumentParser()
for name in ("--run", "--expect", "--outcomes", "--exchange", "--steps", "--compared", "--inject"):
    parser.add_argument(name)
parser.add_argument("--force-cpu", action="store_true")
options = parser.parse_args()
name = pathlib.Path(sys.argv[0]).stem
state = json.loads(pathlib.Path(__file__).with_name("state.json").read_text()).get(name, {})

def tell(event, **facts):
    sys.stdout.flush()
    with open(options.outcomes, "a") as file:
        file.write(json.dumps({**facts, "event": event, "output_bytes": os.fstat(2).st_size}) + "\\n")

on_device = options.run == "device"
tell("started", id=name, limit_seconds=60)
tell("session", torch="2.13.0", fallback=os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK"), accelerate="1.15.0")
if on_device and state.get("dies"):
    sys.exit("NotImplementedError: The operator 'aten::x' is not currently implemented for the MPS device.")
if state.get("own_fault") == options.run:
    tell("own_fault", reason="the observer: RuntimeError: Numpy is not available")
    sys.exit("Traceback")
if on_device and state.get("sleeps"):
    pathlib.Path(options.exchange, "asleep").write_text("")
    time.sleep(60)
forced = options.force_cpu or os.environ.get("STAND_IN_CPU") == "1"
device = "cpu" if forced or not on_device or state.get("stays") else options.expect
on = [device if device == "cpu" else device + ":0"]
tell("device", parameters=on, gradients=on, batch=on, loss=on[0], parameter_bytes=8, allocated_bytes=None)
losses = [0.7, 0.6, 0.5]
mine = [0.7, 0.6, float(state["loss"])] if on_device and "loss" in state else losses
tell("losses", losses=mine, batches=["a", "b", "c"])
tell("accuracy", value=state.get("accuracy", 0.99) if on_device else 0.99, count=100)
if not on_device:
    tell("reference", losses=losses, batches=["a", "b", "c"])
    off = state.get("gradient", 1e-7)
    tell("gradients", parameters={"a.weight": {"device": off, "cpu": 1e-7, "scale": 1.0}})
if options.inject:
    tell("fault", name=options.inject, hits=state.get("hits", 7))
tell("fallbacks", operators=state.get("fallbacks", []) if on_device else [])
tell("finished", id=name)
tell("end")
print(state.get("says", ""))
"""

# Cases that judge themselves; one of them may abort.
CASES = """
import argparse, json, os, pathlib, sys
parser = argparse.ArgumentParser()
for name in ("--run", "--expect", "--outcomes", "--exchange", "--inject", "--after", "--real-weights"):
    parser.add_argument(name)
options = parser.parse_args()
name = pathlib.Path(sys.argv[0]).stem
state = json.loads(pathlib.Path(__file__).with_name("state.json").read_text()).get(name, {})
ids = [f"transformers-{name}-{n}" for n in ("one", "two", "three")]
ids = ["transformers-real-weights"] if options.real_weights else ids

def tell(event, **facts):
    sys.stdout.flush(); sys.stderr.flush()
    with open(options.outcomes, "a") as file:
        file.write(json.dumps({**facts, "event": event, "output_bytes": os.fstat(2).st_size}) + "\\n")

ids = ids[ids.index(options.after) + 1:] if options.after in ids else ids
tell("collected", ids=ids)
for case in ids:
    tell("started", id=case, layer="transformers", limit_seconds=60)
    if case.endswith(state.get("aborts", "-")):
        os.abort()
    failed = case.endswith(state.get("fails", "-"))
    tell("finished", id=case, layer="transformers", outcome="failed" if failed else "passed",
         reason="off" if failed else "", error={"max_abs": 0.5, "bound": 1.0}, seconds=0.1,
         fault_hits=state.get("hits"))
tell("end")
"""

PROCESSES = """
import argparse, json, os
parser = argparse.ArgumentParser()
parser.add_argument("--outcomes")
options = parser.parse_args()
assert os.environ["STAND_IN_PROCESSES"] == "2"
message = "No backend type associated with device type mps"
with open(options.outcomes, "a") as file:
    for rank in (0, 1):
        file.write(json.dumps({"event": "joined", "rank": rank, "processes": 1, "device": "mps"}) + "\\n")
        file.write(json.dumps({"event": "refused", "rank": rank, "message": message}) + "\\n")
raise SystemExit(message)
"""


def write_training_suite(root: Path, state: str, *, known_issues: str) -> Path:
    """Write the workloads under `root` as data_root() has them; `state` (JSON by script) says what is wrong."""
    folder = root / "tests" / "training"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("accelerate_vision", "accelerate_paraphrase", "trainer_paraphrase"):
        (folder / f"{name}.py").write_text(TRAINING)
    for name in ("generate", "architectures"):
        (folder / f"{name}.py").write_text(CASES)
    (folder / "two_processes.py").write_text(PROCESSES)
    (folder / "state.json").write_text(state)
    (folder / "known_issues.yaml").write_text(known_issues)
    return root


def add_libraries(site: Path, state: str, versions: dict[str, str]) -> None:
    """Put the stand-in Accelerate into an interpreter's site, and the metadata of all libraries."""
    commands = site / "accelerate" / "commands"
    commands.mkdir(parents=True)
    (site / "accelerate" / "__init__.py").write_text("")
    (commands / "__init__.py").write_text("")
    (commands / "accelerate_cli.py").write_text(ACCELERATE_CLI)
    (site / "accelerate_state.json").write_text(state)
    for name, version in versions.items():
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
