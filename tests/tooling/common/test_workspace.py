"""Who holds a tree, and where things lie."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mps_build.common.errors import TreeInUse
from mps_build.common.workspace import Workspace, remove_tree, work_folder

_HOLD = """
import sys, time
from pathlib import Path
from mps_build.common.workspace import Workspace
with Workspace(root=Path(sys.argv[1])).held():
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_build_of_a_tree_fails_at_once_and_names_the_first(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "scripts")}
    argv = [sys.executable, "-c", _HOLD, str(tmp_path)]
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(TreeInUse, match=f"process {holder.pid}"), Workspace(root=tmp_path).held():
            pass
        holder.kill()
    with Workspace(root=tmp_path).held():
        pass  # a killed holder holds nothing


def test_the_work_folder_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path))

    assert work_folder() == tmp_path


def test_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    remove_tree(tmp_path / "nothing")
