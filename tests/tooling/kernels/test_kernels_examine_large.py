"""--large: 32-bit arithmetic that reaches an address, and what launches that torch makes do past 2**31 and 2**32."""

from __future__ import annotations

import resource
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

from mps_build.kernels.code.addresses import address_digest, inlined
from mps_build.kernels.code.compiled import Code
from mps_build.kernels.code.kernel import addressing_of
from mps_build.kernels.execution import examine_large as module
from mps_build.kernels.execution import large_host, moves, ways
from mps_build.kernels.execution.closed import Addressing
from mps_build.kernels.execution.examine import Verdict
from mps_build.kernels.execution.examine_large import LargeRuns
from mps_build.kernels.families.shared.contracts import Case, Kernel, match_kernel
from mps_build.kernels.families.shared.large import Ask, Rule
from mps_build.kernels.judge.references import load_references
from mps_build.kernels.machine.shift import Shift
from mps_build.kernels.program.launch import Program, Step, Value, inout_buffer, input_buffer, output_buffer
from mps_build.kernels.program.values import Values
from mps_build.kernels.read.host_code import HostCode
from small_kernels import CUT, GRID, RULE, UNGUARDED, air, bitcode, buffer, builtin, changed, compiled, contract, device

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kernels are executed on Linux")


def text_of(name: str, index: str, *, numel: bool = False, operation: str = "fadd float %x, %x") -> str:
    """Return a kernel that doubles; `index` makes %j (i64), the byte of the thread's element, of %i."""
    arguments = [buffer(0, "output"), buffer(1, "input", access="read")]
    parameters = "ptr addrspace(1) %out, ptr addrspace(1) %in, "
    if numel:
        arguments.append(buffer(2, "numel", "uint", access="read", space=2))
        parameters += "ptr addrspace(2) %n, "
    body = f"""
{index}
  %p = getelementptr i8, ptr addrspace(1) %in, i64 %j
  %x = load float, ptr addrspace(1) %p, align 4
  %y = {operation}
  %q = getelementptr i8, ptr addrspace(1) %out, i64 %j
  store float %y, ptr addrspace(1) %q, align 4
  ret void"""
    return air(name, f"{parameters}i32 %i", body, [*arguments, builtin(len(arguments), GRID)])


WIDE = "  %w = zext i32 %i to i64\n  %j = shl i64 %w, 2"
NARROW = "  %w = shl i32 %i, 2\n  %j = zext i32 %w to i64"
SIGNED = "  %w = shl i32 %i, 2\n  %j = sext i32 %w to i64"
CALLED = "  %w = call i32 @helper(i32 %i)\n  %j = zext i32 %w to i64"
HELPER = "define internal i32 @helper(i32 %v) noinline {\n  %r = mul i32 %v, 4\n  ret i32 %r\n}"


@pytest.fixture(autouse=True)
def rule(monkeypatch: pytest.MonkeyPatch) -> list[Rule | None]:
    """The rule that speaks of every kernel; a test may put another in its place."""
    found: list[Rule | None] = [RULE]
    monkeypatch.setattr(large_host, "rule_of", lambda *_: found[0])
    return found


def verdict_of(index: str, host: HostCode = UNGUARDED) -> Verdict:
    """Return what --large says of a form of one element a thread."""
    name = "good_dense_scalar_float_float"
    texts = {name: text_of(name, index), "good_dense_float_float": text_of("good_dense_float_float", WIDE, numel=True)}
    codes = {key: compiled(text) for key, text in texts.items()}
    views = {}
    for key, code in codes.items():
        assert isinstance(code, Code)
        views[key] = match_kernel(key, code.metadata) or Kernel(name=key, metadata=code.metadata)
    case = Case(values=Values(0, name), kernels=views, references=load_references())
    narrow = addressing_of(bitcode(texts[name])).narrow
    return module.examine_large(views[name], case, device(codes), narrow, host)


def test_only_arithmetic_of_32_bits_that_reaches_an_address_is_a_candidate() -> None:
    assert addressing_of(bitcode(text_of("k", WIDE))).narrow == []
    assert any("shl i32" in each for each in addressing_of(bitcode(text_of("k", NARROW))).narrow)
    unused = f"{WIDE}\n  %u = mul i32 %i, 12345\n  %v = uitofp i32 %u to float"
    assert addressing_of(bitcode(text_of("k", unused))).narrow == []


def test_it_is_seen_in_a_helper_too() -> None:
    arguments = "define void @k("
    text = text_of("k", CALLED).replace(arguments, f"{HELPER}\n{arguments}")

    assert addressing_of(bitcode(text)).narrow != []


