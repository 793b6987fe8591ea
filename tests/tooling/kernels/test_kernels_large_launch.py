"""--large: which launches torch makes of a kernel, as a rule's condition says, and what follows where it says never."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator, Mapping

import pytest

pytest.importorskip("llvmlite")

from mps_build.kernels.code.compiled import Code
from mps_build.kernels.execution import examine_large as module
from mps_build.kernels.execution import large_host, moves, ways
from mps_build.kernels.execution.examine import Verdict
from mps_build.kernels.families.shared.contracts import Case, Kernel, load_contracts
from mps_build.kernels.families.shared.large import Ask, Rule, load_rules, names_in
from mps_build.kernels.machine.shift import Shift, outputs_of
from mps_build.kernels.machine.sparse import run_shifted
from mps_build.kernels.program.launch import (
    Addresses,
    Buffer,
    Program,
    Step,
    Value,
    every,
    inout_buffer,
    input_buffer,
    scratch_buffer,
)
from mps_build.kernels.program.values import Values
from mps_build.kernels.read.host_code import HostCode
from small_kernels import CUT, GRID, UNGUARDED, air, buffer, builtin, changed, compiled, contract, device

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kernels are executed on Linux")

ROWS, ROW = 5, 4
FLOATS = struct.pack(f"<{ROWS * ROW}f", *range(ROWS * ROW))
# data[(i / 4) * length + i % 4] is doubled; the product is of 32 bits, so it wraps from 2**31 elements on.
BODY = """
  %r = lshr i32 %i, 2
  %c = and i32 %i, 3
  %s = load i32, ptr addrspace(2) %n, align 4
  %p = mul i32 %r, %s
  %a = add i32 %p, %c
  %j = sext i32 %a to i64
  %f = getelementptr float, ptr addrspace(1) %data, i64 %j
  %y = load float, ptr addrspace(1) %f, align 4
  %z = fadd float %y, %y
  store float %z, ptr addrspace(1) %f, align 4
  ret void"""


def rows_cases(kernel: Kernel, _: Case) -> Iterator[Program]:
    arguments: dict[str | int, Value] = {"data": inout_buffer(FLOATS), "length": struct.pack("<I", ROW)}
    size = (ROWS * ROW, 1, 1)
    step = Step(kernel=kernel.name, arguments=arguments, grid=size, threadgroup=(ROW, 1, 1), free=False)
    yield Program(label="5 rows of 4", steps=[step], checks=[])


def verdict_of(monkeypatch: pytest.MonkeyPatch, rule: Rule, host: HostCode = UNGUARDED, **found: str) -> Verdict:
    """Return what --large says of the kernel under a rule."""
    monkeypatch.setattr(moves, "find_binder", lambda _: rows_cases)
    monkeypatch.setattr(large_host, "rule_of", lambda *_: rule)
    arguments = [buffer(0, "data"), buffer(1, "length", "uint", access="read", space=2), builtin(2, GRID)]
    code = compiled(air("rows", "ptr addrspace(1) %data, ptr addrspace(2) %n, i32 %i", BODY, arguments))
    assert isinstance(code, Code)
    kernel = Kernel(name="rows", metadata=code.metadata, contract=contract(), parts=found)
    case = Case(values=Values(0, "rows"), kernels={}, references={})
    return module.examine_large(kernel, case, device({"rows": code}), ["mul i32 %r, %s"], host)


ONLY: Mapping[str, object] = {"asks": (), "ways": ("stretched",)}


@pytest.mark.parametrize(
    ("when", "outcome"),
    [
        ("length >= 4 and groups[0] == 5", "out_of_bounds"),
        ("length < threads", "out_of_bounds"),
        ("length <= 65536", "overflow_candidate"),
        ("groups[0] > 5 or element['data'] != 4", "overflow_candidate"),
    ],
)
def test_a_failure_is_a_finding_only_in_a_launch_that_the_condition_allows(
    monkeypatch: pytest.MonkeyPatch, when: str, outcome: str
) -> None:
    found = verdict_of(monkeypatch, changed(**ONLY, when=when), threads=str(1 << 40))

    assert found.outcome == outcome
    assert ("call" in found.inputs) == (outcome != "overflow_candidate")
    assert "strides" not in found.inputs  # the condition tells of the rows


def test_a_call_has_the_numbers_of_the_launch_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = changed(**ONLY, when="length >= 4", call="torch.sort of ({groups[0]}, {length})")
    call = verdict_of(monkeypatch, rule).inputs["call"]

    rows, length = map(int, re.findall(r"\d+", str(call)))
    assert rows == ROWS
    assert length * (ROWS - 1) >= 1 << 31


def test_what_is_never_launched_cannot_fail_and_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verdict_of(monkeypatch, changed(never="another kernel does it"))

    assert (found.outcome, found.reason) == ("passed", "torch launches it for no tensor: another kernel does it")


def test_a_kernel_that_the_host_code_does_not_name_is_never_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = changed(**ONLY, named="applyRows")
    named = HostCode(calls={"launch": {}}, texts=frozenset({"applyRows"}))
    unread = HostCode(calls={}, reason="it holds no library")

    found = verdict_of(monkeypatch, rule)

    assert (found.outcome, found.reason) == (
        "passed",
        "torch launches it for no tensor: the wheel's host code holds no applyRows",
    )
    assert verdict_of(monkeypatch, rule, named).outcome != "passed"
    assert verdict_of(monkeypatch, rule, unread).outcome != "passed"


@pytest.mark.parametrize("fields", [{"never": "another does it"}, {"when": "length <= 65536"}])
def test_a_rule_that_was_read_of_other_host_code_says_nothing(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str]
) -> None:
    rule = changed(**ONLY, **fields, held="sort_{}")
    here = HostCode(calls={"launch": {}}, texts=frozenset({"sort_{}"}))

    assert "read of" in verdict_of(monkeypatch, rule).reason
    assert "read of" not in verdict_of(monkeypatch, rule, here).reason


def test_a_case_that_becomes_large_only_elsewhere_is_counted_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verdict_of(monkeypatch, changed(**ONLY, when="length == 4"))

    assert found.where["rank"] == "its cases become large only where torch launches another kernel"


@pytest.mark.parametrize(("host", "outcome"), [(CUT, "passed"), (UNGUARDED, "overflow_candidate")])
def test_what_cannot_be_made_large_is_clear_where_the_host_cuts_every_tensor(
    monkeypatch: pytest.MonkeyPatch, host: HostCode, outcome: str
) -> None:
    found = verdict_of(monkeypatch, changed(ways=("z",)), host)  # there is one threadgroup along z

    assert found.outcome == outcome
    part = changed(asks=(Ask(guard="with_32bit_indexing", then="cuts", of=("data",)),), ways=("z",))
    assert verdict_of(monkeypatch, part, CUT).outcome == "overflow_candidate"


def test_the_limit_of_a_twin_counts_where_the_library_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Ask(twin="whether it has 2**32 elements", quantity="elements", most=(1 << 32) - 1, then="other")
    monkeypatch.setattr(large_host, "rule_of", lambda *_: changed(asks=(ask,)))
    kernel = Kernel(name="norm_uint32_t", metadata=None, contract=contract())  # type: ignore[arg-type]

    for names, most in (({"norm_uint64_t"}, [(1 << 32) - 1]), ({"norm_float"}, [])):
        host = large_host.host_of(kernel, UNGUARDED, names)
        assert [each.guard.most for each in host.bounds] == most


def test_a_number_of_elements_in_a_name_is_no_width_of_an_index() -> None:
    assert large_host.twin_of("int4pack_mm_32_float", {"int4pack_mm_64_float"}) is None
    assert large_host.twin_of("index_copy_float_32", {"index_copy_float_64"}) == "index_copy_float_64"


def test_what_a_launch_leaves_for_a_later_one_is_looked_at() -> None:
    step = Step(
        kernel="k",
        arguments={"x": input_buffer(b"1234"), "partial": scratch_buffer(4)},
        grid=(1, 1, 1),
        threadgroup=(1, 1, 1),
    )

    assert outputs_of(step) == ["partial"]


def test_indices_behind_a_table_are_raised_and_those_that_count_from_the_end_stay() -> None:
    arguments = [buffer(0, "out", "long"), buffer(1, "table", "long", access="read")]
    body = """
  %a = load ptr addrspace(1), ptr addrspace(1) %table, align 8
  %w = zext i32 %i to i64
  %x = getelementptr i64, ptr addrspace(1) %a, i64 %w
  %v = load i64, ptr addrspace(1) %x, align 8
  %o = getelementptr i64, ptr addrspace(1) %out, i64 %w
  store i64 %v, ptr addrspace(1) %o, align 8
  ret void"""
    parameters = "ptr addrspace(1) %out, ptr addrspace(1) %table, i32 %i"
    code = compiled(air("tabled", parameters, body, [*arguments, builtin(2, GRID)]))
    assert isinstance(code, Code)
    table = Addresses(data=bytes(8), places={0: input_buffer(struct.pack("<2q", 3, -2))})
    step = Step(
        kernel="tabled",
        arguments={"out": scratch_buffer(16), "table": table},
        grid=(2, 1, 1),
        threadgroup=(1, 1, 1),
    )
    shift = Shift(axis=0, units=1 << 33, bytes={}, unit=0, values={"table+0": every(16, 8, 1)})

    _, contents = run_shifted(device({"tabled": code}), step, shift)

    assert struct.unpack("<2q", contents[0]) == (3 + (1 << 33), -2)


@pytest.mark.parametrize(
    "text", ["__import__('os')", "x.y", "[1]", "x if y else z", "lambda: 1", "pow(2, 3)", "x ==", "f'{x}'"]
)
def test_a_condition_is_made_of_numbers_and_four_functions(text: str) -> None:
    with pytest.raises(ValueError, match="is not a condition"):
        names_in(text)


def test_every_condition_names_what_a_launch_has() -> None:
    for folder, rules in load_rules().items():
        for rule in rules:
            if not rule.when:
                continue
            contracts = [each for each in load_contracts() if each.folder == folder and any(
                re.fullmatch(pattern.replace("*", ".*"), each.family) for pattern in rule.contracts
            )]  # fmt: skip
            for each in contracts:
                arguments = set(each.arguments.split(", "))
                known = (
                    arguments | set(each.pattern.groupindex) | {"groups"} | {f"element.{name}" for name in arguments}
                )
                assert names_in(rule.when) <= known, (folder, each.family)


def test_tensors_with_elements_of_several_sizes_are_stretched_together_first() -> None:
    inputs: dict[str | int, Buffer] = {
        "keys": input_buffer(bytes(64)),
        "places": input_buffer(bytes(128)),
        "counts": input_buffer(bytes(8)),
    }
    own: dict[str | int, int] = {"keys": 2, "places": 4, "counts": 4, "out": 8}

    all_of_them, given, *others = ways._pieces({**inputs, "out": scratch_buffer(256)}, own, 8)

    assert all_of_them == {"keys": 2, "places": 4, "out": 8}
    assert given == {"keys": 2, "places": 4}
    assert {"places": 4} in others
