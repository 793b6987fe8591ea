"""A run of publish_index that is killed, at whatever change of the disk: nothing is lost, nothing is believed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from http_servers import TAG, TORCH, publish, wheel
from mps_build.cli import main
from mps_build.common.wheels.wheel_file import matched_sets, read_wheel, read_wheels
from mps_build.publish.index.site import held, write_site
from mps_build.publish.index.state import State, after

NAME = f"torch-{TORCH}-{TAG}.whl"
OLD = f"torch-2.16.0.dev20260902-{TAG}.whl"  # withdrawn by hand, and old enough to be deleted
NEW = f"torch-2.7.0-{TAG}.whl"  # not published before
RUN = ("wheelhouse", "--output", "site", "--prune", "--today", "2026-12-20")
SCRIPT = Path(__file__).parents[1] / "fakes" / "killing.py"
# What changes a disk, under every name that a kernel has for it. What is opened to be created is written to next.
CALLS = (
    "/^(rename.*|mkdir.*|unlink.*|rmdir|p?write.*|f?truncate.*|fsync|fdatasync|(sym)?link(at)?|copy_file_range|sendfile"
    "|f?chmod.*|utimens.*|creat)$"
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


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs that nobody kills wait for no disk."""
    monkeypatch.setattr("mps_build.publish.index.site._sync", lambda path: None)


def environ() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.mark.parametrize(
    ("options", "step"),
    [
        pytest.param([], 25, id="exchanged, some"),
        pytest.param([], 1, id="exchanged", marks=pytest.mark.slow),
        pytest.param(["--no-exchange"], 1, id="renamed", marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_at_any_kind_of_change_of_the_disk_loses_nothing(
    options: list[str], step: int, tmp_path: Path
) -> None:
    sha256 = published(tmp_path / "template")
    program = [sys.executable, str(SCRIPT), *options, "template", "points", "publish_index", *RUN]
    subprocess.run(program, cwd=tmp_path, env=environ(), check=True)

    points = sorted((tmp_path / "points").iterdir(), key=lambda path: int(path.name))
    assert len(points) > 20, len(points)
    assert OLD not in {path.name for path in (points[-1] / "wheelhouse").iterdir()}
    for point in points[::-step]:  # the last one, where the sites change places, is always queried
        check_next_run(point, sha256, f"killed at change {point.name}")


@pytest.mark.slow  # minutes: a process for each of 150 system calls
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("is_exchanged", [True, False])
def test_a_run_killed_at_any_system_call_that_writes_loses_nothing(is_exchanged: bool, tmp_path: Path) -> None:
    sha256 = published(tmp_path / "template")
    faults = [] if is_exchanged else ["--inject=renameat2:error=EINVAL"]

    def run(name: str, *more: str) -> subprocess.CompletedProcess[bytes]:
        shutil.copytree(tmp_path / "template", tmp_path / name)
        strace = ["strace", "-f", "-qq", "-o", str(tmp_path / "calls"), f"--trace={CALLS}", *faults, *more]
        argv = [*strace, sys.executable, "-m", "mps_build", "publish_index", *RUN]
        return subprocess.run(argv, cwd=tmp_path / name, env=environ(), capture_output=True, check=False)

    assert run("whole").returncode == 0
    found = re.findall(
        r"^\d+ +(\w+)\(", (tmp_path / "calls").read_text(encoding="utf-8", errors="replace"), re.MULTILINE
    )
    counted = Counter(found)  # strace counts each system call for itself
    assert {"mkdir", "write", "fsync"} <= counted.keys() and ("renameat2" in counted) and sum(counted.values()) > 100
    for call, count in counted.items():
        for number in range(1, count + 1) if is_exchanged or call.startswith(("rename", "unlink", "rmdir")) else ():
            if call == "renameat2" and not is_exchanged:
                continue  # it has its fault
            name = f"{call}-{number}"
            assert run(name, f"--inject={call}:signal=KILL:when={number}").returncode in (-9, 137), name
            check_next_run(tmp_path / name, sha256, f"killed at {name}")
            shutil.rmtree(tmp_path / name)


def test_a_site_that_was_moved_away_and_not_replaced_is_put_back(
    wheelhouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(wheelhouse)
    before = (tmp_path / "site" / "index-state.json").read_bytes()
    (tmp_path / "site").rename(tmp_path / ".site.old")
    (tmp_path / ".site.new").mkdir()
    wheel(wheelhouse, "torch", TORCH, requires=("sympy",)).with_name(f"{NAME}.receipt.json").unlink()

    assert main("publish_index", [str(wheelhouse), "--output", str(tmp_path / "site"), "--dry-run"]) == 21
    assert "the site before it was put back" in " ".join(capsys.readouterr().out.split())
    assert (tmp_path / "site" / "index-state.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reported.json", "site", "wheelhouse"]


def test_a_state_that_is_not_read_back_is_not_published(
    wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(wheelhouse)
    before = (tmp_path / "site" / "index-state.json").read_bytes()
    monkeypatch.setattr("mps_build.publish.index.state.State.text", lambda state: '{"published": {}, "yanked": {}}')

    assert main("publish_index", [str(wheelhouse), "--output", str(tmp_path / "site")]) == 3
    assert "reads otherwise than it was written" in capsys.readouterr().err
    assert (tmp_path / "site" / "index-state.json").read_bytes() == before
    assert not list(tmp_path.glob(".site*"))


def test_a_second_run_waits_and_sees_what_the_first_published(wheelhouse: Path, tmp_path: Path) -> None:
    site, other = tmp_path / "site", tmp_path / "other"
    wheel(other, "torch", TORCH, requires=("sympy",))  # the same name, other bytes
    argv = [sys.executable, "-m", "mps_build", "publish_index", str(other), "--output", str(site)]
    wheels = read_wheels(wheelhouse)
    with held(site, on_wait=lambda text: None):
        second = subprocess.Popen(argv, env=environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert second.stdout is not None
        reported = second.stdout.readline()
        then = after(State(), wheels, yanked={}, deleted={})
        write_site(site, wheels=wheels, sets=matched_sets(wheels)[0], state=then, base_url=None)
        assert second.poll() is None
    _, said = second.communicate()

    assert f"is being written by process {os.getpid()}: waiting until it is done" in reported
    assert (second.returncode, "published with other bytes" in said) == (21, True), said
    assert not list(tmp_path.glob(".site*"))


def test_a_link_in_the_place_of_the_lock_is_refused_and_what_it_leads_to_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel(tmp_path / "wheelhouse", "torch", TORCH)
    (tmp_path / "mine").write_text("a day's work", encoding="utf-8")
    (tmp_path / ".site.lock").symlink_to("mine")

    assert main("publish_index", [str(tmp_path / "wheelhouse"), "--output", str(tmp_path / "site")]) == 2

    assert ".site.lock is a symbolic link" in capsys.readouterr().err
    assert (tmp_path / "mine").read_text(encoding="utf-8") == "a day's work"