def test_wide_arithmetic_is_cleared_without_a_run() -> None:
    assert verdict_of(WIDE).outcome == "passed"


@pytest.mark.parametrize(
    ("index", "outcome", "limit", "right"),
    [
        (NARROW, "wrong", "across 2**32 bytes", "below 2**32 bytes"),
        (SIGNED, "out_of_bounds", "across 2**31 bytes", "below 2**31 bytes"),
    ],
)
def test_a_host_without_its_guard_makes_an_index_that_wraps_a_finding_with_its_call(
    index: str, outcome: str, limit: str, right: str
) -> None:
    found = verdict_of(index)

    assert (found.outcome, limit in found.reason.partition("; not ")[2]) == (outcome, True)
    assert right in found.reason.partition("; not ")[0]
    assert found.inputs["call"].startswith("torch.good(torch.empty((")
    assert "dtype=torch.float32, device='mps'" in found.inputs["call"]


@pytest.mark.parametrize("index", [NARROW, SIGNED])
def test_a_host_that_cuts_makes_it_none(index: str) -> None:
    found = verdict_of(index, CUT)

    assert found.outcome == "passed"
    assert "torch launches it in parts (with_32bit_indexing)" in found.reason
    assert "below 2**31 bytes" in found.reason
    assert "across" not in found.reason


@pytest.mark.parametrize("asks", [(), RULE.asks])
def test_the_guard_counts_only_if_the_data_states_it_and_the_wheel_asks_it(
    rule: list[Rule | None], asks: tuple[Ask, ...]
) -> None:
    rule[0] = changed(asks=asks)

    assert verdict_of(SIGNED, CUT).outcome == ("passed" if asks else "out_of_bounds")


def test_where_no_rule_speaks_a_failure_stays_a_candidate(rule: list[Rule | None]) -> None:
    rule[0] = None
    found = verdict_of(SIGNED)

    assert (found.outcome, found.where["rank"]) == ("overflow_candidate", module.RANKS[0])
    assert "call" not in found.inputs


def test_where_the_host_may_choose_another_form_a_failure_stays_a_candidate(rule: list[Rule | None]) -> None:
    rule[0] = changed(chooses="the length decides")

    assert verdict_of(SIGNED).outcome == "overflow_candidate"


def test_where_the_wheel_does_not_name_the_host_function_a_failure_stays_a_candidate() -> None:
    found = verdict_of(SIGNED, HostCode(calls={}))

    assert found.outcome == "overflow_candidate"
    assert "does not name launch" in found.reason


def test_a_comparison_that_no_rule_states_leaves_it_open(rule: list[Rule | None]) -> None:
    host = HostCode(calls={"launch": {"2**31": 0}})
    first = verdict_of(SIGNED, host).outcome
    rule[0] = changed(compares="the number of threads, which it launches in parts")

    assert (first, verdict_of(SIGNED, host).outcome) == ("overflow_candidate", "out_of_bounds")


def test_gigabytes_of_tensor_take_little_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    verdict_of(NARROW)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_a_case_that_cannot_be_made_large_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small move agrees by chance, and a large one below every limit does not: nothing was shown."""
    monkeypatch.setattr(module, "_targets", lambda *_: [(1 << 20, "below 2**31 bytes of output")])
    odd = "  %h = lshr i32 %i, 19\n  %k = mul i32 %h, 64\n  %s = shl i32 %i, 2\n"
    odd += "  %w = add i32 %s, %k\n  %j = zext i32 %w to i64"

    found = verdict_of(odd)

    assert found.outcome == "overflow_candidate"
    assert "become large only up to a size" in found.reason


def test_a_strided_form_is_moved_by_its_outer_dimension() -> None:
    """Rows of 3 among 5 lengths: the row's number comes from the sizes, which grow with it."""
    assert ways.units_of(15) == [1, 3, 5]
    assert ways.strides_of(60, 180, 360, 2) == [30]


# Two further ways: an index out of a buffer, and a stride out of a constant.

ROWS, ROW = 5, 4
FLOATS = struct.pack(f"<{ROWS * ROW}f", *range(ROWS * ROW))


