"""Small kernels in AIR, written for the tests, as LLVM IR with the metadata that Metal's compiler writes."""

from __future__ import annotations

import functools
import struct
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mps_build.kernels.code import compiler
from mps_build.kernels.code.compiled import ENTRY, ROW, Code, Refused
from mps_build.kernels.code.kernel import compile_kernel
from mps_build.kernels.families.shared.contracts import Contract, load_contracts
from mps_build.kernels.families.shared.large import Ask, Rule
from mps_build.kernels.machine.build import build_runtime
from mps_build.kernels.machine.checks import RunCheck
from mps_build.kernels.machine.device import Device
from mps_build.kernels.machine.link import Image
from mps_build.kernels.machine.runtime import Run, load_runtime
from mps_build.kernels.machine.troubles import Ran
from mps_build.kernels.program.launch import Buffer, Program, Step
from mps_build.kernels.read.host_code import HostCode

_SIZES = {"float": 4, "uint": 4, "int": 4, "half": 2, "char": 1, "long": 8}


def buffer(number: int, name: str, kind: str = "float", *, access: str = "read_write", space: int = 1) -> str:
    """Return the metadata of a pointer argument."""
    return (
        f'!{{i32 {number}, !"air.buffer", !"air.location_index", i32 {number}, i32 1, !"air.{access}", '
        f'!"air.address_space", i32 {space}, !"air.arg_type_size", i32 {_SIZES[kind]}, !"air.arg_type_align_size", '
        f'i32 {_SIZES[kind]}, !"air.arg_type_name", !"{kind}", !"air.arg_name", !"{name}"}}'
    )


def builtin(number: int, kind: str, type_name: str = "uint") -> str:
    """Return the metadata of a built-in argument."""
    return f'!{{i32 {number}, !"air.{kind}", !"air.arg_type_name", !"{type_name}", !"air.arg_name", !"b{number}"}}'


def air(name: str, parameters: str, body: str, arguments: Sequence[str], *, around: str = "") -> str:
    """Return a module with one kernel."""
    numbers = [f"!{10 + n}" for n in range(len(arguments))]
    nodes = "\n".join(f"{number} = {node}" for number, node in zip(numbers, arguments, strict=True))
    return (
        'target datalayout = "e-p:64:64:64-i64:64:64-f32:32:32"\ntarget triple = "air64_v26-apple-macosx14.0.0"\n'
        f"{around}\ndefine void @{name}({parameters}) {{\n{body}\n}}\n"
        f"!air.kernel = !{{!0}}\n!0 = !{{ptr @{name}, !1, !2}}\n!1 = !{{}}\n!2 = !{{{', '.join(numbers)}}}\n{nodes}\n"
    )


def bitcode(text: str) -> bytes:
    """Return a module's bitcode."""
    import llvmlite.binding as llvm

    compiler.host_target()
    return bytes(llvm.parse_assembly(text).as_bitcode())


def compiled(text: str, **options: Any) -> Code | Refused:
    return compile_kernel(bitcode(text), **options)


@functools.cache
def _runtime() -> Any:
    """Return the C runtime: one for all tests, because it takes half a second to compile."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "runtime.so")
        path.write_bytes(build_runtime(Path(folder)))
        return load_runtime(path)


def device(codes: Mapping[str, Code | Refused]) -> Device:
    """Return a device with these kernels."""
    return Device(_runtime(), {name: code for name, code in codes.items() if isinstance(code, Code)})


def launch(
    one: Device,
    kernel: str,
    arguments: Mapping[str | int, Any],
    *,
    threads: int,
    group: int,
    checks: Sequence[RunCheck] = (),
    free: bool = True,
) -> Ran:
    """Run one step and return what it left."""
    step = Step(kernel=kernel, arguments=arguments, grid=(threads, 1, 1), threadgroup=(group, 1, 1), free=free)
    return one.run(Program(label="", steps=[step], checks=[]), checks)


def floats(ran: Ran, which: Buffer) -> tuple[float, ...]:
    data = ran.contents[id(which)]
    return struct.unpack(f"<{len(data) // 4}f", data)


def pack_floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


GRID, LANE, GROUP_ID = "thread_position_in_grid", "thread_position_in_threadgroup", "threadgroup_position_in_grid"


def doubled(operation: str = "fadd float %v, %v", *, shift: int = 0) -> str:
    """out[i + shift] = in[i] + in[i]"""
    body = f"""
  %j = zext i32 %i to i64
  %p = getelementptr inbounds float, ptr addrspace(1) %in, i64 %j
  %v = load float, ptr addrspace(1) %p, align 4
  %r = {operation}
  %k = add i64 %j, {shift}
  %q = getelementptr inbounds float, ptr addrspace(1) %out, i64 %k
  store float %r, ptr addrspace(1) %q, align 4
  ret void"""
    arguments = [buffer(0, "out"), buffer(1, "in", access="read"), builtin(2, GRID)]
    return air("doubled", "ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %i", body, arguments)


def summed(*, barrier: bool = True) -> str:
    """One threadgroup sums in[group * threads ...] in two levels: each simdgroup, then the first over their sums."""
    wait = "  call void @air.wg.barrier(i32 2, i32 1)" if barrier else ""
    body = f"""
  %base = mul i32 %g, %n
  %at = add i32 %base, %t
  %j = zext i32 %at to i64
  %p = getelementptr float, ptr addrspace(1) %in, i64 %j
  %v = load float, ptr addrspace(1) %p, align 4
  %s = call float @air.simd_sum.f32(float %v)
  %lane = and i32 %t, 31
  %first = icmp eq i32 %lane, 0
  br i1 %first, label %put, label %wait
