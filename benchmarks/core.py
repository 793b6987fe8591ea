"""The core's figures on one screen: triage, attacks by class, and what each verdict costs from a fresh clone.

    nox -s benchmark -- core [--only NAME,…] [--record]

Each verdict's command runs in a fresh clone with a fresh nox and an empty cache of its own, one after another, so that
a later one finds what an earlier one fetched, as a user's would. Seconds are wall clock, gigabytes what the clone, its
environments and the cache have grown by. Triage's share is that of `benchmarks/triage.py`, as it was last recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.page import RESULTS
from shared.record import record

ROOT = Path(__file__).resolve().parents[1]
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "audit_wheel": ("audit_wheel", "--", "torch==2.15.0"),
    "build_sample": ("build_wheel", "--", "sample"),
    "verify_kernels": ("verify_kernels", "--", "torch==2.15.0", "--quick"),
    "verify_mps": ("verify_mps", "--", "torch==2.13.0", "--device", "cpu", "--quick"),
    "official_wheel": (
        *("simulate", "--", "torch==2.15.0", "--", "python", "-c"),
        "import torch; print(torch.ones(1, device='mps'))",
    ),
    "simulate": ("simulate", "--", "v2.6.0"),
}
# Files of tests/tooling whose tests are attacks, or damage, by what is attacked.
ATTACKS: Mapping[str, tuple[str, ...]] = {
    "secrets": ("common/test_secrets*.py", "common/test_what_leaves.py"),
    "downloads and pages": ("common/test_fetch_*.py", "common/test_documents.py", "publish/test_hostile_downloads.py"),
    "index and release": ("publish/test_index_*.py", "publish/test_release_hashes.py"),
    "source trees": (
        "wheel_build/steps/test_hostile_git.py",
        "wheel_build/test_source_state.py",
        "wheel_build/test_damaged_caches.py",
    ),
    "wheels": ("inspection/test_hostile_*.py", "common/test_wheel_cache.py"),
    "kernels and simulation": (
        "kernels/test_kernels_sandbox.py",
        "simulation/test_kept.py",
        "simulation/official/*.py",
    ),
}


@dataclass(frozen=True)
class Cost:
    """What a verdict cost: its command's exit status, wall seconds, and bytes of disk."""

    name: str
    status: int
    seconds: float
    grown: int


def main() -> int:
    """Measure and print; 1 if a command did not end with a verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(COMMANDS), help=f"some of {', '.join(COMMANDS)}")
    parser.add_argument("--record", action="store_true", help="keep the figures in benchmarks/results.json")
    options = parser.parse_args()
    triage = {row["name"]: row for row in json.loads(RESULTS.read_text("utf-8")) if row["name"].startswith("triage.")}
    for name, row in triage.items():
        print(f"{name:28} {row['median']:.4f}  {row.get('versions', '')}", flush=True)
    for name, count in attacks():
        print(f"attacks: {name:24} {count:5}", flush=True)
    costs = []
    for cost in verdicts(options.only.split(",")):
        print(f"{cost.name:16} exit {cost.status:3} {cost.seconds:7.0f} s {cost.grown / 1e9:6.2f} GB", flush=True)
        costs.append(cost)
    if options.record:
        for cost in costs:
            command = "nox -s benchmark -- core"
            record(f"core.{cost.name}_s", [cost.seconds], unit="s", command=command, target="-")
            record(f"core.{cost.name}_gb", [cost.grown / 1e9], unit="GB", command=command, target="-")
    return int(any(cost.status not in (0, 11) for cost in costs))


def attacks() -> Iterator[tuple[str, int]]:
    """Yield how many tests attack each class, as pytest counts them.

    Raises:
        SystemExit: a class has none: a file was renamed.
    """
    for name, patterns in ATTACKS.items():
        files = [str(path) for pattern in patterns for path in sorted((ROOT / "tests/tooling").glob(pattern))]
        argv = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
        said = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False).stdout
        count = sum("::" in line for line in said.splitlines())
        if not files or not count:
            raise SystemExit(f"no test attacks {name}: {said[-400:]}")
        yield name, count


def verdicts(names: list[str]) -> Iterator[Cost]:
    """Yield what each command costs in a fresh clone, one after another."""
    with tempfile.TemporaryDirectory(prefix="mps-build-core-") as folder:
        home = Path(folder)
        subprocess.run(["git", "clone", "-q", str(ROOT), str(home / "clone")], check=True)
        subprocess.run([sys.executable, "-m", "venv", str(home / "venv")], check=True)
        subprocess.run([str(home / "venv/bin/pip"), "install", "-q", "nox", "uv"], check=True)
        environ = {**os.environ, "MPS_BUILD_CACHE": str(home / "cache"), "MPS_BUILD_WORK": str(home / "work")}
        environ = {name: value for name, value in environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        for name in names:
            before, began = _bytes_below(home), time.monotonic()
            argv = [str(home / "venv/bin/nox"), "-s", *COMMANDS[name]]
            with (home / f"{name}.log").open("wb") as log:
                status = subprocess.run(argv, cwd=home / "clone", env=environ, stdout=log, stderr=log, check=False)
            seconds = time.monotonic() - began
            if status.returncode:
                print((home / f"{name}.log").read_text("utf-8", "replace")[-2000:], file=sys.stderr)
            yield Cost(name, status.returncode, seconds, _bytes_below(home) - before)


def _bytes_below(folder: Path) -> int:
    said = subprocess.run(["du", "-sk", str(folder)], capture_output=True, text=True, check=False).stdout
    return int(said.split()[0]) * 1024


if __name__ == "__main__":
    raise SystemExit(main())
