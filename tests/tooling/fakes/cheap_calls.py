"""Every command with arguments that make it work, or refuse, within a second; as a program, runs them in folders.

An argument of the program is `SURROUNDING,SURROUNDING=FOLDER`; the variable RUN_ALL_COMMANDS names a few commands
instead. `results.json` gets, for each folder, command to exit status and what standard error got. One process, because
the imports of each command cost more than the command.
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

from macs import recorded_mac
from mps_build.cli import main
from mps_build.commands.shared.catalogue import COMMANDS
from small_wheels import write_wheel

ROOT = Path(__file__).parents[3]
WHEEL = "torch-2.6.0-cp312-cp312-macosx_13_0_arm64.whl"
CALLS: dict[str, tuple[str, ...]] = {
    "build_wheel": ("v2.6.0", "--dry-run", "--host", "mac.json"),
    "build_companions": ("v2.6.0", "--dry-run", "--host", "mac.json"),
    "rehearse": ("v2.6.0", "--torch", WHEEL),
    "check_mm": ("New.mm", "--source", "tree"),
    "shell": ("sample", "--offline", "--", "true"),
    "lock": ("--check", "v2.6.0"),
    "matrix": (),
    "refresh_patches": ("tree", "--recipe", "v2.6.0"),
    "build_report": ("build",),
    "audit_wheel": (WHEEL,),
    "verify_kernels": (WHEEL, "--beside", "mac.json"),
    "op_coverage": ("coverage.json",),
    "compare": ("record.json", "record.json"),
    "simulate": ("v2.15.0",),
    "verify_mps": ("--python", "/bin/false", "--device", "cpu"),
    "verify_training": ("--python", "/bin/false", "--device", "cpu"),
    "benchmark_mps": ("--python", "/bin/false", "--device", "cpu"),
    "bisect_mps": ("x", "--good", "2.3.1", "--bad", "2.6.0", "--index", "tree"),
    "repro": ("record.json", "a", "--output", "a.py", "--issue", "a.md"),
    "doctor": ("v2.6.0", "--host", "mac.json"),
    "triage": ("build.log",),
    "adopt": ("mac.json", "--name", "x", "--into", "adopted"),
    "support": ("--output", "x.tar.gz"),
    "clean": (),
    "publish_index": ("wheels", "--output", "site", "--dry-run"),
    "verify_provenance": (WHEEL, "--without-attestation"),
    "ci": ("inputs", "--ref", "main", "--runner", '["self-hosted"]'),
    "regenerate": ("--check",),
    "completion": ("bash",),
}
assert CALLS.keys() == COMMANDS.keys()


def lay_out(folder: Path) -> None:
    """Write the files that the calls name."""
    recorded = ROOT / "tests" / "recorded"
    recorded_mac(folder, "m5-24gb-26.3.1-rsr")
    for name in ("tree", "build", "wheels"):
        (folder / name).mkdir()
    (folder / "New.mm").write_text("int x;\n")
    (folder / "build.log").write_text("error: something failed\n")
    (folder / "build" / ".ninja_log").write_text("# ninja log v5\n0\t900\t0\ta.o\tabc\n")
    for place in (folder, folder / "wheels"):
        write_wheel(place, {"torch/version.py": b"git_version = '0'\n"}, name=WHEEL)
    coverage = (recorded / "op_coverage" / "v1.13.1-source.json").read_text(encoding="utf-8")
    (folder / "coverage.json").write_text(coverage, encoding="utf-8")
    record = json.loads((recorded / "records" / "cuda-h200-torch-2.11.0.json").read_text(encoding="utf-8"))
    case = {"id": "a", "layer": "x", "outcome": "failed", "issue": ["1"], "reason": "r", "file": "test_smoke_notes.py"}
    (folder / "record.json").write_text(json.dumps({**record, "verdict": "regressed", "cases": [case]}))


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
    requested = os.environ.get("RUN_ALL_COMMANDS", "").split() or list(CALLS)
    for command in requested:
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
