"""Threads of a row, run by one call of compiled code: the same bytes as one call for each, and the same fault."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from mps_build.commands.shared.wheels import find_wheel
from mps_build.common.console import Console
from mps_build.common.workspace import cache_folder
from mps_build.kernels.code.compiled import ROW, Code
from mps_build.kernels.execution.closed import Reader
from mps_build.kernels.execution.servers import servers
from mps_build.kernels.families.shared.contracts import Case, Kernel, companions_of, find_binder, match_kernel
from mps_build.kernels.judge.references import load_references
from mps_build.kernels.machine.checks import REVERSE, SHUFFLED, Order, RunCheck
from mps_build.kernels.machine.device import Device
from mps_build.kernels.machine.link import Image
from mps_build.kernels.machine.runtime import Run
from mps_build.kernels.machine.troubles import Ran
from mps_build.kernels.program.launch import Buffer, Program, Step, inout_buffer, input_buffer, output_buffer
from mps_build.kernels.program.values import Values
from mps_build.kernels.read.library import Library
from mps_build.kernels.read.metadata import BUILTINS
from mps_build.kernels.read.wheel import read_libraries
from small_kernels import (
    GRID,
    Rows,
    air,
    buffer,
    builtin,
    compiled,
    device,
    doubled,
    floats,
    launch,
    pack_floats,
    summed,
)

pytest.importorskip("llvmlite")


Size = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Nowhere(RunCheck):
    """The entry for rows must not be called."""

    def launch(self, job: Run, step: Step, code: Code) -> None:
        job.row = 8


def _for_rows(text: str) -> Code:
    code = compiled(text, level=2, passes="O1", simulated=True)
    assert isinstance(code, Code), code
    return code


def _both(text: str, name: str, arguments: Mapping[str | int, Buffer], grid: Size, group: Size) -> tuple[Ran, Ran]:
    """Run a kernel thread by thread as verify_kernels does, and by rows."""
    return _run(_devices(text, name), name, arguments, grid, group)


def _devices(text: str, name: str) -> tuple[Device, Device]:
    return device({name: compiled(text)}), device({name: _for_rows(text)})


def _run(
    devices: tuple[Device, Device], name: str, arguments: Mapping[str | int, Buffer], grid: Size, group: Size
) -> tuple[Ran, Ran]:
    step = Step(kernel=name, arguments=dict(arguments), grid=grid, threadgroup=group, free=True)
    program = Program(label="", steps=[step], checks=[])
    plain, rows = devices
    return plain.run(program), rows.run(program, (Rows(rows),))


def _line(size: int) -> Size:
    return (size, 1, 1)


def _moved(read: int, write: int) -> str:
    """out[i + write] = in[i + read] * 2"""
    body = f"""
  %j = zext i32 %i to i64
  %a = add i64 %j, {read}
  %p = getelementptr inbounds float, ptr addrspace(1) %in, i64 %a
  %v = load float, ptr addrspace(1) %p, align 4
  %r = fadd float %v, %v
  %b = add i64 %j, {write}
  %q = getelementptr inbounds float, ptr addrspace(1) %out, i64 %b
  store float %r, ptr addrspace(1) %q, align 4
  ret void"""
    arguments = [buffer(0, "out"), buffer(1, "in"), builtin(2, GRID)]
    return air("moved", "ptr addrspace(1) noalias %out, ptr addrspace(1) noalias %in, i32 %i", body, arguments)


@pytest.mark.parametrize(("read", "write"), [(0, n) for n in (0, 1, 2, 7, 8, 9, 40)] + [(n, 0) for n in (1, 3, 8, 33)])
@pytest.mark.parametrize("is_shared", [True, False])
def test_a_thread_reads_what_the_threads_before_it_wrote(read: int, write: int, is_shared: bool) -> None:
    data = pack_floats(*(1 + n / 512 for n in range(340)))
    out, x = inout_buffer(data), input_buffer(data)
    given: dict[str | int, Buffer] = {"out": out, "in": out if is_shared else x}

    plain, rows = _both(_moved(read, write), "moved", given, _line(300), _line(128))

    assert rows.troubles == plain.troubles == []
    assert rows.contents == plain.contents
    if is_shared and (read, write) == (0, 1):
        assert floats(rows, out)[:8] == tuple(2.0**n for n in range(8))


# Which words of a thread's are given to a kernel, and how its source may spell each.
_SPELT = [
    (kind, type_name)
    for kind, (_, components) in BUILTINS.items()
    for type_name in (("uint", "ulong") if components == 1 else ("uint3", "ushort2", "uint"))
]


_WORDS = {"uint": "i32", "ushort": "i16", "ulong": "i64"}


def _places(kind: str, type_name: str) -> str:
    """out[the thread's number in the grid][c] = component c of a built-in"""
    scalar, count = (type_name[:-1], int(type_name[-1])) if type_name[-1].isdigit() else (type_name, 1)
    word = _WORDS[scalar]
    lines = [
        *(f"  %g{c} = extractelement <3 x i32> %at, i32 {c}" for c in range(3)),
        *(f"  %s{c} = extractelement <3 x i32> %all, i32 {c}" for c in range(3)),
        "  %zr = mul i32 %g2, %s1\n  %zy = add i32 %zr, %g1\n  %zx = mul i32 %zy, %s0\n  %n = add i32 %zx, %g0",
        "  %n64 = zext i32 %n to i64\n  %to = getelementptr [4 x i64], ptr addrspace(1) %out, i64 %n64",
    ]
    for c in range(count):
        value = f"%c{c}"
        taken = f"extractelement <{count} x {word}> %b, i32 {c}" if count > 1 else f"freeze {word} %b"
        lines.append(f"  {value} = {taken}")
        if word != "i64":
            lines.append(f"  %x{c} = zext {word} {value} to i64")
            value = f"%x{c}"
        lines.append(f"  %q{c} = getelementptr i64, ptr addrspace(1) %to, i64 {c}")
        lines.append(f"  store i64 {value}, ptr addrspace(1) %q{c}, align 8")
    kinds = f"<{count} x {word}>" if count > 1 else word
    arguments = [buffer(0, "out", "long"), builtin(1, GRID, "uint3"), builtin(2, "threads_per_grid", "uint3")]
    arguments.append(builtin(3, kind, type_name))
    parameters = f"ptr addrspace(1) %out, <3 x i32> %at, <3 x i32> %all, {kinds} %b"
    return air("places", parameters, "\n".join([*lines, "  ret void"]), arguments)


_GRIDS = (((5, 7, 3), (4, 2, 2)), ((100, 3, 1), (64, 1, 1)), ((70, 1, 1), (70, 1, 1)))


def test_every_thread_of_a_row_is_given_its_own_place() -> None:
    different = 0
    for kind, type_name in _SPELT:
        devices = _devices(_places(kind, type_name), "places")
        for grid, group in _GRIDS:
            out = output_buffer(grid[0] * grid[1] * grid[2] * 32)
            plain, rows = _run(devices, "places", {"out": out}, grid, group)

            assert rows.troubles == plain.troubles == [], (kind, type_name, grid)
            assert rows.contents == plain.contents, (kind, type_name, grid)
            different += len(set(struct.iter_unpack("<4q", rows.contents[id(out)]))) > 1
    assert different >= 30  # else places that are never given would be equal too


def _counted() -> str:
    """total[0] += in[i]; last[i % 3] = i; and the same in threadgroup memory, where in[i] is positive"""
    body = """
  %j = zext i32 %i to i64
  %p = getelementptr float, ptr addrspace(1) %in, i64 %j
  %v = load float, ptr addrspace(1) %p, align 4
  %t = load float, ptr addrspace(1) %total, align 4
  %n = fadd float %t, %v
  store float %n, ptr addrspace(1) %total, align 4
  %m = urem i32 %i, 3
  %m64 = zext i32 %m to i64
  %q = getelementptr i32, ptr addrspace(1) %last, i64 %m64
  store i32 %i, ptr addrspace(1) %q, align 4
  %up = fcmp ogt float %v, 0.0
  br i1 %up, label %more, label %end
more:
  %w = load i32, ptr addrspace(3) @left, align 4
  store i32 %i, ptr addrspace(3) @left, align 4
  %l = call float @air.log.f32(float %v)
  %bits = bitcast float %l to i32
  %s = xor i32 %w, %bits
  %to = getelementptr i32, ptr addrspace(1) %out, i64 %j
  store i32 %s, ptr addrspace(1) %to, align 4
  br label %end
end:
  ret void"""
    around = "@left = internal addrspace(3) global i32 undef, align 4\ndeclare float @air.log.f32(float)"
    names = ("total", "in", "last", "out")
    arguments = [buffer(n, each) for n, each in enumerate(names)]
    parameters = ", ".join(f"ptr addrspace(1) %{each}" for each in names)
    return air("counted", f"{parameters}, i32 %i", body, [*arguments, builtin(4, GRID)], around=around)


def test_what_threads_leave_for_each_other_is_left_in_their_order() -> None:
    """Sums of floats, what was written last, and threadgroup memory, which is new in each threadgroup."""
    x = input_buffer(pack_floats(*((n % 7 - 2) / 3 for n in range(200))))
    total, last, out = inout_buffer(pack_floats(0.5)), output_buffer(12), inout_buffer(bytes(800))
    given: dict[str | int, Buffer] = {"total": total, "in": x, "last": last, "out": out}

    plain, rows = _both(_counted(), "counted", given, _line(200), _line(48))

    assert rows.troubles == plain.troubles == []
    assert rows.contents == plain.contents
    assert struct.unpack("<3I", rows.contents[id(last)]) == (198, 199, 197)


@pytest.mark.parametrize("elements", [1, 20, 31, 32, 45])
def test_the_thread_of_a_row_that_faults_is_named(elements: int) -> None:
    x, out = input_buffer(pack_floats(*range(elements))), output_buffer(400)

    plain, rows = _both(doubled(), "doubled", {"out": out, "in": x}, _line(70), _line(32))

    (trouble,) = rows.troubles
    assert trouble.thread == (elements, 0, 0)
    assert "0 bytes behind the" in trouble.text
    assert [(each.kind, each.text) for each in plain.troubles] == [(trouble.kind, trouble.text)]


def test_a_fault_that_its_row_has_undone_is_still_one_and_names_the_rows_first_thread() -> None:
    """in[i] says where to write, and is cleared before: when the row runs again, nothing is wrong any more."""
    body = """
  %j = zext i32 %i to i64
  %p = getelementptr i32, ptr addrspace(1) %in, i64 %j
  %v = load i32, ptr addrspace(1) %p, align 4
  store i32 0, ptr addrspace(1) %p, align 4
  %k = zext i32 %v to i64
  %q = getelementptr i32, ptr addrspace(1) %out, i64 %k
  store i32 1, ptr addrspace(1) %q, align 4
  ret void"""
    arguments = [buffer(0, "out", "int"), buffer(1, "in", "int"), builtin(2, GRID)]
    text = air("cleared", "ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %i", body, arguments)
    x, out = inout_buffer(struct.pack("<40I", *[0] * 37, 64, 0, 0)), output_buffer(256)

    plain, rows = _both(text, "cleared", {"out": out, "in": x}, _line(40), _line(32))

    assert [(each.kind, each.thread) for each in plain.troubles] == [("fault", (37, 0, 0))]
    assert [(each.kind, each.thread) for each in rows.troubles] == [("fault", (32, 0, 0))]


@pytest.mark.parametrize("order", [REVERSE, SHUFFLED])
def test_another_order_of_threads_is_no_row(order: int) -> None:
    one = device({"doubled": _for_rows(doubled())})
    x, out = input_buffer(pack_floats(*range(40))), output_buffer(160)

    ran = launch(one, "doubled", {"out": out, "in": x}, threads=40, group=32, checks=(Order(order), Nowhere()))

    assert ran.troubles == []
    assert floats(ran, out) == tuple(2.0 * n for n in range(40))


_LANE = """
  %l = call i32 @air.get_thread_index_in_simdgroup.i32()
  %j = zext i32 %i to i64
  %q = getelementptr i32, ptr addrspace(1) %out, i64 %j
  store i32 %l, ptr addrspace(1) %q, align 4
  ret void"""


def test_there_is_no_row_where_threads_wait_for_each_other_or_ask_the_runtime_which_they_are() -> None:
    asks = air(
        "asks",
        "ptr addrspace(1) %out, i32 %i",
        _LANE,
        [buffer(0, "out", "uint"), builtin(1, GRID)],
        around="declare i32 @air.get_thread_index_in_simdgroup.i32()",
    )
    for text, is_there in ((doubled(), True), (summed(), False), (asks, False)):
        assert (Image(_for_rows(text).objectcode).offset(ROW) is not None) == is_there
    plain = compiled(doubled())
    assert isinstance(plain, Code) and Image(plain.objectcode).offset(ROW) is None


pytest.importorskip("llvmlite")


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
