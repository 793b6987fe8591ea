"""Start ask.py over a library, read its lines, and go on behind a case that ends or hangs the process."""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence

_ASK = Path(__file__).with_name("ask.py")
SUITE = Path(__file__).resolve().parents[2] / "device"
# A case takes up to 30 seconds of CPU, and minutes of the wall where many processes share the machine: it hangs when it
# has used this much CPU, or none for as long by the wall.
HANG_SECONDS = 150
START_SECONDS = 300
_USES_NONE = 1.0
_BYTES = 1 << 16


@dataclass(frozen=True)
class Question:
    """A case to run: where it is, and whether the run goes on where it fails."""

    file: str
    id: str
    may_fail: bool = False


@dataclass
class Answers:
    """What came of a list of cases: a row for each that ran, in order."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    start: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    is_cut: bool = False  # the time was over; the last row may lack

    @property
    def failure(self) -> dict[str, Any] | None:
        """The last row, if it is one that ended the run."""
        return self.rows[-1] if self.rows and self.rows[-1].get("stopped") else None


def ask_all(
    questions: Sequence[Question],
    folder: Path,
    *,
    library: Path,
    macos: str,
    cover: bool = False,
    hang_seconds: float = HANG_SECONDS,
    until: float = math.inf,
) -> Answers:
    """Ask the cases, in as many processes as crashes make needed; stop after a failure that may not be.

    Args:
        folder: for the lists and what the processes say. library: the folder of the library to load.
        until: of the monotonic clock: what has not run by then does not run.
    """
    answers, left = Answers(), list(questions)
    while left:
        rows, why = _one_process(left, folder, environ_of(library, macos), cover, hang_seconds, until, answers)
        answers.rows += rows
        if why == "cut":
            answers.is_cut = True
            break
        if why == "end":
            done = len(rows)
            if rows and rows[-1]["outcome"] == "failed" and not left[done - 1].may_fail:
                rows[-1]["stopped"] = True
                break
            left = left[done:]
            if not rows:
                answers.error = "the process ended without asking"
                break
            continue
        if why == "start":  # not even torch loads, or the files cannot be read
            answers.error = _said(folder)
            break
        rows[-1].update(outcome=why, why=_said(folder))
        if not left[len(rows) - 1].may_fail:
            rows[-1]["stopped"] = True
            break
        left = left[len(rows) :]
    return answers


def _one_process(
    left: Sequence[Question],
    folder: Path,
    environ: Mapping[str, str],
    cover: bool,
    hang_seconds: float,
    until: float,
    answers: Answers,
) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of one process, and how it ended: end, start, crashed, timeout or cut."""
    listed = folder / "cases.json"
    listed.write_text(json.dumps([[one.file, one.id, one.may_fail] for one in left]), encoding="utf-8")
    receiver, sender = os.pipe()
    argv = [sys.executable, str(_ASK), str(SUITE), str(listed), str(sender), *(["--cover"] if cover else [])]
    rows: list[dict[str, Any]] = []
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            argv, env=dict(environ), cwd=folder, pass_fds=(sender,), stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
    os.close(sender)
    buffer, ended = b"", False
    hang = Hang(START_SECONDS, 0.0, time.monotonic())
    try:
        while True:
            if why := _waited(receiver, process.pid, hang, until):
                process.kill()
                process.wait()
                if why == "cut":
                    return [row for row in rows if row["outcome"] != "started"], "cut"
                return rows, "timeout" if rows else "start"
            piece = os.read(receiver, _BYTES)
            if not piece:
                break
            *lines, buffer = (buffer + piece).split(b"\n")
            for line in lines:
                row = json.loads(line)
                hang = Hang(hang_seconds, cpu_seconds(process.pid), time.monotonic())
                if "started" in row:
                    rows.append({"id": row["started"], "outcome": "started"})
                elif "end" in row:
                    ended = True
                elif row["id"]:
                    rows[-1] = row
                else:
                    answers.start = row
        process.wait()
    finally:
        os.close(receiver)
    if ended:
        return rows, "end"
    if rows and rows[-1]["outcome"] == "started":
        return rows, "crashed"
    return rows, "crashed" if rows else "start"


def _waited(receiver: int, process: int, hang: Hang, until: float) -> str:
    """Wait until the process says something: return nothing then, cut where the time is over, or hung."""
    while True:
        ready, _, _ = select.select([receiver], [], [], max(0.0, min(hang.look, until) - time.monotonic()))
        now = time.monotonic()
        if now > until:
            return "cut"
        if ready:
            return ""
        if hang.has_come(cpu_seconds(process), now):
            return "hung"


class Hang:
    """Whether what a process does now has hung: by its CPU time, since a busy machine may give it little."""

    def __init__(self, seconds: float, used: float, now: float) -> None:
        self._seconds, self._begun, self._seen = seconds, used, used
        self.look = now + seconds  # of the monotonic clock: when to look again

    def has_come(self, used: float, now: float) -> bool:
        """Say so for a process that has used so many CPU seconds; look again later if it has not."""
        if used - self._begun >= self._seconds or used - self._seen < _USES_NONE:
            return True
        self._seen, self.look = used, now + self._seconds
        return False


def cpu_seconds(process: int) -> float:
    """Return the CPU seconds that a process has used; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def simulated(arguments: Sequence[str], library: Path) -> str:
    """Return what a simulated Python with another library prints.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    environ = {**environ_of(library, "15.2"), "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    argv = (sys.executable, *arguments)
    return subprocess.run(argv, env=environ, stdout=subprocess.PIPE, text=True, check=True).stdout


def environ_of(library: Path, macos: str) -> dict[str, str]:
    kept = os.environ.get("LD_LIBRARY_PATH", "")
    return {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, (str(library), kept))),
        "MPS_BUILD_MACOS": macos,
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _said(folder: Path) -> str:
    text = (folder / "said.txt").read_text(encoding="utf-8", errors="replace").strip()
    return text[-600:]
