"""Two processes that need the same thing: one makes it, the other waits and shows how far it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mps_build.common import files
from mps_build.common.reporting import SilentReporter
from mps_build.common.shared_work import Follower, KeptReporter, made_by_one

ROOT = Path(__file__).parents[3]
# Holds the lock in the middle of a step until its input ends.
HOLDER = """
import sys
from pathlib import Path
from mps_build.common.shared_work import made_by_one
from mps_build.common.reporting import SilentReporter
with made_by_one(Path(sys.argv[1]), SilentReporter(), what="builds") as reporter:
    reporter.started("Compile", total=20, unit="files")
    reporter.advanced(0)
    print("holds", flush=True)
    sys.stdin.read()
"""


class Seen:
    """Keeps what it hears, and ends the holder once its progress was shown."""

    def __init__(self, holder: subprocess.Popen[str] | None = None) -> None:
        self.said: list[Any] = []
        self._holder = holder

    def started(self, title: str, *, total: int | None = None, unit: str = "steps") -> None:
        self.said.append(("started", title, total, unit))

    def advanced(self, done: int, *, total: int | None = None, note: str = "") -> None:
        self.said.append(("advanced", done, total, note))
        if self._holder and self._holder.stdin:
            self._holder.stdin.close()

    def line(self, text: str) -> None:
        self.said.append(text)

    def done(self, note: str = "") -> None:
        self.said.append("done")


def test_who_waits_shows_what_the_holder_is_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_SECONDS", 0.01)
    path, environ = tmp_path / "lock", {"PYTHONPATH": str(ROOT / "scripts")}
    argv = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout and holder.stdout.readline() == "holds\n"
        seen = Seen(holder)
        with made_by_one(path, seen, what="builds"):
            pass

    assert seen.said[:3] == [
        f"process {holder.pid} builds: waiting for it",
        ("started", "Compile", 20, "files"),
        ("advanced", 0, 20, ""),
    ]
    assert seen.said[-1] == "done"
    assert [file.name for file in tmp_path.iterdir()] == ["lock"], "nothing is left for a later wait"


def test_who_need_not_wait_is_reported_of_nothing_and_its_own_steps_are_shown(tmp_path: Path) -> None:
    seen = Seen()
    with made_by_one(tmp_path / "lock", seen, what="builds") as reporter:
        reporter.started("Fetch")
        reporter.done()

    assert seen.said == [("started", "Fetch", None, "steps"), "done"]


def test_each_step_of_the_holder_is_one_of_who_waits(tmp_path: Path) -> None:
    seen, path = Seen(), tmp_path / "progress"
    follower, holder = Follower(path, seen), KeptReporter(SilentReporter(), path)
    for title in ("Fetch", "Compile"):
        holder.started(title, total=2)
        follower.look()
        follower.look()
    follower.end()

    assert [what if what == "done" else what[1] for what in seen.said] == [
        "Fetch",
        0,
        0,
        "done",
        "Compile",
        0,
        0,
        "done",
    ]


@pytest.mark.parametrize("text", ["", "[]", "{", json.dumps({"title": "x", "done": "y", "total": 1}), "\xff" * 9000])
def test_a_file_that_cannot_be_read_shows_nothing(text: str, tmp_path: Path) -> None:
    path, seen = tmp_path / "progress", Seen()
    path.write_text(text, encoding="utf-8")

    Follower(path, seen).look()

    assert seen.said == []
