"""What may happen to a build, done to the sample's: killed, disk full, two at once, damaged results.

Slow: each case runs the build on a tree of its own; the cache of what is fetched is shared.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from processes import entry, environ

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
KILLS = 20


def _start(work: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    argv = entry("build_wheel", "sample", "--wheelhouse", str(work / "out"), *arguments)
    return subprocess.Popen(
        argv,
        env=environ(MPS_BUILD_WORK=str(work), PYTHONDONTWRITEBYTECODE="1"),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        **options,
    )


def _build(work: Path, *arguments: str, **options: Any) -> tuple[int, str]:
    process = _start(work, *arguments, **options)
    output, _ = process.communicate(timeout=900)
    return process.returncode, output


def _digest(work: Path) -> str:
    (wheel,) = (work / "out").glob("*.whl")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, float]:
    """A whole build: its work folder, its wheel's digest, its seconds."""
    work = tmp_path_factory.mktemp("reference")
    began = time.monotonic()
    code, output = _build(work)
    assert code == 0, output
    return work, _digest(work), time.monotonic() - began


def test_a_build_killed_at_random_moments_resumes_to_the_same_bytes(
    tmp_path: Path, reference: tuple[Path, str, float]
) -> None:
    draw = random.Random(20261121)
    seconds = reference[2]
    kills = 0
    while kills < KILLS:
        process = _start(tmp_path)
        try:
            output, _ = process.communicate(timeout=draw.uniform(0.2, seconds))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            kills += 1
            continue
        assert process.returncode == 0, output
        assert _digest(tmp_path) == reference[1]
        # It was through: take a part away, and go on killing. A build folder is not made again while its results are
        # there.
        parts = [tmp_path / "sample", tmp_path / "sample" / "build", tmp_path / "sample" / "source"]
        shutil.rmtree(draw.choice([part for part in parts if part.exists()]))
        shutil.rmtree(tmp_path / "out")

    code, output = _build(tmp_path)

    assert code == 0, output
    assert _digest(tmp_path) == reference[1]


def test_a_repeated_build_does_nothing_and_a_deleted_wheel_comes_back(reference: tuple[Path, str, float]) -> None:
    work, digest, _ = reference
    code, _ = _build(work, "--json", str(work / "again.json"))
    assert code == 0
    assert all(step["skipped"] for step in json.loads((work / "again.json").read_text())["steps"])

    shutil.rmtree(work / "out")
    assert _build(work)[0] == 0

    assert _digest(work) == digest


def test_two_builds_of_one_tree_the_second_fails_at_once(tmp_path: Path) -> None:
    first = _start(tmp_path)
    lock = tmp_path / "sample" / "lock"
    while not (lock.is_file() and lock.read_text()):
        assert first.poll() is None
        time.sleep(0.05)

    code, output = _build(tmp_path)

    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    assert code == 18
    assert f"process {first.pid}" in output


def test_a_full_disk_is_said_and_nothing_half_written_is_left(
    tmp_path: Path, reference: tuple[Path, str, float]
) -> None:
    shutil.copytree(reference[0] / "sample", tmp_path / "sample", symlinks=True)
    disk = tmp_path / "disk"
    disk.mkdir()
    (wheel,) = (reference[0] / "out").glob("*.whl")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={wheel.stat().st_size // 2}", "tmpfs", str(disk)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount a small disk")
    try:
        code, output = _build(tmp_path, "--wheelhouse", str(disk), "--json", str(tmp_path / "answer.json"))

        assert code == 19, output
        assert not list(disk.iterdir())
        assert json.loads((tmp_path / "answer.json").read_text())["cause"] == "disk_full"
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_tree_changed_by_hand_is_refused_for_a_release_and_built_for_develop(
    tmp_path: Path, reference: tuple[Path, str, float]
) -> None:
    shutil.copytree(reference[0] / "sample", tmp_path / "sample", symlinks=True)
    core = tmp_path / "sample" / "source" / "csrc" / "core.cpp"
    core.write_text(core.read_text() + "\n// changed\n")

    code, output = _build(tmp_path)
    assert (code, "csrc/core.cpp" in output) == (4, True)

    code, output = _build(tmp_path, "--profile", "develop", "--json", str(tmp_path / "answer.json"))
    assert code == 0, output
    receipt = json.loads(Path(json.loads((tmp_path / "answer.json").read_text())["wheels"][0]["receipt"]).read_text())
    assert receipt["dirty"] == ["csrc/core.cpp"]


def test_a_work_folder_with_blanks_and_umlauts_builds_the_same_bytes(
    tmp_path: Path, reference: tuple[Path, str, float]
) -> None:
    work = tmp_path / "mit Leerzeichen und Größe"
    code, output = _build(work)

    assert code == 0, output
    assert _digest(work) == reference[1]


def test_a_build_that_fails_ends_with_its_first_error_and_the_logs_path(
    tmp_path: Path, reference: tuple[Path, str, float]
) -> None:
    shutil.copytree(reference[0] / "sample", tmp_path / "sample", symlinks=True)
    core = tmp_path / "sample" / "source" / "csrc" / "core.cpp"
    core.write_text(core.read_text() + "\nint broken( { return 1; }\n")

    code, output = _build(tmp_path, "--profile", "develop", "--json", str(tmp_path / "answer.json"))

    assert code == 8
    assert "error: expected" in output
    assert "compile_wheel" in output
    triage = json.loads((tmp_path / "answer.json").read_text())["triage"]
    assert triage["cause"] is None
    assert "core.cpp" in triage["first_error"]["text"]
