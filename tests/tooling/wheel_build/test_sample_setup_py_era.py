"""The steps' setup.py branch, on a project with the old contract, built for this machine.

Slow: its environment is made by pip. What it proves is the commands of the era, not PyTorch.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from mps_build.common.errors import CompileError, GateError
from mps_build.common.process import Command, capture
from mps_build.common.recipe.model import Gate
from mps_build.common.reporting import SilentReporter
from mps_build.wheel_build.backend import build_folder
from mps_build.wheel_build.gate import ConfigureRun, check_gate
from mps_build.wheel_build.steps.compile_wheel import build_command, compile_wheel
from mps_build.wheel_build.steps.configure import configure, configure_command, write_overrides

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("c++"), reason="no compiler for this machine"),
]

FIXTURE = Path(__file__).parents[1] / "fixtures" / "setup_py_era"
REQUIREMENTS = ("setuptools<80", "wheel", "cmake>=3.24", "ninja", "build")


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """A copy of the fixture, and a Python with the era's build requirements."""

    python: Path
    source: Path
    work: Path

    @property
    def environ(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.python.parent), os.environ["PATH"]])
        return {"PATH": path, "LC_ALL": "C", "USE_MPS": "1", "USE_OPENMP": "0"}

    @property
    def build(self) -> Path:
        return build_folder("setuptools", source=self.source, build=self.work / "build")

    def configure(self, *, expect_mps: bool = False, **variables: str) -> ConfigureRun:
        command = configure_command(
            "setuptools",
            python=self.python,
            source=self.source,
            build=self.build,
            environ=self.environ | variables,
            overrides=write_overrides(self.work / "overrides.cmake", expect_mps=expect_mps),
        )
        log = self.work / "configure.log"
        return configure(command, build=self.build, log=log, reporter=SilentReporter(), new_python=False)

    def compile(self, *, overrides: Path, log: Path) -> Path:
        command = build_command(
            "setuptools",
            python=self.python,
            source=self.source,
            build=self.build,
            output=self.work / "dist",
            environ=self.environ,
            overrides=overrides,
        )
        return compile_wheel(command, output=self.work / "dist", log=log, reporter=SilentReporter())


@pytest.fixture(name="python", scope="module")
def _python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    venv = tmp_path_factory.mktemp("era") / "venv"
    assert capture(Command(argv=(sys.executable, "-m", "venv", str(venv))), timeout_seconds=300).ok
    installed = capture(Command(argv=(str(venv / "bin" / "pip"), "install", "-q", *REQUIREMENTS)), timeout_seconds=600)
    assert installed.ok, installed.stderr
    return venv / "bin" / "python"


@pytest.fixture(name="era")
def _era(python: Path, tmp_path: Path) -> Era:
    return Era(python=python, source=Path(shutil.copytree(FIXTURE, tmp_path / "source")), work=tmp_path)


def test_configure_is_a_step_of_its_own_and_passes_the_gate(era: Era) -> None:
    run = era.configure()

    facts = check_gate(run, Gate(use_mps=False, openmp=False), fresh=True)
    assert facts.use_mps is False
    assert facts.openmp is False
    assert run.facts is not None  # overrides.cmake reached CMake through setup.py's forwarding
    assert not list(era.build.glob("*.so"))


def test_mps_off_is_explained_by_the_gate_and_not_by_cmakes_last_lines(era: Era) -> None:
    run = era.configure(expect_mps=True)

    with pytest.raises(GateError, match="USE_MPS: wanted ON, came out OFF") as caught:
        check_gate(run, Gate(use_mps=True, openmp=False), fresh=True)
    assert "Traceback" not in str(caught.value)


def test_a_build_that_configures_again_stops_by_itself_where_mps_is_missing(era: Era) -> None:
    overrides = write_overrides(era.work / "overrides.cmake", expect_mps=True)
    log = era.work / "log"

    with pytest.raises(CompileError):
        era.compile(overrides=overrides, log=log)

    assert "USE_MPS came out OFF although the recipe asks for it" in log.read_text()
    assert not list(era.build.rglob("*.o"))


def test_a_changed_variable_is_not_seen_in_a_configured_tree(era: Era) -> None:
    """PyTorch's trap, and why changed inputs start a fresh build folder: setup.py does not run CMake again."""
    era.configure()

    with pytest.raises(GateError, match="did not run CMake at all"):
        era.configure(USE_OPENMP="1")

    assert "USE_OPENMP:BOOL=0" in (era.build / "CMakeCache.txt").read_text(encoding="utf-8")


def test_the_wheel_computes(era: Era) -> None:
    era.configure()

    wheel = era.compile(overrides=era.work / "overrides.cmake", log=era.work / "log")

    site = era.work / "site"
    install = (str(era.python), "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(wheel))
    assert capture(Command(argv=install), timeout_seconds=120).ok
    ask = (str(era.python), "-c", "import old_sample; print(old_sample.answer(), old_sample.__version__)")
    answer = capture(Command(argv=ask, cwd=era.work, environ=era.environ | {"PYTHONPATH": str(site)}))
    assert answer.stdout.split() == ["42", "0.1.0"], answer.stderr
