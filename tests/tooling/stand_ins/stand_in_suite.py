"""A device suite and a torch that only play their parts: what the driver does with them is real."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path

# tests/device/README.md, "Options" and "Events", without torch.
CONFTEST = '''
import json, os, pathlib, sys, time
import pytest

FINDING = {"id": "exp:dtype:1234", "operator": "exp", "transformation": "dtype", "dtype": "float16",
           "levels": {"@dtype": "torch.float16"}, "script": "import torch\\n", "no_script": None}

def pytest_addoption(parser):
    names = ("device", "only", "op", "plant", "known", "outcomes", "after", "shard", "layer", "done", "time")
    for name in (*names, "cases", "keys", "seed"):
        parser.addoption(f"--{name}", default="")
    for name in ("full", "quick", "no-estimate"):
        parser.addoption(f"--{name}", action="store_true")

def write(config, **event):
    sys.stdout.flush(); sys.stderr.flush()
    with open(config.getoption("--outcomes"), "a") as file:
        file.write(json.dumps({**event, "output_bytes": os.fstat(2).st_size}) + "\\n")

def hits_of(config):
    plant = config.getoption("--plant")
    return None if "uncounted" in plant else 0 if "unhit" in plant else config.hits

def hit(item):
    """Most plants have a hit in each case; "reaching" in some, "unhit" in none."""
    plant = item.config.getoption("--plant")
    item.config.hits += "reached" in item.name or "reaching" not in plant
    if plant and "uncounted" not in plant:
        count = pathlib.Path(item.config.getoption("--outcomes")).with_suffix(".hits")
        count.write_bytes(hits_of(item.config).to_bytes(8, sys.byteorder))

def pytest_configure(config):
    if "no-such-plant" in config.getoption("--plant"):
        raise pytest.UsageError("plant.py has no callable no-such-plant")
    config.pluginmanager.register(Imports(config))
    config.known, config.hits = {}, 0
    os.environ["STAND_IN_DEVICE"] = config.getoption("--device")
    os.environ["STAND_IN_PLANT"] = config.getoption("--plant")
    for row in json.load(open(config.getoption("--known"))):
        config.known.update(dict.fromkeys(row["cases"], row))

def pytest_sessionstart(session):
    if session.config.getoption("--plant"):
        write(session.config, event="session", plant_hits=hits_of(session.config))

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
    write(item.config, event="started", id=item.name, layer="stand_in")
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
    write(item.config, event="finished", id=item.name, layer="stand_in", issue=["1"], outcome=word,
          reason=str(error[1]) if error else "", error={"max_abs": 0.5, "bound": 1.0}, seconds=0.1, known_issue=row,
          **({"finding": FINDING} if "finding" in item.name and word == "failed" else {}),
          **({"plant_hits": hits_of(item.config)} if item.config.getoption("--plant") else {}))
    suspect = item.config.getoption("--plant") and (hits_of(item.config) is None or hits_of(item.config) != before)
    if "leaves" in item.name or (word == "failed" and suspect):
        write(item.config, event="leave", after=item.name)
        item.session.shouldstop = "the rest is for another process"
    if "dies_behind" in item.name:
        os._exit(0)

def pytest_sessionfinish(session):
    write(session.config, event="plant", hits=hits_of(session.config))
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
        files.append(folder / f"test_standin_{number}.py")
        files[-1].write_text(source)
    return tuple(files)


def write_python(folder: Path, state: str) -> Path:
    """Write an interpreter that has the stand-in torch, in the given state (JSON)."""
    own = folder / "site"
    (own / "torch").mkdir(parents=True)
    (own / "torch" / "__init__.py").write_text(TORCH)
    (own / "torch" / "state.json").write_text(state)
    (own / "sitecustomize.py").write_text(MACHINE)
    python = folder / "python"
    path = f'{own}{os.pathsep}"$PYTHONPATH"'
    python.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {_small_venv(folder / "venv")} "$@"\n')
    python.chmod(0o755)
    return python


def _small_venv(folder: Path) -> Path:
    """Make a venv with no files of its own, where the session's packages show: a run lists all its files, twice."""
    packages = folder / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
    packages.mkdir(parents=True)
    (packages / "session.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    base = Path(getattr(sys, "_base_executable", sys.executable))
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(base)
    return folder / "bin" / "python"
