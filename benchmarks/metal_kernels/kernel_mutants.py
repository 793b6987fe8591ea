"""Faults drawn by rule over the bound families of a wheel's kernels: how many of them verify_kernels catches.

    nox -s benchmark -- kernel_mutants WHEEL [--count 240] [--seed 1] [--record]

A family, then a kernel of it, then a kind of fault, then a place are drawn, each as likely as any other; kernels that
are not passed without a fault are left out. A fault that is not caught is held against the kernel without it over
inputs of other seeds: where no bit of any buffer differs, it is called equivalent, and does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.workspace import cache_folder
from mps_build.kernels.code import compiler
from mps_build.kernels.code.compiled import Code
from mps_build.kernels.code.kernel import compile_kernel
from mps_build.kernels.execution.pool import Task, examine_all
from mps_build.kernels.execution.servers import servers
from mps_build.kernels.execution.verify_all import FOUND
from mps_build.kernels.execution.worker import Setting
from mps_build.kernels.families.shared.contracts import (
    Case,
    Kernel,
    companions_of,
    find_binder,
    match_kernel,
    signature,
)
from mps_build.kernels.judge.references import load_references
from mps_build.kernels.machine.build import build_runtime
from mps_build.kernels.machine.checks import Order, TimeLimit
from mps_build.kernels.machine.device import Device
from mps_build.kernels.machine.runtime import load_runtime
from mps_build.kernels.program.launch import NotBound, WrongBinding
from mps_build.kernels.program.values import Values
from mps_build.kernels.read.library import Library
from mps_build.kernels.read.metadata import parse_metadata
from mps_build.kernels.read.wheel import read_libraries
from shared.kernel_faults import Fault, draw, inject
from shared.record import record

MORE_SEEDS = range(101, 107)
_KIND = "of each kind"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A kernel with the fault that is injected into it."""

    place: int
    name: str
    family: str
    fault: Fault


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--count", type=int, default=240)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--python", default=os.environ.get("MPS_BUILD_TORCH_PYTHON", sys.executable))
    parser.add_argument("--json", type=Path, help="every fault and what became of it")
    parser.add_argument("--record", action="store_true", help="keep the figure in benchmarks/results.json")
    options = parser.parse_args()
    library = next(each for each in read_libraries(options.wheel) if each.name == "metal_basic")
    drawn = _draw_all(library, options.count, options.seed)
    clean = _outcomes(library, [each.place for each in drawn], options, None)
    drawn = [each for each in drawn if clean[each.place]["outcome"] == "passed"]
    faults = {each.name: each.fault for each in drawn}
    found = _outcomes(library, [each.place for each in drawn], options, faults)
    rows = [_row(each, found[each.place], library) for each in drawn]
    if options.json:
        options.json.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    _report(rows, options)


def _draw_all(library: Library, count: int, seed: int) -> list[Drawn]:
    """Draw family, kernel, kind and place; a kernel comes once."""
    source = random.Random(seed)
    families: dict[tuple[str, ...], list[int]] = defaultdict(list)
    texts: dict[int, str] = {}
    for place in source.sample(range(len(library.functions)), min(len(library.functions), 40 * count)):
        text = compiler.read_bitcode(library.bitcode(library.functions[place]))
        metadata = parse_metadata(text)
        if match_kernel(library.functions[place].name, metadata) is not None:
            families[signature(metadata)].append(place)
            texts[place] = text
    drawn: list[Drawn] = []
    while len(drawn) < count and families:
        family = source.choice(sorted(families))
        place = families[family].pop(source.randrange(len(families[family])))
        if not families[family]:
            del families[family]
        fault = draw(texts[place], source)
        if fault is not None:
            drawn.append(Drawn(place, library.functions[place].name, ", ".join(family), fault))
    return drawn


def _outcomes(
    library: Library, places: list[int], options: argparse.Namespace, faults: dict[str, Fault] | None
) -> dict[int, dict[str, Any]]:
    """Return the verdicts of some kernels, with faults injected into them or without."""

    def injected(text: str) -> str:
        fault = (faults or {}).get(parse_metadata(text).function)
        return inject(text, fault) if fault else text

    cache = cache_folder() / "kernels"
    with servers(cache, Path(options.python), dict(os.environ)) as started:
        setting = Setting(
            libraries=(library,),
            references=load_references(),
            runtime=started.runtime,
            store=cache / "code",
            reader=started.reader,
            machine=started.machine,
            judge=started.judge,
            seed=0,
            is_quick=False,
            fault=injected if faults else None,
        )
        tasks = [Task(library=0, function=place) for place in places]
        jobs = int(os.environ.get("MPS_BUILD_JOBS", "1"))
        return {done.task.function: dict(done.verdict) for done in examine_all(setting, tasks, workers=jobs, batch=48)}


