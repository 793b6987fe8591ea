"""Without a clone: our own wheel and sdist, installed in a bare venv far from the checkout, do what a clone does.

Slow: builds, pip and, for the last tests, an official wheel and a torch are fetched. `MPS_BUILD_TEST_TORCH` names a
Python that has torch; without it one is made.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from mps_build.commands.shared.catalogue import COMMANDS, MAINTAINERS
from processes import entry, environ

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
# An eighth of it is the device suite; most of the rest are the tool's 900 modules.
LIMIT_BYTES = 2_000_000
TORCH = "torch==2.13.0"
OFFICIAL = "torch==1.13.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The tool in a venv of its own, called from a folder of its own."""

    command: Path
    folder: Path

    def run(self, *arguments: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environ |= {"MPS_BUILD_WORK": str(self.folder / "work"), "PATH": f"{self.command.parent}:{environ['PATH']}"}
        environ.setdefault("MPS_BUILD_CACHE", str(self.folder / "cache"))
        argv = [str(self.command), *arguments]
        return subprocess.run(
            argv, cwd=self.folder, env=environ, capture_output=True, text=True, timeout=timeout, check=False
        )

    def answer(self, *arguments: str) -> tuple[int, dict[str, object]]:
        """Return exit status and JSON document of a command."""
        file = self.folder / "answer.json"
        file.unlink(missing_ok=True)
        ran = self.run(*arguments, "--json", str(file))
        assert file.is_file(), f"{ran.stdout}\n{ran.stderr}"
        assert "Traceback" not in ran.stderr
        return ran.returncode, json.loads(file.read_text(encoding="utf-8"))


def _run(*argv: str, cwd: Path) -> None:
    ran = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{' '.join(argv)}\n{ran.stdout}{ran.stderr}"


@pytest.fixture(name="packed", scope="module")
def _packed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(wheel, sdist), made by the build back end that pyproject.toml names; the wheel comes from the sdist."""
    folder = tmp_path_factory.mktemp("packed")
    python = str(folder / "venv" / "bin" / "python")
    _run(sys.executable, "-m", "venv", str(folder / "venv"), cwd=folder)
    _run(python, "-m", "pip", "install", "-q", "hatchling>=1.27", cwd=folder)
    script = "import hatchling.build as back, sys; back.build_sdist(sys.argv[1]); back.build_wheel(sys.argv[1])"
    _run(python, "-c", script, str(folder / "tree"), cwd=ROOT)
    sdist = next((folder / "tree").glob("*.tar.gz"))
    _run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder / "wheel"), str(sdist), cwd=folder)
    from_sdist, from_tree = next((folder / "wheel").glob("*.whl")), next((folder / "tree").glob("*.whl"))
    with zipfile.ZipFile(from_sdist) as one, zipfile.ZipFile(from_tree) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())
    return from_sdist, sdist


@pytest.fixture(name="installed", scope="module")
def _installed(packed: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("far")
    _run(sys.executable, "-m", "venv", str(folder / "venv"), cwd=folder)
    _run(str(folder / "venv" / "bin" / "pip"), "install", "-q", str(packed[0]), cwd=folder)
    return Installed(command=folder / "venv" / "bin" / "mps-build", folder=folder)


def test_both_are_small_and_hold_what_the_tool_reads(packed: tuple[Path, Path]) -> None:
    wheel, sdist = packed
    assert max(wheel.stat().st_size, sdist.stat().st_size) <= LIMIT_BYTES
    with zipfile.ZipFile(wheel) as zipped, tarfile.open(sdist) as tarred:
        names = zipped.namelist()
        sources = {name.partition("/")[2] for name in tarred.getnames()}
    for wanted in (
        "build_recipes/v2.6.0.yaml",
        "build_recipes/defaults.yaml",
        "tests/device/known_issues.yaml",
    ):
        assert f"mps_build/data/{wanted}" in names
        assert wanted in sources
    assert any(name.startswith("mps_build/data/patches/") for name in names)
    unwanted = ("__pycache__", ".mypy_cache", ".pyc", "work/", "wheelhouse/", ".nox/")
    assert not [name for name in (*names, *sources) if any(part in name for part in unwanted)]


def test_it_says_its_version_and_its_commands_with_its_own_name(installed: Installed) -> None:
    assert installed.run("--version").stdout.startswith("mps-build ")
    assert "build_wheel" in installed.run("--help").stdout
    said = installed.run("build_wheel", "--help").stdout
    assert "usage: mps-build build_wheel" in said
    assert "nox -s" not in said


def test_the_doctor_finds_the_recipes_and_gives_the_clones_exit_status(installed: Installed) -> None:
    status, document = installed.answer("doctor", "v2.6.0")

    clone = subprocess.run(entry("doctor", "v2.6.0"), env=environ(), capture_output=True, check=False)
    assert status == clone.returncode == document["exit_code"]
    assert document["probes"]


def test_it_has_every_command_but_the_maintainers(installed: Installed) -> None:
    overview = installed.run("--help").stdout

    assert set(COMMANDS) - MAINTAINERS == set(re.findall(r"(?m)^  (\w+) ", overview))
    assert "maintainers" not in overview
    assert installed.run("lock").returncode == 2


def test_it_audits_an_official_wheel(installed: Installed) -> None:
    status, document = installed.answer("audit_wheel", OFFICIAL)
    if status == 4:
        pytest.skip(f"{OFFICIAL} cannot be fetched here: {document['error']}")

    assert (status, document["verdict"]) == (0, "accepted")


def test_it_verifies_a_torch_on_the_cpu(installed: Installed, tmp_path: Path) -> None:
    python = os.environ.get("MPS_BUILD_TEST_TORCH")
    if not python:
        _run(sys.executable, "-m", "venv", str(tmp_path / "venv"), cwd=tmp_path)
        argv = [str(tmp_path / "venv" / "bin" / "pip"), "install", "-q", TORCH, "numpy"]
        fetched = subprocess.run(argv, capture_output=True, text=True, check=False)
        if fetched.returncode:
            pytest.skip(f"no {TORCH} to be had here: {fetched.stderr.strip()[-300:]}")
        python = str(tmp_path / "venv" / "bin" / "python")

    status, document = installed.answer(
        "verify_mps", "--python", python, "--device", "cpu", "--only", "*matmul*", "--record", str(tmp_path / "record")
    )

    assert status == 0, document
    assert document["counts"]["passed"] > 0  # type: ignore[index]


def test_it_builds_the_sample(installed: Installed) -> None:
    status, document = installed.answer("build_wheel", "sample", "--wheelhouse", str(installed.folder / "wheelhouse"))

    assert status == 0, document
    wheel = next((installed.folder / "wheelhouse").glob("*.whl"))
    assert installed.answer("audit_wheel", str(wheel))[0] == 0
    assert ROOT not in wheel.parents
