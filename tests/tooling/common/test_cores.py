"""The cores that a process may use, by affinity and quota; the share of each of several; nobody else counts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mps_build.common import cores
from mps_build.common.cores import THREAD_VARIABLES, threads_for, usable_cores, with_share, within_quota
from rows import for_each

ROOT = Path(__file__).resolve().parents[3]
OWN = "sys/fs/cgroup"


def host(root: Path, groups: str, **files: str) -> Path:
    """Write what the kernel says of control groups; a file's name has `__` for a slash."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        path = root / OWN / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture(autouse=True)
def _sixteen_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "visible_cores", lambda: 16)


V1_OWN = "cpu,cpuacct__docker__abc"
V2, V1 = "0::/\n", "11:memory:/a\n4:cpu,cpuacct:/docker/abc\n0::/\n"


@pytest.mark.parametrize(
    ("groups", "files", "count"),
    [
        ("", {}, 16),
        (V2, {"cpu.max": "max 100000\n"}, 16),
        (V2, {"cpu.max": "200000 100000\n"}, 2),
        (V2, {"cpu.max": "250000 100000\n"}, 2),
        (V2, {"cpu.max": "50000 100000\n"}, 1),
        (V2, {"cpu.max": "6400000 100000\n"}, 16),
        ("0::/a.slice/b\n", {"a.slice__b__cpu.max": "max 100000\n", "a.slice__cpu.max": "300000 100000\n"}, 3),
        ("0::/../gone\n", {"cpu.max": "400000 100000\n"}, 4),
        ("0::/of/the/host\n", {"cpu.max": "400000 100000\n"}, 4),
        ("0::/\n", {"unified__cpu.max": "400000 100000\n"}, 4),
        (V1, {f"{V1_OWN}__cpu.cfs_quota_us": "300000", f"{V1_OWN}__cpu.cfs_period_us": "100000"}, 3),
        (V1, {"cpu__cpu.cfs_quota_us": "150000\n", "cpu__cpu.cfs_period_us": "50000\n"}, 3),
        (V1, {"cpu__cpu.cfs_quota_us": "-1\n", "cpu__cpu.cfs_period_us": "100000\n"}, 16),
        (V2, {"cpu.max": ""}, 16),
        (V2, {"cpu.max": "many few\n"}, 16),
        (V2, {"cpu.max": "100000 0\n"}, 16),
    ],
)  # fmt: skip
def test_cores_are_those_that_a_quota_leaves(tmp_path: Path, groups: str, files: dict[str, str], count: int) -> None:
    assert usable_cores(host(tmp_path, groups, **files)) == count


def test_without_control_groups_the_affinity_counts(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == 16


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_the_file_run_by_itself_says_what_affinity_leaves() -> None:
    one = min(os.sched_getaffinity(0))
    code = (
        f"import os, runpy; os.sched_setaffinity(0, [{one}]); runpy.run_path({cores.__file__!r}, run_name='__main__')"
    )

    said = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout == "1\n"


def test_processes_and_threads_never_exceed_the_cores() -> None:
    shares = [
        (count, processes, threads_for(processes, cores=count))
        for count in range(1, 65)
        for processes in (1, 2, 3, 8, 16)
    ]

    assert all(processes * threads <= max(count, processes) for count, processes, threads in shares)
    assert all(threads >= 1 for _, _, threads in shares)


def test_every_library_is_reported_and_the_user_is_obeyed() -> None:
    reported = with_share({"PATH": "/bin"}, 4, cores=16)
    obeyed = with_share({"MKL_NUM_THREADS": "7"}, 4, cores=16)

    assert reported == {"PATH": "/bin", **dict.fromkeys(THREAD_VARIABLES, "4")}
    assert obeyed == dict.fromkeys(THREAD_VARIABLES, "7")


def test_a_process_that_is_alone_is_reported_where_a_quota_holds_and_nowhere_else() -> None:
    assert within_quota({}, cores=2) == dict.fromkeys(THREAD_VARIABLES, "2")
    assert within_quota({}, cores=16) == {}
    assert within_quota({"OMP_NUM_THREADS": "5"}, cores=2)["OMP_NUM_THREADS"] == "5"


def test_nobody_else_counts_cores() -> None:
    requested = re.compile(r"\b(cpu_count|process_cpu_count|sched_getaffinity)\(")
    files = [
        ROOT / "noxfile.py",
        *(path for name in ("scripts", "benchmarks", "tests") for path in (ROOT / name).rglob("*.py")),
    ]
    files = [path for path in files if path not in (Path(__file__).resolve(), Path(cores.__file__).resolve())]

    assert len(files) > 900
    assert not [str(path.relative_to(ROOT)) for path in files if requested.search(path.read_text(encoding="utf-8"))]


@for_each(["", " ", "0", "-1", "many"], name=repr)
def test_what_is_no_number_of_threads_is_no_setting(value: str) -> None:
    reported = with_share({"OMP_NUM_THREADS": value, "MKL_NUM_THREADS": "3"}, 4, cores=16)
    assert [reported[name] for name in THREAD_VARIABLES] == ["3"] * len(THREAD_VARIABLES)
    assert with_share({"OMP_NUM_THREADS": value}, 4, cores=16)["OMP_NUM_THREADS"] == "4"