def gathered(wide: bool) -> str:
    """Return a kernel: out[i] = in[index[i / 4] * 4 + i % 4]; the product is of 32 bits unless `wide`."""
    arguments = [buffer(0, "output"), buffer(1, "input", access="read"), buffer(2, "index", "int", access="read")]
    product = (
        "  %u = zext i32 %v to i64\n  %p = shl i64 %u, 2\n  %m = zext i32 %c to i64\n  %j = add i64 %p, %m"
        if wide
        else "  %p = shl i32 %v, 2\n  %a = add i32 %p, %c\n  %j = sext i32 %a to i64"
    )
    body = f"""
  %r = lshr i32 %i, 2
  %c = and i32 %i, 3
  %q = zext i32 %r to i64
  %x = getelementptr i32, ptr addrspace(1) %index, i64 %q
  %v = load i32, ptr addrspace(1) %x, align 4
{product}
  %f = getelementptr float, ptr addrspace(1) %in, i64 %j
  %y = load float, ptr addrspace(1) %f, align 4
  %k = zext i32 %i to i64
  %o = getelementptr float, ptr addrspace(1) %out, i64 %k
  store float %y, ptr addrspace(1) %o, align 4
  ret void"""
    parameters = "ptr addrspace(1) %out, ptr addrspace(1) %in, ptr addrspace(1) %index, i32 %i"
    return air("gathered", parameters, body, [*arguments, builtin(3, GRID)])


def transposed(wide: bool) -> str:
    """Return a kernel: in[(i / 4) * stride + i % 4] doubled in place; the product is of 32 bits unless `wide`."""
    arguments = [buffer(0, "data"), buffer(1, "stride", "uint", access="read", space=2)]
    product = (
        "  %u = zext i32 %r to i64\n  %t = zext i32 %s to i64\n  %p = mul i64 %u, %t\n"
        "  %m = zext i32 %c to i64\n  %j = add i64 %p, %m"
        if wide
        else "  %p = mul i32 %r, %s\n  %a = add i32 %p, %c\n  %j = zext i32 %a to i64"
    )
    body = f"""
  %r = lshr i32 %i, 2
  %c = and i32 %i, 3
  %s = load i32, ptr addrspace(2) %n, align 4
{product}
  %f = getelementptr float, ptr addrspace(1) %data, i64 %j
  %y = load float, ptr addrspace(1) %f, align 4
  %z = fadd float %y, %y
  store float %z, ptr addrspace(1) %f, align 4
  ret void"""
    parameters = "ptr addrspace(1) %data, ptr addrspace(2) %n, i32 %i"
    return air("transposed", parameters, body, [*arguments, builtin(2, GRID)])


def gather_cases(kernel: Kernel, _: Case) -> Iterator[Program]:
    arguments: dict[str | int, Value] = {
        "output": output_buffer(3 * ROW * 4),
        "input": input_buffer(FLOATS),
        "index": input_buffer(struct.pack("<3i", 4, 0, 2)),
    }
    step = Step(kernel=kernel.name, arguments=arguments, grid=(3 * ROW, 1, 1), threadgroup=(ROW, 1, 1))
    yield Program(label="3 of 5 rows", steps=[step], checks=[])


def stride_cases(kernel: Kernel, _: Case) -> Iterator[Program]:
    arguments: dict[str | int, Value] = {"data": inout_buffer(FLOATS), "stride": struct.pack("<I", ROW)}
    step = Step(kernel=kernel.name, arguments=arguments, grid=(ROWS * ROW, 1, 1), threadgroup=(ROW, 1, 1))
    yield Program(label="5 rows of 4", steps=[step], checks=[])


def tried(
    monkeypatch: pytest.MonkeyPatch, text: str, cases: object, tested_ways: Sequence[str]
) -> tuple[Verdict, list[tuple[int, str]]]:
    """Return what --large says of a kernel of the test's own contract, tested in these ways alone, and which worked."""
    monkeypatch.setattr(moves, "find_binder", lambda _: cases)
    monkeypatch.setattr(moves, "WAYS", tuple(tested_ways))
    code = compiled(text)
    assert isinstance(code, Code)
    name = code.metadata.function
    kernel = Kernel(name=name, metadata=code.metadata, contract=contract())
    case = Case(values=Values(0, name), kernels={}, references={})
    known = moves.Ways()
    narrow = ["mul i32 %a, %b"]  # what is tried is tested of the wide kernels too
    verdict = module.examine_large(kernel, case, device({name: code}), narrow, UNGUARDED, known)
    return verdict, known.found.get("own", [])


@pytest.mark.parametrize(("wide", "outcome"), [(True, "passed"), (False, "out_of_bounds")])
def test_an_index_out_of_a_buffer_is_raised(monkeypatch: pytest.MonkeyPatch, wide: bool, outcome: str) -> None:
    found, _ = tried(monkeypatch, gathered(wide), gather_cases, ["raised"])

    assert found.outcome == outcome
    assert "of input" in found.reason


