"""The rehearsal of a pinned commit, on this host: a small project with the setup.py era's contract stands for PyTorch.

Slow: pip resolves and installs a real lock. What it proves is the rehearsal's own steps, not PyTorch.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from git_history import git
from mps_build.cli import main
from mps_build.common import strict_yaml
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.recipe.forms import as_yaml

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("c++") or not shutil.which("git"), reason="no compiler or no git"),
]

FIXTURE = Path(__file__).parents[2] / "fixtures" / "setup_py_era"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe of v2.6.0's requirements whose source is the fixture, in a repository of its own."""
    repository = tmp_path / "repository"
    shutil.copytree(FIXTURE, repository)
    git(repository, "init", "-q", "-b", "main")
    git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "first")
    git(repository, "tag", "v2.6.0")
    declared = strict_yaml.unchecked(as_yaml(find_recipe("v2.6.0")))
    declared["source"] = {"repository": str(repository)}
    declared["commit"] = git(repository, "rev-parse", "HEAD")
    declared["patches"] = []
    declared.pop("rehearsal_patches", None)
    declared["gate"]["openmp"] = declared["wheel"]["openmp"] = False
    declared["gate"].pop("cxx_standard", None)
    declared.pop("libomp", None)
    declared["environment"] = [each for each in declared["environment"] if each["name"] != "USE_OPENMP"]
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(declared), encoding="utf-8")
    return path


def test_a_commit_that_git_reaches_is_rehearsed_on_the_host_and_a_second_time_nothing_is_done(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    result = tmp_path / "result.json"

    status = main("rehearse", [str(recipe), "--json", str(result)])

    said = capsys.readouterr()
    assert status == 0, said.err
    document = json.loads(result.read_text(encoding="utf-8"))
    assert document["tree"] == "git"
    assert [each["what"] for each in document["tried"]] == [
        "lock for a Mac",
        "patches",
        "lock",
        "configure",
        "patched files",
    ]
    assert "that all Objective-C++ compiles" in document["not_proved"]
    assert "USE_MPS is OFF, as expected on Linux" in said.out

    assert main("rehearse", [str(recipe), "--json", str(result)]) == 0
    steps = json.loads(result.read_text(encoding="utf-8"))["steps"]
    assert all(step["skipped"] for step in steps)
