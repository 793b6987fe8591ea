"""Runs tests again in child processes: with `mps` as the CPU, or with each operator checked against the CPU's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from .verdicts import Run

Way = Literal["cpu", "operators"]
WAY, OUT = "MPS_BUILD_COMPARE_WAY", "MPS_BUILD_COMPARE_OUT"  # for the child's plugin
_AT_ONCE = 100  # tests of one command line
_SILENCE_SECONDS = 600.0  # of one test
# Of the caller's run alone: how many tests fail before it stops, which are chosen, reports, a debugger, more processes.
_DROPPED = {
    *(
        "-x",
        "--exitfirst",
        "--lf",
        "--last-failed",
        "--ff",
        "--failed-first",
        "--nf",
        "--new-first",
        "--sw",
        "--stepwise",
    ),
    *("--pdb", "--trace", "--mps-compare", "--collect-only", "--co", "-f", "--looponfail"),
}
_DROPPED_WITH_VALUE = {
    *("--maxfail", "-n", "--numprocesses", "--dist", "--junitxml", "--junit-xml", "--cov", "--cov-report", "-k", "-m"),
    *("--mps-compare-json", "--mps-compare-accept", "--maxprocesses", "--deselect", "--report-log", "--html"),
}


def child_arguments(given: Sequence[str], files: Sequence[str]) -> list[str]:
    """Return the options of a run that its repetition keeps: those of plugins and of the library, without files.

    Args:
        given: pytest's arguments. files: those of them that are files, folders or tests.

    >>> child_arguments(["-x", "tests/", "--device", "mps", "-n", "4", "--maxfail=1", "-p", "a"], ["tests/"])
    ['--device', 'mps', '-p', 'a']
    """
    kept: list[str] = []
    words = iter(given)
    for word in words:
        name = word.partition("=")[0]
        if word in files or word in _DROPPED or (name in _DROPPED_WITH_VALUE and "=" in word):
            continue
        if word in _DROPPED_WITH_VALUE:
            next(words, None)
            continue
        if len(word) > 2 and word[:2] in ("-n", "-k", "-m") and not word.startswith("--"):
            continue
        kept.append(word)
    return kept


def run_again(way: Way, tests: Sequence[str], *, options: Sequence[str], folder: Path, root: Path) -> dict[str, Run]:
    """Return what each test answered; one that ended its process, or that did not end, failed with that.

    Args:
        tests: node ids, below `root`. options: pytest's other arguments. folder: where the caller stands.
    """
    found: dict[str, Run] = {}
    for start in range(0, len(tests), _AT_ONCE):
        rest = list(tests[start : start + _AT_ONCE])
        while rest:
            answers, running, why = _one_process(way, rest, options=options, folder=folder, root=root)
            found |= answers
            if running is not None and running not in answers:
                found[running] = Run(failed=why)
            done = [each for each in rest if each in found]
            if not done:  # it does not even begin
                found |= {each: Run(failed=why) for each in rest}
                break
            rest = [each for each in rest if each not in found]
    return found


def _one_process(
    way: Way, tests: Sequence[str], *, options: Sequence[str], folder: Path, root: Path
) -> tuple[dict[str, Run], str | None, str]:
    """Return what was answered, the test that ran last and did not answer, and what the process said at its end."""
    with tempfile.TemporaryDirectory() as home:
        out = Path(home) / "answers.jsonl"
        environ = {**os.environ, WAY: way, OUT: str(out)}
        places = [str(root / test) for test in tests]
        # Later options win: the caller's may come from a file of settings.
        own = (f"--rootdir={root}", "--maxfail=0", "-p", "no:cacheprovider")  # node ids count from the root
        argv = [sys.executable, "-m", "pytest", *options, *_own_options(options), *own]
        with (Path(home) / "said.txt").open("w+b") as said:
            process = subprocess.Popen([*argv, *places], cwd=folder, env=environ, stdout=said, stderr=said)
            timer = _Silence(process, out)
            status = process.wait()
            timer.stop()
            said.seek(0)
            words = said.read().decode(errors="replace")
        answers, running = read_answers(out)
    if timer.is_over:
        return answers, running, f"did not end within {_SILENCE_SECONDS:.0f} seconds"
    ends = f"ended its process (signal {-status})" if status < 0 else f"ended its process (status {status})"
    last = " / ".join([line for line in words.splitlines() if line.strip()][-3:])
    return answers, running, f"{ends}: {last}"


def _own_options(options: Sequence[str]) -> list[str]:
    is_named = any(word.removeprefix("-p") == "mps_build.pytest_plugin" for word in options)
    return [] if is_named else ["-p", "mps_build.pytest_plugin"]


class _Silence:
    """Ends a process that has answered nothing for a while."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path) -> None:
        self.is_over = False
        self._process, self._out, self._size = process, out, -1
        self._next()

    def _next(self) -> None:
        self._timer = threading.Timer(_SILENCE_SECONDS, self._look)
        self._timer.daemon = True
        self._timer.start()

    def _look(self) -> None:
        size = self._out.stat().st_size if self._out.exists() else 0
        if size == self._size:
            self.is_over = True
            self._process.kill()
        else:
            self._size = size
            self._next()

    def stop(self) -> None:
        self._timer.cancel()


def read_answers(path: Path) -> tuple[dict[str, Run], str | None]:
    """Return the answers of a child's file, and the test that began last where it has none; a cut-off line is none."""
    answers: dict[str, Run] = {}
    running: str | None = None
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            row: Mapping[str, Any] = json.loads(line)
        except ValueError:
            continue
        if row.get("begins"):
            running = str(row["test"])
            continue
        seen = {name: row.get(name, {}) for name in ("differ", "absent", "unknown")}
        answers[str(row["test"])] = Run(row["failed"], **seen)
    return answers, running if running not in answers else None
