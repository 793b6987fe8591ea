"""What verify_kernels costs: processor seconds of a run with an empty cache, and again with what it kept.

    nox -s benchmark -- kernels [TARGET] [--quick] [--sample 20]      (default: torch==2.15.0, all kernels)

`low` is the processor's seconds divided by the cores, which is what a machine needs that does nothing else;
`high` is the wall clock's, with whatever else ran. With --sample N every N-th run of neighbouring kernels is run, and
the seconds are N times theirs (start and reading of the wheel once).
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from mps_build.commands.shared.kernels import environment, reference_python, torch_version
from mps_build.commands.shared.wheels import find_wheel
from mps_build.common.console import Console
from mps_build.common.cores import usable_cores
from mps_build.kernels.execution.selection import Choice, choose
from mps_build.kernels.execution.verify_all import KernelRow, Request, counts, verify
from mps_build.kernels.read.library import BASIC
from mps_build.kernels.read.wheel import read_libraries
from shared.record import record

RUN = 48  # neighbouring kernels that share companions


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", default="torch==2.15.0")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sample", type=int, default=1)
    options = parser.parse_args()
    console = Console()
    path, _ = find_wheel(options.target, None, console)
    libraries = tuple(sorted(read_libraries(path), key=lambda each: each.name != BASIC))
    names = [libraries[0].functions[place].name for place in choose(libraries[0], Choice(is_quick=options.quick))]
    names += [
        each.functions[place].name for each in libraries[1:] for place in choose(each, Choice(is_quick=options.quick))
    ]
    ordered = list(dict.fromkeys(names))
    chosen = {name for at, name in enumerate(ordered) if at // RUN % options.sample == 0}
    with tempfile.TemporaryDirectory(prefix="mps-kernels-benchmark-") as cache:
        request = Request(
            libraries=libraries,
            version=torch_version(path.name),
            python=reference_python(console),
            environ=environment(),
            cache=Path(cache),
            choice=Choice(names=frozenset(chosen), is_quick=options.quick),
        )
        first, rows = _measured(request, console)
        again, _ = _measured(request, console)
    _keep(options, first, again, rows)
    return 0


def _measured(request: Request, console: Console) -> tuple[tuple[float, float], list[KernelRow]]:
    """Return processor and wall seconds of a run, and its rows."""
    began, before = time.monotonic(), _processor()
    rows = verify(request, console)
    return (_processor() - before, time.monotonic() - began), rows


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _keep(
    options: argparse.Namespace, first: tuple[float, float], again: tuple[float, float], rows: list[KernelRow]
) -> None:
    cores = usable_cores()
    times = options.sample
    command = f"nox -s benchmark -- kernels {Path(options.target).name}" + (" --quick" if options.quick else "")
    shared = f"{first[0] * times:.0f} CPU s on {cores} cores; low: CPU s / cores, high: wall, the machine shared"
    if times > 1:
        command, shared = f"{command} --sample {times}", f"{shared}; 1 in {times} kernels, times {times}"
    name, target = ("kernels.quick_s", "<= 180") if options.quick else ("kernels.full_s", "<= 1200")
    for key, (processor, wall), bound in ((name, first, target), (f"{name[:-2]}_again_s", again, "<= 180")):
        alone = processor * times / cores
        values = (alone, alone, max(wall * times, alone))
        print(record(key, values, unit="s", command=command, target=bound, versions=shared))
    found = counts([row for row in rows if row.library == BASIC])
    if not options.quick:
        share = found["compiled"] / found["kernels"]
        print(record("kernels.compiled", [share], unit="share", command=command, target=">= 0.999", versions=shared))


if __name__ == "__main__":
    sys.exit(main())
