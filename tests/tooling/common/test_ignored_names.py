"""Folders of ours have names that tools and users' own ignore files leave out by habit (build/, wheels/, target/)."""

from __future__ import annotations

import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib", reason="Python 3.11 and newer read TOML")

ROOT = Path(__file__).parents[3]
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
HABITS = "build/\ndist/\nwheels/\ntarget/\nlib/\nlogs/\n*.log\nenv/\nvar/\nparts/\nsite/\nout/\n.DS_Store\n*.swp\n"
OURS = ("benchmarks", "docs", "scripts", "tests")


def _git(*arguments: str, given: str = "") -> list[str]:
    ran = subprocess.run(["git", "-C", str(ROOT), *arguments], input=given, capture_output=True, text=True, check=False)
    if ran.returncode > 1:
        pytest.skip(f"not a clone: {ran.stderr.strip()}")
    return [name for name in ran.stdout.split("\0") if name]


@pytest.fixture(name="ignored")
def _ignored(tmp_path: Path) -> list[str]:
    """What a user's own ignore file would hide: of our files, and of new ones beside them."""
    (tmp_path / "ignore").write_text(HABITS, encoding="utf-8")
    names = _git("ls-files", "-z")
    assert "scripts/mps_build/build/pipeline.py" in names
    names += ["scripts/mps_build/build/new.py", "tests/recorded/darwin_configure/new/configure.log"]
    names += ["scripts/mps_build/build/.DS_Store", "scripts/mps_build/build/__pycache__/a.pyc", "dist/a.whl"]
    setting = f"core.excludesFile={tmp_path / 'ignore'}"
    return _git("-c", setting, "check-ignore", "--no-index", "-z", "--stdin", given="\0".join(names))


def test_git_hides_no_file_of_ours_whatever_the_user_ignores(ignored: list[str]) -> None:
    assert ignored == ["scripts/mps_build/build/.DS_Store", "scripts/mps_build/build/__pycache__/a.pyc", "dist/a.whl"]


@pytest.mark.parametrize(("tool", "key"), [("ruff", "exclude"), ("pytest", "norecursedirs")])
def test_a_tool_leaves_out_no_folder_of_ours(tool: str, key: str) -> None:
    """Both have `build` in their default list, so each needs a list of its own."""
    patterns = TOOLS["pytest"]["ini_options"][key] if tool == "pytest" else TOOLS[tool][key]
    paths = [Path(name) for name in _git("ls-files", "-z", "*.py") if name.startswith(OURS)]
    folders = {part for path in paths if "fixtures" not in path.parts for part in path.parent.parts}

    assert {"build", "wheels", "target"} <= folders
    assert not [folder for folder in folders for pattern in patterns if fnmatch(folder, pattern)]
