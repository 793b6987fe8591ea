"""What an audit costs, against one inflate-and-sha256 pass over the same wheel with Python's zlib and hashlib.

    nox -s benchmark -- audit WHEEL_OR_REQUIREMENT [--runs 9]      (default: torch==2.15.0)

Each run is a process of its own, measured whole by the kernel: start, imports, everything. Audit and
floor take turns, so that a busy machine slows both; ratios are those of neighbours.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from mps_build.commands.shared.wheels import find_wheel
from mps_build.common.console import Console
from shared.record import record

ENTRY = (sys.executable, "-m", "mps_build", "audit_wheel")
COMMAND = "nox -s benchmark -- audit torch==2.15.0"
FLOOR = """
import hashlib, sys, zipfile, zlib
with zipfile.ZipFile(sys.argv[1]) as archive, open(sys.argv[1], "rb") as file:
    for member in archive.infolist():
        file.seek(member.header_offset)
        header = file.read(30)
        file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
        left, digest = member.compress_size, hashlib.sha256()
        inflate = zlib.decompressobj(-15).decompress if member.compress_type else bytes
        while left:
            data = file.read(min(1 << 18, left))
            left -= len(data)
            digest.update(inflate(data))
        digest.digest()
"""


class Cost(NamedTuple):
    """What one process took."""

    cpu: float
    wall: float
    peak_mb: float


def cost(argv: list[str]) -> Cost:
    """Run a program to its end and return what the kernel says it took."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        # Compiled once and kept, as any user has it; some test machines forbid that by this variable.
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        process = subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT, env=environ)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 9):
            output.seek(0)
            sys.exit(f"{argv} failed:\n{output.read().decode(errors='replace')}")
    peak = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return Cost(cpu=usage.ru_utime + usage.ru_stime, wall=time.monotonic() - began, peak_mb=peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", nargs="?", default="torch==2.15.0")
    parser.add_argument("--python", help="the Python of a requirement")
    parser.add_argument("--runs", type=int, default=9)
    arguments = parser.parse_args()
    wheel, _ = find_wheel(arguments.wheel, arguments.python, Console())
    floors, audits, quicks = [], [], []
    for run in range(arguments.runs + 1):
        floor = cost([sys.executable, "-c", FLOOR, str(wheel)])
        audit = cost([*ENTRY, str(wheel)])
        quick = cost([*ENTRY, "--quick", str(wheel)])
        if run:  # the first one warms the disk's cache
            floors.append(floor)
            audits.append(audit)
            quicks.append(quick)
            print(
                f"run {run}: floor {floor.cpu:.2f} CPU s, {floor.wall:.2f} s; audit {audit.cpu:.2f} CPU s, "
                f"{audit.wall:.2f} s, {audit.peak_mb:.0f} MB; quick {quick.wall:.2f} s"
            )
    pairs = list(zip(audits, floors, strict=True))
    rows = [
        record("audit.cpu_ratio", [a.cpu / f.cpu for a, f in pairs], unit="ratio", command=COMMAND, target="<= 1.1"),
        record("audit.wall_ratio", [a.wall / f.wall for a, f in pairs], unit="ratio", command=COMMAND, target="<= 0.8"),
        record("audit.peak_mb", [a.peak_mb for a in audits], unit="MB", command=COMMAND, target="<= 200"),
        record("audit.quick_s", [q.wall for q in quicks], unit="s", command=COMMAND, target="<= 0.5"),
    ]
    for row in rows:
        spread = f"(from {row['low']} to {row['high']}; target {row['target']})"
        print(f"{row['name']:<18} {row['median']} {row['unit']} {spread}")
    cpu, wall = statistics.median(f.cpu for f in floors), statistics.median(f.wall for f in floors)
    print(f"floor: {cpu:.2f} CPU s, {wall:.2f} s")


if __name__ == "__main__":
    main()
