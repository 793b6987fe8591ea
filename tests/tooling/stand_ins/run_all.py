"""A program of its own: every call of cheap_calls, one after the other, in a surrounding that its arguments name.

It writes `results.json`: command to exit status and what standard error got. One process, because the imports of each
command cost more than the command.
"""

from __future__ import annotations

import io
import json
import os
import pwd
import sys
from pathlib import Path

from cheap_calls import CALLS
from mps_build.cli import main


def _nobody(_number: int) -> pwd.struct_passwd:
    raise KeyError("getpwuid(): uid not found")


def run_all(surroundings: list[str]) -> dict[str, tuple[int, str]]:
    """Return the status of each command, and what it wrote to standard error where that is there."""
    if "homeless" in surroundings:
        pwd.getpwuid = _nobody
    broken = None
    if "cut_off" in surroundings:
        reader, broken = os.pipe()
        os.close(reader)
    elif "full" in surroundings:
        broken = os.open("/dev/full", os.O_WRONLY)
    results = {}
    for command, words in CALLS.items():
        arguments = words
        if broken is not None:
            os.dup2(broken, 1)  # the command before gave up on it
        said = io.StringIO()
        if "absolute" in surroundings:
            arguments = tuple(str(Path(each).absolute()) if Path(each).exists() else each for each in words)
        if "no_stderr" not in surroundings:
            sys.stderr = said
        results[command] = (main(command, list(arguments)), said.getvalue())
    return results


if __name__ == "__main__":
    Path("results.json").write_text(json.dumps(run_all(sys.argv[1:])), encoding="utf-8")
    os._exit(0)  # what is broken here stays broken: Python's own end is tested with single commands
