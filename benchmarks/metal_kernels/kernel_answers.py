"""What verify_kernels says of a wheel that is right: how many kernels have a contract, and how many false alarms.

    nox -s benchmark -- kernel_answers [TARGET] [--sample 7] [--seed 5] [--json FILE] [--record]
    (default: torch==2.15.0, all)

With --sample N every N-th kernel of the first library is run. A finding that no known issue explains counts as a false
alarm until it is written up: the wheel's own tests pass on a Mac.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from mps_build.commands.shared.kernels import environment, reference_python, torch_version
from mps_build.commands.shared.wheels import find_wheel
from mps_build.common.console import Console
from mps_build.common.workspace import cache_folder
from mps_build.kernels.execution.selection import Choice, choose
from mps_build.kernels.execution.verify_all import FOUND, KernelRow, Request, counts, verify
from mps_build.kernels.read.library import BASIC
from mps_build.kernels.read.wheel import read_libraries
from mps_build.kernels.report.document import document_of
from shared.record import record


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", default="torch==2.15.0")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="every kernel and what became of it, as verify_kernels --json has it")
    parser.add_argument("--record", action="store_true", help="keep the figures in benchmarks/results.json")
    options = parser.parse_args()
    console = Console()
    path, _ = find_wheel(options.target, None, console)
    library = next(each for each in read_libraries(path) if each.name == BASIC)
    names = sorted(library.functions[place].name for place in choose(library, Choice()))
    request = Request(
        libraries=(library,),
        version=torch_version(path.name),
        python=reference_python(console),
        environ=environment(),
        cache=cache_folder() / "kernels",
        choice=Choice(names=frozenset(names[:: options.sample])),
        seed=options.seed,
    )
    rows = [row for row in verify(request, console) if row.outcome != "not_selected"]
    if options.json:
        document = document_of(rows, target=options.target, version=request.version, seed=options.seed)
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    _report(options, path, rows)
    return 0


def _report(options: argparse.Namespace, path: Path, rows: list[KernelRow]) -> None:
    found, alarms = counts(rows), [row for row in rows if row.outcome in FOUND]
    print(found, dict(Counter(row.outcome for row in rows)))
    for row in alarms:
        print(f"{row.outcome}: {row.name}: {row.reason}")
    for row in rows:
        if row.outcome == "not_bound":
            print(f"not bound: {row.name}: {row.reason}")
    if not options.record:
        return
    sample = f" --sample {options.sample} --seed {options.seed}" if options.sample > 1 else ""
    command = f"nox -s benchmark -- kernel_answers {path.name}{sample}"
    share = found["bound"] / len(rows)
    record("kernels.bound", [share], unit="share", command=command, target=">= 0.9", versions=f"{len(rows)} kernels")
    record(
        "kernels.false_alarms",
        [len(alarms)],
        unit="count",
        command=command,
        target="0",
        versions=f"{len(rows)} kernels",
    )


if __name__ == "__main__":
    sys.exit(main())
