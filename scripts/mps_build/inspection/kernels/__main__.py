"""Tries kernels while a contract is written: python -m mps_build.inspection.kernels METALLIB_OR_WHEEL PATTERN …

--python PATH   an interpreter with torch (default: $MPS_BUILD_TORCH_PYTHON)
--seed N        other inputs
--quick         fewer inputs
--jobs N        worker processes (default 1)
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from ...common.process import Command
from ...common.watched import watched
from ...common.workspace import cache_folder
from .code.compiler import require_llvm
from .execution.pool import examine_all, tasks_of
from .execution.worker import Setting
from .library import Library, parse_library
from .machine.build import build_runtime
from .references import load_references

JUDGE = Path(__file__).resolve().parent / "judge" / "main.py"


def main() -> int:
    """Run the kernels of a metallib that fit the patterns and print each outcome: a tool for who adds contracts."""
    parser = argparse.ArgumentParser(prog="kernels", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--python", default=os.environ.get("MPS_BUILD_TORCH_PYTHON", sys.executable))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="every n-th kernel")
    parser.add_argument("--only-bound", action="store_true", help="say nothing of kernels without a contract")
    parser.add_argument("--json", type=Path, help="all verdicts, one a line")
    options = parser.parse_args()
    require_llvm()
    libraries = (_library(options.library),)
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        references = load_references()
        (folder / "references.json").write_text(json.dumps(references))
        runtime = build_runtime(cache_folder() / "kernels")

        def setting(number: int) -> Setting:
            argv = (options.python, str(JUDGE), str(folder / f"judge{number}"), str(folder / "references.json"))
            stack.enter_context(watched(Command(argv=argv), log=folder / f"judge{number}.log"))
            return Setting(
                libraries=libraries,
                references=references,
                runtime=runtime,
                store=cache_folder() / "kernels" / "code",
                socket=folder / f"judge{number}",
                seed=options.seed,
                is_quick=options.quick,
            )

        tasks = tasks_of(libraries, lambda _, name: any(fnmatch.fnmatchcase(name, each) for each in options.patterns))
        counts: collections.Counter[str] = collections.Counter()
        seconds: dict[str, float] = collections.defaultdict(float)
        for done in examine_all(setting, tasks[:: options.every], workers=options.jobs):
            verdict = done.verdict
            if options.json:
                with options.json.open("a") as file:
                    name = libraries[0].functions[done.task.function].name
                    file.write(
                        json.dumps({"name": name, "family": done.family, "seconds": done.seconds, **verdict}) + "\n"
                    )
            counts[verdict["outcome"]] += 1
            seconds[done.family] += done.seconds
            if verdict["outcome"] == "not_bound" and options.only_bound:
                continue
            name = libraries[0].functions[done.task.function].name
            if verdict["outcome"] != "passed" or len(tasks) < 40:
                print(f"{verdict['outcome']:14} {name}  [{done.family}] {done.seconds:.3f} s")
                for key in (
                    "reason",
                    "inputs",
                    "max_ulp",
                    "bound_ulp",
                    "cpu_ulp",
                    "where",
                    "programs",
                    "threads",
                    "inactive",
                ):
                    if verdict.get(key):
                        print(f"    {key}: {verdict[key]}")
    print({family: round(each, 2) for family, each in sorted(seconds.items(), key=lambda row: -row[1])[:12]})
    print(dict(counts), f"{time.monotonic() - began:.1f} s")
    return 0


def _library(path: Path) -> Library:
    if path.suffix == ".whl":
        from .wheel import read_libraries

        return read_libraries(path)[0]
    return parse_library("metal_basic", path.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