def _row(each: Drawn, verdict: dict[str, Any], library: Library) -> dict[str, Any]:
    outcome = verdict["outcome"]
    result = (
        "caught" if outcome in FOUND else "refused" if outcome in ("not_compiled", "refused", "skipped") else "missed"
    )
    if result == "missed":
        result = _in_a_child(library, each)
    return {
        "name": each.name, "family": each.family, "kind": each.fault.kind, "before": each.fault.before,
        "after": each.fault.after.strip(), "result": result, "reason": str(verdict.get("reason", ""))[:200],
    }  # fmt: skip


def _in_a_child(library: Library, each: Drawn) -> str:
    """Return `missed` if a bit of any buffer differs over inputs of other seeds, else `equivalent`."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, b"missed" if _differs(library, each) else b"equivalent")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        answer = file.read().decode()
    os.waitpid(pid, 0)
    return answer or "missed"  # it crashed on other inputs: a difference


def _differs(library: Library, each: Drawn) -> bool:
    with tempfile.TemporaryDirectory(prefix="mps-mutants-") as folder:
        (file := Path(folder) / "runtime.so").write_bytes(build_runtime(cache_folder() / "kernels"))
        runtime = load_runtime(file)
    by_name = {function.name: function for function in library.functions}
    codes: dict[str, Code] = {}

    def compiled(name: str, fault: Fault | None = None) -> Code | None:
        bitcode = library.bitcode(by_name[name])
        injected = None if fault is None else inject(compiler.read_bitcode(bitcode), fault)
        code = compile_kernel(bitcode, injected=injected)
        return code if isinstance(code, Code) else None

    clean, faulty = compiled(each.name), compiled(each.name, each.fault)
    if clean is None or faulty is None:
        return False
    kernel = match_kernel(each.name, clean.metadata)
    assert kernel is not None and kernel.contract is not None
    for name in companions_of(kernel):
        if name in by_name and (code := compiled(name)) is not None:
            codes[name] = code
    views = {
        name: match_kernel(name, code.metadata) or Kernel(name=name, metadata=code.metadata)
        for name, code in {**codes, each.name: clean}.items()
    }
    for seed in MORE_SEEDS:
        case = Case(values=Values(seed, each.name), kernels=views, references=load_references())
        try:
            for program in find_binder(kernel.contract.binder)(kernel, case):
                runs = [
                    Device(runtime, {**codes, each.name: code}).run(program, (Order(order), TimeLimit(20000)))
                    for code in (clean, faulty)
                    for order in (0, 1)
                ]
                one, two = runs[0], runs[2]
                if bool(one.troubles) != bool(two.troubles) or bool(runs[1].troubles) != bool(runs[3].troubles):
                    return True
                # Buffers are numbered anew in each run, in the order of the program's arguments.
                if not program.varies and (
                    list(one.contents.values()) != list(two.contents.values())
                    or list(runs[1].contents.values()) != list(runs[3].contents.values())
                ):
                    return True
        except (NotBound, WrongBinding):
            continue
    return False


def _report(rows: list[dict[str, Any]], options: argparse.Namespace) -> None:
    counted = Counter(row["result"] for row in rows)
    for kind in sorted({row["kind"] for row in rows}):
        print(f"{kind:12}", dict(Counter(row["result"] for row in rows if row["kind"] == kind)))
    for row in rows:
        if row["result"] == "missed":
            print(f"missed: {row['name']} ({row['kind']})\n    {row['before']}\n    {row['after']}")
    judged = counted["caught"] + counted["missed"]
    share = counted["caught"] / judged if judged else 0.0
    print(f"{counted['caught']} of {judged} caught, {share:.3f}; {counted['equivalent']} equivalent, "
          f"{counted['refused']} not accepted by the compiler")  # fmt: skip
    if options.record:
        command = (
            f"nox -s benchmark -- kernel_mutants {options.wheel.name} --count {options.count} --seed {options.seed}"
        )
        record("kernels.faults_caught", [share], unit="ratio", command=command, target=">= 0.9")


if __name__ == "__main__":
    main()
