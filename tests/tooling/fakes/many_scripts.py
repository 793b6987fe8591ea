"""Reduces many cases with a fault and runs their scripts with a fault and without, in forks of one process with torch.

`PYTHON many_scripts.py JOBS.json`, from the suite's folder: [{case, file, fault}]; prints each with what became of it.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))


def reduced(arguments: list[str]) -> int:
    """Run the reducer; it is imported in a fork only, since a script brings the suite's modules itself."""
    return int(importlib.import_module("engine.reduction.__main__").main(arguments))


def in_fork(work: Callable[[], Any]) -> tuple[Any, str]:
    """Return what `work` returns (or the status that it exits with), and what it printed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                status: Any = work()
            except SystemExit as end:
                status = end.code
            except BaseException as raised:
                status = f"{type(raised).__name__}: {raised}"
        with os.fdopen(write, "w") as pipe:
            json.dump([status, said.getvalue()], pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return tuple(json.loads(text)) if text else ("died", "")


def as_script(file: str, *options: str) -> Callable[[], Any]:
    """Return what runs a file as `python FILE OPTIONS` would."""

    def work() -> Any:
        sys.argv = [file, *options]
        runpy.run_path(file, run_name="__main__")

    return work


def one_job(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the job with its script, the four ends of it, and the seconds that this took."""
    began = time.monotonic()
    out, file = folder / "found.json", str(folder / "script.py")
    arguments = [job["case"], "--file", job["file"], "--device", "cpu", "--inject", job["fault"], "--said", job["case"]]
    status, said = in_fork(lambda: reduced([*arguments, "--seconds", "10", "--output", str(out)]))
    if status != 0:
        return {**job, "refused": f"{status} {said}"}
    found = json.loads(out.read_text())
    if "script" in found:
        Path(file).write_text(found["script"])
        found["ends"] = ends_of(file, job["fault"])
    if "whole" in job:
        found["whole_ends"] = ends_of(job["whole"], job["fault"])
    return {**job, **found, "seconds": time.monotonic() - began}


def ends_of(file: str, fault: str) -> list[Any]:
    """Return a script's statuses: right, wrong with the fault, and what it printed then."""
    clean = in_fork(as_script(file, "--device", "cpu"))
    injected = in_fork(as_script(file, "--device", "cpu", "--inject", fault))
    return [clean[0], injected[0], clean[1][-300:] + injected[1][-300:]]


def main() -> None:
    """Do each job of the file; what became of it is printed, a line each."""
    path = Path(sys.argv[1])
    for job in json.loads(path.read_text()):
        print(json.dumps(one_job(job, path.parent)), flush=True)


if __name__ == "__main__":
    main()
