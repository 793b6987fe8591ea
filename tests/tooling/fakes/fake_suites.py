"""A device suite, a torch, an Accelerate and workloads that only play their parts: what the driver does is real."""

from __future__ import annotations

import os
import py_compile
import site
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.records.device_record import Estimate
from mps_build.verify.suite.driver import run_suite
from mps_build.verify.suite.outcomes import SuiteRun
from mps_build.verify.suite.request import Limits, SuiteRequest

# tests/device/README.md, "Options" and "Events", without torch.
CONFTEST = '''
import json, os, pathlib, sys, time
import pytest

FINDING = {"id": "exp:dtype:1234", "operator": "exp", "transformation": "dtype", "dtype": "float16",
           "levels": {"@dtype": "torch.float16"}, "script": "import torch\\n", "no_script": None}

def pytest_addoption(parser):
    names = ("device", "only", "op", "known", "outcomes", "after", "shard", "layer", "done", "time")
    for name in (*names, "cases", "keys", "seed"):
        parser.addoption(f"--{name}", default="")
    for name in ("full", "quick", "no-estimate"):
        parser.addoption(f"--{name}", action="store_true")
    parser.addoption("--inject", "--plant", dest="inject", default="")

def write(config, **event):
    sys.stdout.flush(); sys.stderr.flush()
    with open(config.getoption("--outcomes"), "a") as file:
        file.write(json.dumps({**event, "output_bytes": os.fstat(2).st_size}) + "\\n")

def hits_of(config):
    fault = config.getoption("inject")
    return None if "uncounted" in fault else 0 if "unhit" in fault else config.hits

def hit(item):
    """Most faults have a hit in each case; "reaching" in some, "unhit" in none."""
    fault = item.config.getoption("inject")
    item.config.hits += "reached" in item.name or "reaching" not in fault
    if fault and "uncounted" not in fault:
        count = pathlib.Path(item.config.getoption("--outcomes")).with_suffix(".hits")
        count.write_bytes(hits_of(item.config).to_bytes(8, sys.byteorder))

def pytest_configure(config):
    if "no-such-fault" in config.getoption("inject"):
        raise pytest.UsageError("fault.py has no callable no-such-fault")
    config.pluginmanager.register(Imports(config))
    config.known, config.hits = {}, 0
    os.environ["FAKE_DEVICE"] = config.getoption("--device")
    os.environ["FAKE_FAULT"] = config.getoption("inject")
    for row in json.load(open(config.getoption("--known"))):
        config.known.update(dict.fromkeys(row["cases"], row))

def pytest_sessionstart(session):
    if session.config.getoption("inject"):
        write(session.config, event="session", fault_hits=hits_of(session.config))

def pytest_collection_modifyitems(config, items):
    if config.getoption("--shard"):
        part, parts = map(int, config.getoption("--shard").split("/"))
        items[:] = items[part::parts]
    ids = [item.name for item in items]
    after = config.getoption("--after")
    if after in ids:
        del items[: ids.index(after) + 1]
    if config.getoption("--done"):
        done = json.load(open(config.getoption("--done")))
        items[:] = [item for item in items if item.name not in done]
    if config.getoption("--only"):
        items[:] = [item for item in items if item.name in config.getoption("--only").split(",")]

def pytest_collection_finish(session):
    files = [item.location[0].rpartition("/")[2] for item in session.items]
    write(session.config, event="collected", ids=[item.name for item in session.items], files=files)
    if not session.config.getoption("--no-estimate"):
        if any("dies_in_the_estimate" in item.name for item in session.items):
            os.abort()
        write(session.config, event="estimate", cases=len(session.items), keys=7, low_seconds=1.5, high_seconds=2.5)
    session.config.begun = time.monotonic()

class Imports:
    def __init__(self, config):
        self.config = config
    def pytest_collectreport(self, report):
        if report.failed:
            write(self.config, event="uncollected", file=report.nodeid, text=str(report.longrepr))

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    if "silent" in item.name:
        yield
        return
    most = float(item.config.getoption("--time") or "inf")
    if time.monotonic() - item.config.begun > most:
        write(item.config, event="time_over")
        item.session.shouldstop = "the time is over"
        yield
        return
    # A case that is to be ended for its memory must not run into the limit of time on a machine that is busy.
    write(item.config, event="started", id=item.name, layer="fake", limit_seconds=60 if "memory" in item.name else 0)
    before = hits_of(item.config)
    hit(item)
    outcome = yield
    error = outcome.excinfo
    skipped = error is not None and error[0] is pytest.skip.Exception
    word = "passed" if error is None else "skipped" if skipped else "failed"
    if word == "failed" and item.name == "test_own":
        word = "own_fault"
    row = None
    if item.name in item.config.known:
        word = {"passed": "unexpected_pass", "failed": "known"}[word]
        row = item.config.known[item.name]["id"]
    if word == "known":
        outcome.force_exception(pytest.xfail.Exception("known"))
    write(item.config, event="finished", id=item.name, layer="fake", issue=["1"], outcome=word,
          reason=str(error[1]) if error else "", error={"max_abs": 0.5, "bound": 1.0}, seconds=0.1, known_issue=row,
          **({"finding": FINDING} if "finding" in item.name and word == "failed" else {}),
          **({"fault_hits": hits_of(item.config)} if item.config.getoption("inject") else {}))
    suspect = item.config.getoption("inject") and (hits_of(item.config) is None or hits_of(item.config) != before)
    if "leaves" in item.name or (word == "failed" and suspect):
        write(item.config, event="leave", after=item.name)
        item.session.shouldstop = "the rest is for another process"
    if "dies_behind" in item.name:
        os._exit(0)

def pytest_sessionfinish(session):
    write(session.config, event="fault", hits=hits_of(session.config))
    write(session.config, event="end")
    if any("at_exit" in item.name for item in session.items):
        os.abort()
'''

