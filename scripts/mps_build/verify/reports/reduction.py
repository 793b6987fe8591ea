"""A failing case as a short script: the suite's own reducer is run by a Python that has torch."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mps_build.common.cores import within_quota
from mps_build.common.errors import UsageError
from mps_build.common.json_text import load_json
from mps_build.common.plain_text import plain
from mps_build.common.process import Command, capture
from mps_build.common.records.device_record import Case, Record

from ..target.interpreter import executable_of, suite_environ

SECONDS = 60
_STARTING = 120  # torch's import, the case itself, on a busy machine
_WORDS = ("operator", "dtype", "condition", "effect")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """What became of it: the script and what a title says, or why there is none."""

    script: str | None = None
    refused: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    ran_on: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReductionDevice:
    """Where a case is reduced: a Python with torch, a device (None: the record's, if it is here), an injected fault.

    `variables`: the environment of that Python; None: this process's.
    """

    python: Path | None
    device: str | None = None
    fault: str | None = None
    variables: Mapping[str, str] | None = None


def find_python(record: Record, given: Path | None, cache: Path, environ: Mapping[str, str]) -> Path | None:
    """Return a Python with torch: the given one, the one that made the record, or MPS_BUILD_TORCH_PYTHON's.

    A record is somebody's file: a program that it names is run only if this tool made it.

    Raises:
        UsageError: the given one is not there.
    """
    if given is not None:
        return executable_of(given)
    named = environ.get("MPS_BUILD_TORCH_PYTHON")
    ours = (cache / "verify" / "environments").absolute()
    recorded = Path(os.path.normpath(record.python.executable)) if record.python else None
    if recorded is not None and ours in recorded.parents and recorded.is_file():
        return recorded
    return executable_of(Path(named)) if named and Path(named).exists() else None


def reduce_case(suite: Path, record: Record, case: Case, on: ReductionDevice, said: str) -> Reduction:
    """Return the case as a short script, reduced on the device where that is there, else from the record alone.

    Raises:
        UsageError: the device or the fault that was named is not there.
    """
    if on.python is None:
        return Reduction(refused="no Python with torch is at hand (--python names one)")
    found = _reduced(suite, record, case, on, said) if not case.is_drawn else _drawn(suite, record, case, on)
    if "missing" in found:
        raise UsageError(plain(str(found["missing"])), hint="leave --device and --inject out to use the record alone")
    if "script" not in found:
        return Reduction(refused=plain(str(found.get("refused", ""))))
    facts = {key: plain(str(found.get(key, ""))) for key in _WORDS}
    return Reduction(script=str(found["script"]), facts=facts, ran_on=str(found.get("ran_on", "")))


def _reduced(suite: Path, record: Record, case: Case, on: ReductionDevice, said: str) -> dict[str, Any]:
    options = {
        "file": case.file or "",
        "device": on.device or record.device,
        "named": record.device,
        "inject": str(Path(on.fault).absolute()) if on.fault else "",
        "reason": plain(case.reason or "")[:20_000],
        "said": plain(said),
        "seconds": str(SECONDS),
    }
    return _run(("-m", "engine.reduction"), suite, case, on, options)


def _drawn(suite: Path, record: Record, case: Case, on: ReductionDevice) -> dict[str, Any]:
    """Return the script of a drawn case. The record's own is not used: a record is somebody's file, and this is run."""
    finding = next((one for one in record.findings if one.id == case.finding), None)
    options = {
        "device": on.device or record.device,
        "named": record.device,
        "inject": str(Path(on.fault).absolute()) if on.fault else "",
        "finding": json.dumps(finding.model_dump(exclude={"script", "no_script"})) if finding else "",
    }
    return _run(("-m", "engine.again"), suite, case, on, options)


def _run(
    module: tuple[str, str], suite: Path, case: Case, on: ReductionDevice, options: Mapping[str, str]
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "found.json"
        argv = [str(on.python), "-W", "ignore", *module, f"--output={output}"]
        argv += [f"--{key}={value}" for key, value in options.items()]
        argv += [] if on.device or on.fault else ["--or-record"]
        variables = suite_environ(os.environ).variables if on.variables is None else on.variables
        command = Command(argv=(*argv, "--", case.id), cwd=suite, environ=within_quota(variables))
        done = capture(command, timeout_seconds=SECONDS + _STARTING)
        if not output.is_file():
            last = (done.stderr.strip().splitlines() or ["it did not end in time" if done.timed_out else "it ended"])[
                -1
            ]
            return {"refused": f"the reducer gave no answer: {last}"}
        found = load_json(output)
    return found if isinstance(found, dict) else {}
