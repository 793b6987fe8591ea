"""A run of publish_index that is killed, at whatever change of the disk: nothing is lost, nothing is believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from index_clients import TAG, TORCH, publish, wheel
from mps_build.cli import main
from mps_build.common.wheels.wheel_file import read_wheel

NAME = f"torch-{TORCH}-{TAG}.whl"
OLD = f"torch-2.16.0.dev20260902-{TAG}.whl"  # withdrawn by hand, and old enough to be deleted
NEW = f"torch-2.7.0-{TAG}.whl"  # not published before
RUN = ("wheelhouse", "--output", "site", "--prune", "--today", "2026-12-20")
SCRIPT = Path(__file__).parents[1] / "stand_ins" / "killing.py"
# What changes a disk, under any name that a kernel has for it.
CALLS = (
    "/^(rename|mkdir|unlink|rmdir|(p?write|pwritev|writev)|f?truncate|fsync|fdatasync|link|symlink|copy_file_range"
    "|sendfile|f?chmod|utimens|creat)"
)


def published(folder: Path) -> str:
    """Publish a wheelhouse, and put into it what the next run deletes and adds; return the hash of NAME."""
    wheelhouse = folder / "wheelhouse"
    wheel(wheelhouse, "torch", TORCH)
    for day in ("20260901", "20260902"):
        wheel(wheelhouse, "torch", f"2.16.0.dev{day}")
    publish(wheelhouse, "--today", "2026-11-20")
    publish(wheelhouse, "--yank", OLD, "--reason", "wrong results", "--today", "2026-11-20")
    wheel(wheelhouse, "torch", "2.7.0")
    return read_wheel(wheelhouse / NAME).sha256


def rows(site: Path) -> dict[str, dict[str, object]]:
    page = json.loads((site / "simple" / "torch" / "index.json").read_text(encoding="utf-8"))
    return {row["filename"]: row for row in page["files"]}


def check_next_run(folder: Path, sha256: str, where: str) -> None:
    """Check that the run after a kill publishes the same, and refuses other bytes under the published name."""
    site, argv = folder / "site", [str(folder / "wheelhouse"), "--output", str(folder / "site")]
    assert main("publish_index", [*argv, "--today", "2026-12-20"]) == 0, where
    found = rows(site)
    assert found[NAME]["hashes"] == {"sha256": sha256}, where
    assert found.get(OLD, {"yanked": "wrong results"})["yanked"] == "wrong results", where
    assert NEW in found, where
    for file in found:
        assert read_wheel(site / "wheels" / file).sha256 == found[file]["hashes"]["sha256"], where  # type: ignore[index]
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == [], where
    wheel(folder / "wheelhouse", "torch", TORCH, requires=("sympy",))
    assert main("publish_index", argv) == 21, where


@pytest.mark.parametrize("is_exchanged", [True, False])
def test_a_run_killed_at_any_change_of_the_disk_loses_nothing(
    is_exchanged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = published(tmp_path / "template")
    options = [] if is_exchanged else ["--no-exchange"]
    program = [sys.executable, str(SCRIPT), *options, "template", "points", "publish_index", *RUN]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run(program, cwd=tmp_path, env=environ, check=True)
    monkeypatch.setattr(
        "mps_build.publish.index.place._sync", lambda path: None
    )  # of the next runs, which nobody kills

    points = sorted((tmp_path / "points").iterdir(), key=lambda path: int(path.name))
    assert len(points) > 30, len(points)
    assert OLD not in {path.name for path in (points[-1] / "wheelhouse").iterdir()}
    for point in points:
        check_next_run(point, sha256, f"killed at change {point.name}")