# Answers the probe of device_probe.py as a torch would, right or wrong by `state`.
TORCH = """
import json, pathlib, types
state = json.loads(pathlib.Path(__file__).with_name("state.json").read_text())
if state.get("crash"):
    import os
    os.abort()
__version__ = state["version"]
version = types.SimpleNamespace(git_version="c" * 40, cuda=None, hip=None)
float32 = None

class Number:
    def __truediv__(self, other): return self
    __sub__ = __matmul__ = __truediv__
    def reshape(self, *shape): return self
    double = cpu = abs = max = sum = to = reshape
    def __float__(self): return 0.0
    def item(self): return state["sum"]

def arange(*_, **__): return Number()
ones = arange
def equal(one, other): return True
def get_num_threads(): return 1
mps = types.SimpleNamespace(is_built=lambda: state["built"], is_available=lambda: state["available"],
                            get_name=lambda: state["name"])
backends = types.SimpleNamespace(mps=mps)
cuda = types.SimpleNamespace(is_available=lambda: False)
"""

# The probe asks for the machine before torch: this Python says that it is a Mac's.
MACHINE = """
import os, platform

def machine():
    import json
    with open(os.path.join(os.path.dirname(__file__), "torch", "state.json")) as file:
        return json.loads(file.read() or "{}").get("machine", "arm64")

platform.machine = machine
"""


def write_suite(folder: Path, *sources: str) -> tuple[Path, ...]:
    """Write a suite of the contract's form, one file a source, and return its files."""
    folder.mkdir(exist_ok=True)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    (folder / "conftest.py").write_text(CONFTEST)
    files = []
    for number, source in enumerate(sources):
        files.append(folder / f"test_fake_{number}.py")
        files[-1].write_text(source)
    return tuple(files)