put:
  %sg = lshr i32 %t, 5
  %sgx = zext i32 %sg to i64
  %slot = getelementptr [32 x float], ptr addrspace(3) @shared, i64 0, i64 %sgx
  store float %s, ptr addrspace(3) %slot, align 4
  br label %wait
wait:
{wait}
  %up = add i32 %n, 31
  %count = lshr i32 %up, 5
  %mine = icmp ult i32 %t, %count
  br i1 %mine, label %fold, label %end
fold:
  %tx = zext i32 %t to i64
  %from = getelementptr [32 x float], ptr addrspace(3) @shared, i64 0, i64 %tx
  %w = load float, ptr addrspace(3) %from, align 4
  %all = call float @air.simd_sum.f32(float %w)
  %zero = icmp eq i32 %t, 0
  br i1 %zero, label %write, label %end
write:
  %gx = zext i32 %g to i64
  %q = getelementptr float, ptr addrspace(1) %out, i64 %gx
  store float %all, ptr addrspace(1) %q, align 4
  br label %end
end:
  ret void"""
    around = (
        "@shared = internal addrspace(3) global [32 x float] undef, align 4\n"
        "declare float @air.simd_sum.f32(float) convergent\ndeclare void @air.wg.barrier(i32, i32) convergent"
    )
    arguments = [buffer(0, "out"), buffer(1, "in", access="read"), builtin(2, LANE)]
    arguments += [builtin(3, GROUP_ID), builtin(4, "threads_per_threadgroup")]
    parameters = "ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %t, i32 %g, i32 %n"
    return air("summed", parameters, body, arguments, around=around)


def metallib(modules: Mapping[str, bytes]) -> bytes:
    """Return a container as Metal's linker writes it: header, list of functions, bitcode."""
    records, offset = [], 0
    for name, code in modules.items():
        tags = b"NAME" + struct.pack("<H", len(name) + 1) + name.encode() + b"\0"
        tags += b"TYPE" + struct.pack("<HB", 1, 2)
        tags += b"MDSZ" + struct.pack("<HQ", 8, len(code)) + b"OFFT" + struct.pack("<H3Q", 24, 0, 0, offset)
        tags += b"VERS" + struct.pack("<H4H", 8, 2, 6, 3, 1) + b"ENDT"
        records.append(struct.pack("<I", len(tags) + 4) + tags)
        offset += len(code)
    listed = b"".join(records)
    whole = b"".join(modules.values())
    begin = 88 + 4 + len(listed)
    table = (begin + len(whole), 88, len(listed), begin, 0, begin, 0, begin, len(whole))
    head = struct.pack("<4s3H2B2H9Q", b"MTLB", 0x8001, 2, 7, 0, 0x81, 14, 0, *table)
    return head + struct.pack("<I", len(records)) + listed + whole


def wheel(folder: Path, kernels: Mapping[str, bytes] | None = None, **libraries: Mapping[str, bytes]) -> Path:
    """Write a wheel whose metallibs (metal_basic, or those that are named) hold these kernels' bitcode."""
    path = folder / "torch-9.9.0-cp312-cp312-macosx_14_0_arm64.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, members in ({"metal_basic": kernels} if kernels is not None else libraries).items():
            archive.writestr(f"torch/lib/{name}.metallib", metallib(members))
        archive.writestr("torch-9.9.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 9.9.0\n")
    return path


@dataclass(frozen=True, slots=True)
class Rows(RunCheck):
    """Threads are run by the kernel's entry for rows, where it has one; else it must be cooperative."""

    device: Device

    def launch(self, job: Run, step: Step, code: Code) -> None:
        image = Image(code.objectcode)
        entry, row = image.offset(ENTRY), image.offset(ROW)
        assert entry is not None and (row is None) == code.is_cooperative
        if row is not None:
            job.row = self.device.entry(code) - entry + row


UNGUARDED = HostCode(calls={"launch": {}})
CUT = HostCode(calls={"launch": {"with_32bit_indexing": 0}})
RULE = Rule(
    contracts=("*",),
    host=("launch",),
    asks=(Ask(guard="with_32bit_indexing", then="cuts"),),
    call="torch.good({input})",
    source="this test",
)


def changed(**fields: object) -> Rule:
    """Return the rule with other fields."""
    return RULE.model_copy(update=fields)


def contract() -> Contract:
    return replace(load_contracts()[0], folder="unary", family="own")
