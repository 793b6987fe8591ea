"""All kernels of one official wheel leave the same bytes by rows as thread by thread."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("llvmlite")

from mps_build.commands.shared.wheels import find_wheel
from mps_build.common.console import Console
from mps_build.common.workspace import cache_folder
from mps_build.kernels.code.compiled import Code
from mps_build.kernels.execution.closed import Reader
from mps_build.kernels.execution.servers import servers
from mps_build.kernels.families.shared.contracts import Case, Kernel, companions_of, find_binder, match_kernel
from mps_build.kernels.judge.references import load_references
from mps_build.kernels.program.values import Values
from mps_build.kernels.read.library import Library
from mps_build.kernels.read.wheel import read_libraries
from small_kernels import Rows, device


@pytest.mark.slow  # half a minute, and the wheel
def test_every_kernel_of_an_official_wheel_leaves_the_same_by_rows() -> None:
    wheel, _ = find_wheel("torch==2.6.0", None, Console())
    counts: Counter[str] = Counter()
    with servers(cache_folder() / "kernels", None, {}) as started, Reader(started.reader) as reader:
        for library in read_libraries(wheel):
            counts += _compared(library, _codes(library, reader))

    assert counts["kernels"] == 355
    assert counts["by rows"] > 300
    assert counts["programs"] > 1400


def _codes(library: Library, reader: Reader) -> dict[str, Code]:
    found = {each.name: reader.compile(library.bitcode(each), simulated=True) for each in library.functions}
    return {name: code for name, code in found.items() if isinstance(code, Code)}


def _compared(library: Library, codes: dict[str, Code]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name, code in codes.items():
        kernel = match_kernel(name, code.metadata)
        assert kernel is not None and kernel.contract is not None, name
        own = {each: codes[each] for each in companions_of(kernel) if each in codes} | {name: code}
        kernels = {
            each: match_kernel(each, one.metadata) or Kernel(name=each, metadata=one.metadata)
            for each, one in own.items()
        }
        case = Case(values=Values(5, name), kernels=kernels, references=load_references(), version="2.6.0")
        machine = device(own)
        for program in find_binder(kernel.contract.binder)(kernel, case):
            plain, rows = machine.run(program), machine.run(program, (Rows(machine),))
            assert rows.troubles == plain.troubles, (name, program.label)
            assert rows.contents == plain.contents, (name, program.label)
            counts["programs"] += 1
        machine.clear()
        counts["kernels"] += 1
        counts["by rows"] += not code.is_cooperative
    return counts