@pytest.mark.parametrize(("wide", "outcome"), [(True, "passed"), (False, "wrong")])
def test_a_stride_out_of_a_constant_is_stretched(
    monkeypatch: pytest.MonkeyPatch, rule: list[Rule | None], wide: bool, outcome: str
) -> None:
    rule[0] = changed(views=True)
    found, _ = tried(monkeypatch, transposed(wide), stride_cases, ["stretched"])

    assert found.outcome == outcome


def test_a_failure_for_views_alone_is_no_finding_where_the_host_may_copy_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = tried(monkeypatch, transposed(wide=False), stride_cases, ["stretched"])

    assert found.outcome == "overflow_candidate"
    assert "may copy" in found.reason


def test_what_takes_too_long_to_run_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that loops as often as its stride says: right, and not waited for."""
    loop = transposed(wide=True).replace(
        "  %f = getelementptr",
        "  br label %again\nagain:\n  %n1 = phi i32 [ 0, %0 ], [ %n2, %again ]\n  %n2 = add i32 %n1, 1\n"
        "  store volatile i32 %n2, ptr addrspace(1) %data, align 4\n"
        "  %more = icmp ult i32 %n2, %s\n  br i1 %more, label %again, label %on\non:\n  %f = getelementptr",
    )
    monkeypatch.setattr(module, "_targets", lambda *_: [(1, "one"), (1 << 25, "below 2**31 elements of data")])
    found, _ = tried(monkeypatch, loop, stride_cases, ["stretched"])

    assert found.outcome in ("passed", "overflow_candidate")


# Kernels that make their addresses alike.


def digest(index: str, operation: str) -> str:
    return addressing_of(bitcode(text_of("k", index, operation=operation))).digest


def test_kernels_that_compute_something_else_at_the_same_places_have_one_digest() -> None:
    assert digest(NARROW, "fadd float %x, %x") == digest(NARROW, "fmul float %x, 3.0")
    assert digest(NARROW, "fadd float %x, %x") != digest(SIGNED, "fadd float %x, %x")


def test_a_branch_on_what_was_computed_makes_another_digest() -> None:
    code = """
define void @k(ptr addrspace(1) %p, i32 %i) {
  %a = load float, ptr addrspace(1) %p, align 4
  %c = fcmp olt float %a, CONSTANT
  br i1 %c, label %1, label %2
1:
  store float 1.0, ptr addrspace(1) %p, align 4
  br label %2
2:
  ret void
}
"""
    one, two = (address_digest(code.replace("CONSTANT", each)) for each in ("1.0", "2.0"))

    assert one != two


def test_a_verdict_is_shared_by_kernels_with_equal_addresses_and_a_finding_is_not(tmp_path: Path) -> None:
    name = "good_dense_scalar_float_float"
    code = compiled(text_of(name, SIGNED))
    assert isinstance(code, Code)
    kernel = match_kernel(name, code.metadata)
    assert kernel is not None
    read = addressing_of(bitcode(text_of(name, SIGNED)))
    found = Addressing(metadata=read.metadata, body=read.body, narrow=read.narrow, digest=read.digest)
    dense = compiled(text_of("good_dense_float_float", WIDE, numel=True))
    assert isinstance(dense, Code)
    codes = {name: code, "good_dense_float_float": dense}
    views = {
        key: match_kernel(key, each.metadata) or Kernel(name=key, metadata=each.metadata) for key, each in codes.items()
    }
    case = Case(values=Values(0, name), kernels=views, references=load_references())

    for host, is_shared in ((CUT, True), (UNGUARDED, False)):
        runs = LargeRuns(host=host, folder=tmp_path / f"alike-{is_shared}")
        runs.examined(kernel, case, device(codes), found, codes)
        settled = runs.settled(replace(kernel, name="fine_dense_scalar_float_float"), found)
        assert (settled is not None) is is_shared
        assert runs.settled(kernel, found.model_copy(update={"digest": "another"})) is None


def test_pieces_of_a_stretched_buffer_lie_apart_and_its_size_is_where_the_last_ends() -> None:
    shift = Shift(axis=0, units=3, bytes={"x": 8}, stretched={"x": (4, 16)})

    last = shift.pieces("x", 10)[-1]
    assert last[2] + last[1] == 10 + 3 * shift.growth("x", 10)


def test_inlined_code_is_what_is_read() -> None:
    body = "  %q = getelementptr i8, ptr %p, i64 %i\n  store i8 0, ptr %q\n  ret void"

    assert "getelementptr" in inlined(f"define void @k(ptr %p, i64 %i) {{\n{body}\n}}\n")
