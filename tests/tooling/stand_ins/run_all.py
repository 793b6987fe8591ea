"""A program of its own: every call of cheap_calls, one after the other, in each folder that its arguments name.

An argument is `SURROUNDING,SURROUNDING=FOLDER`; the variable RUN_ALL_COMMANDS names a few commands instead.
`results.json` gets, for each folder, command to exit status and what standard error got. One process, because the
imports of each command cost more than the command.
"""

from __future__ import annotations

import io
import json
import os
import pwd
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from cheap_calls import CALLS
from mps_build.cli import main


def _nobody(_number: int) -> pwd.struct_passwd:
    raise KeyError("getpwuid(): uid not found")


@contextmanager
def _homeless() -> Iterator[None]:
    """Take away whatever names a home folder."""
    known, kept = pwd.getpwuid, dict(os.environ)
    pwd.getpwuid = _nobody
    for name in ("HOME", "MPS_BUILD_CACHE", "XDG_CACHE_HOME"):
        os.environ.pop(name, None)
    yield
    pwd.getpwuid = known
    os.environ |= kept


def run_all(surroundings: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Return the status of each command, and what it wrote to standard error where that is there."""
    broken = None
    if "cut_off" in surroundings:
        reader, broken = os.pipe()
        os.close(reader)
    elif "full" in surroundings:
        broken = os.open("/dev/full", os.O_WRONLY)
    elif "sound" in surroundings:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the folder before may have left a broken one
    results = {}
    asked = os.environ.get("RUN_ALL_COMMANDS", "").split() or list(CALLS)
    for command in asked:
        arguments = words = CALLS[command]
        if broken is not None:
            os.dup2(broken, 1)  # the command before gave up on it
        said = io.StringIO()
        if "absolute" in surroundings:
            arguments = tuple(str(Path(each).absolute()) if Path(each).exists() else each for each in words)
        if "no_stderr" not in surroundings:
            sys.stderr = said
        results[command] = (main(command, list(arguments)), said.getvalue())
    return results


def main_of(arguments: Sequence[str]) -> None:
    """Run all in each folder, which also holds the work folder and, where the environment names one, the cache."""
    results, first, has_cache = {}, Path.cwd(), "MPS_BUILD_CACHE" in os.environ
    for argument in arguments:
        names, _, folder = argument.partition("=")
        os.chdir(folder)
        os.environ["MPS_BUILD_WORK"] = str(Path(folder, "work"))
        if has_cache:
            os.environ["MPS_BUILD_CACHE"] = str(Path(folder, "cache"))
        with _homeless() if "homeless" in names else nullcontext():
            results[folder] = run_all(names.split(","))
    (first / "results.json").write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main_of(sys.argv[1:])
    os._exit(0)  # what is broken here stays broken: Python's own end is tested with single commands
