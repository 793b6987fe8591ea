"""What is read of a wheel: its libraries and kernels, their metadata, and what its host code asks of large tensors."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.inspection.limits import Malformed
from mps_build.kernels.program.dtypes import DTYPES
from mps_build.kernels.read.host_code import INLINE, HostCode, calls_of, read_host_code, read_installed_code
from mps_build.kernels.read.library import parse_library
from mps_build.kernels.read.metadata import parse_metadata
from mps_build.kernels.read.wheel import read_libraries
from small_kernels import GRID, air, builtin, metallib
from small_wheels import Image, macho

BITCODE = b"\xde\xc0\x17\x0b" + bytes(60)


def test_a_container_lists_its_kernels_and_a_short_one_names_what_is_cut_off() -> None:
    data = metallib({"one": BITCODE, "two": BITCODE})

    whole = parse_library("metal_basic", data)
    short = parse_library("metal_basic", data[:-10])

    assert [each.name for each in whole.functions] == ["one", "two"]
    assert whole.bitcode(whole.functions[1]) == BITCODE
    assert whole.functions[0].metal == (3, 1)
    assert short.functions[0].fault == ""
    assert "lie outside" in short.functions[1].fault


@pytest.mark.parametrize("size", [0, 40, 90, 100])
def test_a_container_that_ends_in_its_list_is_malformed(size: int) -> None:
    with pytest.raises(Malformed):
        parse_library("metal_basic", metallib({"one": BITCODE})[:size])


def test_a_wheel_without_a_metal_library_says_what_can_be_said(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "torch-2.4.1-cp311-none-macosx_11_0_arm64.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("torch/lib/libtorch_cpu.dylib", b"\xcf\xfa\xed\xfe" + bytes(28))
    with pytest.raises(UsageError, match="source text"):
        read_libraries(path)
    path.write_bytes(b"no wheel")
    with pytest.raises(UsageError, match="not a readable wheel"):
        read_libraries(path)


ROOT = Path(__file__).parents[3]


def _switched(codes: list[int]) -> str:
    cases = "\n".join(f"    i32 {code}, label %b" for code in codes)
    body = f"entry:\n  switch i32 %i, label %b [\n{cases}\n  ]\nb:\n  ret void"
    return air("cast", "i32 %i", body, [builtin(0, GRID)])


def test_a_casting_kernel_knows_the_types_of_its_own_switch() -> None:
    codes = sorted({dtype.code for dtype in DTYPES.values()})

    assert parse_metadata(_switched(codes[:9])).types == tuple(codes[:9])
    assert parse_metadata(_switched(codes[:2])).types == ()
    assert parse_metadata(_switched([*codes[:9], 1000])).types == ()


RET = 0xD65F03C0


NOP = 0xD503201F


INT_MAX_IN_X1 = 0x12B00001


ALL_IN_X1 = 0xD2C00021  # 2**32


PADS_IN_X1 = 0x52A40001  # 2**29


ONE_IN_X1 = 0x52800021


INT_MAX_IN_X8 = 0x12B00008


SHIFT_BY_31 = 0xD35FFD08


GUARD = b"__ZN2at6native20canUse32BitIndexMathERKNS_10TensorBaseEx"


def code_of(*functions: list[int]) -> tuple[bytes, list[int]]:
    """Return functions one behind the other, and where each begins."""
    begins: list[int] = []
    words: list[int] = []
    for each in functions:
        begins.append(4 * len(words))
        words += each
    return struct.pack(f"<{len(words)}I", *words), begins


def call(at: int, to: int, *, tail: bool = False) -> int:
    """Return the call (BL) or jump (B) from one byte to another."""
    return (0x05 if tail else 0x25) << 26 | ((to - at) // 4 & 0x3FFFFFF)


def said(names: list[bytes], code: bytes, begins: list[int], functions: list[str], guards: list[str]) -> HostCode:
    strings, entries = bytearray(b" \0"), b""
    for name, begin in zip(names, begins, strict=True):
        entries += struct.pack("<IBBHQ", len(strings), 0x0E, 1, 0, 0x1000 + begin)
        strings += name + b"\0"
    return calls_of(code, 0x1000, entries, bytes(strings), functions, guards)


def guards_found(
    names: list[bytes], code: bytes, begins: list[int], functions: list[str], guards: list[str]
) -> dict[str, object]:
    return dict(said(names, code, begins, functions, guards).calls)


def test_a_call_and_a_tail_call_of_a_guard_are_seen_and_another_call_is_not() -> None:
    code, begins = code_of([RET], [call(4, 0), RET], [call(12, 0, tail=True)], [call(16, 4), RET])
    names = [GUARD, b"__ZN2at6native3mpsL3oneE", b"__ZN2at3twoEv", b"__ZN2at5threeEv"]

    found = guards_found(names, code, begins, ["one", "two", "three", "four"], ["canUse32BitIndexMath"])

    assert found == {"one": {"canUse32BitIndexMath": 0}, "two": {"canUse32BitIndexMath": 0}, "three": {}}


def test_blocks_instances_and_anonymous_namespaces_are_of_their_function_and_longer_names_are_not() -> None:
    code, begins = code_of([RET], [RET], [call(8, 0), RET], [call(16, 0), RET])
    names = [
        GUARD,
        b"__ZN2at6native12_GLOBAL__N_14sortEv",
        b"____ZN2at6native12_GLOBAL__N_14sortEv_block_invoke",
        b"__ZN2at6native14sort_out_largeEv",
    ]

    assert guards_found(names, code, begins, ["sort"], ["canUse32BitIndexMath"]) == {
        "sort": {"canUse32BitIndexMath": 0}
    }


@pytest.mark.parametrize(
    ("word", "number"), [(INT_MAX_IN_X1, 2**31 - 1), (ALL_IN_X1, 2**32), (PADS_IN_X1, 2**29), (NOP, 0)]
)
def test_the_number_that_a_guard_is_given_is_read(word: int, number: int) -> None:
    code, begins = code_of([RET], [word, NOP, call(12, 0), RET])

    found = guards_found([GUARD, b"__Z3onev"], code, begins, ["one"], ["canUse32BitIndexMath"])

    assert found == {"one": {"canUse32BitIndexMath": number}}


@pytest.mark.parametrize(("word", "is_seen"), [(INT_MAX_IN_X8, True), (SHIFT_BY_31, True), (INT_MAX_IN_X1, False)])
def test_a_comparison_with_2_31_of_its_own_is_reported_and_a_guards_argument_is_none(word: int, is_seen: bool) -> None:
    code, begins = code_of([word, RET])

    assert (INLINE in guards_found([b"__Z3onev"], code, begins, ["one"], [])["one"]) is is_seen  # type: ignore[operator]


def test_a_guard_with_other_arguments_is_another_one() -> None:
    code, begins = code_of([RET], [call(4, 0), RET])
    names = [b"__ZN2at10isTooLargeERKNS_6TensorEbb", b"__Z3onev"]

    found = guards_found(names, code, begins, ["one"], ["isTooLarge ERKNS_6TensorEb", "isTooLarge ERKNS_6TensorEbb"])

    assert found == {"one": {"isTooLarge ERKNS_6TensorEbb": 0}}


def test_a_cold_part_that_the_linker_shares_is_no_guard() -> None:
    code, begins = code_of([RET], [call(4, 0), RET])

    assert guards_found([GUARD + b".cold.1", b"__Z3onev"], code, begins, ["one"], ["canUse32BitIndexMath"]) == {
        "one": {}
    }


def test_what_a_caller_asks_is_distinguished() -> None:
    code, begins = code_of([RET], [RET], [INT_MAX_IN_X1, call(12, 0), call(16, 4), RET], [call(24, 4), RET])
    names = [GUARD, b"__Z5innerv", b"__Z5outerv", b"__Z6othersv"]

    found = said(names, code, begins, ["inner", "outer"], ["canUse32BitIndexMath"])

    assert found.calls == {"inner": {}, "outer": {"canUse32BitIndexMath": 2**31 - 1}}
    assert found.callers == {"inner": frozenset({"canUse32BitIndexMath"})}


def library(text: str = "not supported") -> bytes:
    code, begins = code_of([RET], [INT_MAX_IN_X1, call(8, 0), RET])
    functions = dict(zip([GUARD, b"__ZN2at6native3oneEv"], begins, strict=True))
    return macho(Image(sections={"__text": code, "__cstring": text.encode() + b"\0"}, functions=functions))


def test_a_wheels_library_is_searched(tmp_path: Path) -> None:
    wheel = tmp_path / "torch.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("torch/lib/libtorch_cpu.dylib", library())

    found = read_host_code(wheel, ["one"], ["canUse32BitIndexMath"], ["not supported", "other"])

    assert found == HostCode(calls={"one": {"canUse32BitIndexMath": 2**31 - 1}}, texts=frozenset({"not supported"}))


def test_an_installed_library_is_searched(tmp_path: Path) -> None:
    (tmp_path / "torch" / "lib").mkdir(parents=True)
    (tmp_path / "torch" / "lib" / "libtorch_cpu.dylib").write_bytes(library())

    assert read_installed_code(tmp_path, ["one"], ["canUse32BitIndexMath"], []).calls["one"]


def test_a_wheel_without_the_library_says_so_and_a_cut_off_one_is_an_error(tmp_path: Path) -> None:
    empty, short = tmp_path / "empty.whl", tmp_path / "short.whl"
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("torch/version.py", "")
    with zipfile.ZipFile(short, "w") as archive:
        archive.writestr("torch/lib/libtorch_cpu.dylib", library()[:5000])

    assert read_host_code(empty, [], [], []).reason
    with pytest.raises(UsageError, match="cut off"):
        read_host_code(short, ["one"], [], [])


@pytest.mark.parametrize("size", [0, 7, 15, 17])
def test_a_symbol_table_that_is_cut_off_or_points_outside_names_nothing(size: int) -> None:
    entries = struct.pack("<IBBHQ", 1 << 30, 0x0E, 1, 0, 1 << 60) * 2

    assert calls_of(b"\0" * 8, 0, entries[:size], b" \0__Z3onev\0", ["one"], []) == HostCode(calls={})