def write_python(folder: Path, state: str) -> Path:
    """Write an interpreter that has the fake torch, in the given state (JSON)."""
    own = folder / "site"
    (own / "torch").mkdir(parents=True)
    (own / "torch" / "__init__.py").write_text(TORCH)
    # As pip installs; what is not compiled is compiled into each test's empty cache, the standard library with it.
    py_compile.compile(str(own / "torch" / "__init__.py"))
    (own / "torch" / "state.json").write_text(state)
    (own / "sitecustomize.py").write_text(MACHINE)
    python = folder / "python"
    path = f'{own}{os.pathsep}"$PYTHONPATH"'
    python.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {_small_venv(folder / "venv")} "$@"\n')
    python.chmod(0o755)
    return python


def _small_venv(folder: Path) -> Path:
    """Make a venv with no files of its own, where the session's packages show: a run lists all its files, two times."""
    packages = folder / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
    packages.mkdir(parents=True)
    (packages / "session.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    base = Path(getattr(sys, "_base_executable", sys.executable))
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(base)
    return folder / "bin" / "python"


ON_THE_CPU = "os.environ['FAKE_DEVICE'] == 'cpu'"
# How a case ends its process, of any kind of process; DEATHS: of a device, where the CPU lives.
_ENDS = {
    "hang": "time.sleep(600)",
    "abort": "(print('-[MTLDebugDevice x]: failed assertion `no'), os.abort())",
    "segfault": "os.kill(os.getpid(), signal.SIGSEGV)",
    "exit_with_0": "os._exit(0)",
    "memory": "(held := bytearray(600 << 20), time.sleep(600))",
}
DEATHS_ANYWHERE = {name: f"import os, signal, time; {end}" for name, end in _ENDS.items()}
DEATHS = {name: f"import os, signal, time; {ON_THE_CPU} or {end}" for name, end in _ENDS.items()}
FAILS_BY_THE_FAULT = "import os; assert not os.environ['FAKE_FAULT']"


@dataclass(frozen=True)
class Text:
    category: str
    stop: bool = False


def judge_text(text: str, exit_code: int | None, signal_name: str | None) -> Text:
    if "Internal Error (0000000e" in text:
        return Text("gpu_fault")
    if "The MPS backend is supported on" in text:
        return Text("mps_unavailable", stop=True)
    return Text("assertion" if "failed assertion" in text else "unknown")


def drive(
    tmp_path: Path,
    *sources: str,
    known: list[dict[str, object]] | None = None,
    fault: str | None = None,
    device: str = "mps",
    only: tuple[str, ...] = (),
    case_seconds: float = 60.0,
    memory_bytes: int = 1 << 40,
    jobs: int = 1,
    seconds: float = 0.0,
    run: SuiteRun | None = None,
    on_estimate: Callable[[Estimate], None] = lambda estimate: None,
) -> SuiteRun:
    files = write_suite(tmp_path, *sources)
    request = SuiteRequest(
        interpreter=Path(sys.executable),
        environ={
            "PATH": os.environ["PATH"],
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        ini=tmp_path / "pytest.ini",
        files=files,
        device=device,
        folder=tmp_path / "run",
        limits=Limits(start_seconds=60, case_seconds=case_seconds, end_seconds=60, memory_bytes=memory_bytes),
        known=known or [],
        fault=fault,
        only=only,
        jobs=jobs,
        seconds=seconds,
    )
    return run_suite(request, judge_text=judge_text, on_case=lambda run, case: None, on_estimate=on_estimate, run=run)


def outcomes(run: SuiteRun) -> dict[str, str]:
    return {case.id: case.outcome for case in run.cases}


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
    os.environ["FAKE_CPU"] = "1" if "--cpu" in launch or config.get("use_cpu") else ""
    if "--multi_gpu" in launch:
        os.environ["FAKE_PROCESSES"] = launch[launch.index("--num_processes") + 1]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""

# One run of a training, reported as tests/training/README.md says; `state` says what is wrong with it.
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
forced = options.force_cpu or os.environ.get("FAKE_CPU") == "1"
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
assert os.environ["FAKE_PROCESSES"] == "2"
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
    """Put the fake Accelerate into an interpreter's site, and the metadata of all libraries."""
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
