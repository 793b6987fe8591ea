"""What needs no compiler: the container, struct layouts, contracts, values, selection, verdicts."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.inspection.malformed import Malformed
from mps_build.kernels.execution import examine, selection, verify_all
from mps_build.kernels.execution.verify_all import KernelRow
from mps_build.kernels.families.shared.contracts import find_binder, load_contracts, load_families
from mps_build.kernels.families.shared.pack import pack_argument
from mps_build.kernels.judge import known
from mps_build.kernels.judge.references import load_references
from mps_build.kernels.program import values
from mps_build.kernels.program.dtypes import DTYPES
from mps_build.kernels.program.launch import View, WrongBinding, output_buffer
from mps_build.kernels.read.library import Function, Library, parse_library
from mps_build.kernels.read.metadata import parse_metadata
from mps_build.kernels.read.wheel import read_libraries
from mps_build.kernels.report import document
from packaging.specifiers import SpecifierSet
from small_kernels import GRID, air, builtin, metallib

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


_STRUCT = (
    '!{i32 0, !"air.buffer", !"air.buffer_size", i32 24, !"air.location_index", i32 0, i32 1, !"air.read", '
    '!"air.address_space", i32 2, !"air.struct_type_info", !30, !"air.arg_type_size", i32 24, '
    '!"air.arg_type_align_size", i32 4, !"air.arg_type_name", !"Params", !"air.arg_name", !"params"}'
)
_NODES = (
    "\n"
    '!30 = !{i32 0, i32 4, i32 0, !"float", !"scale", !"air.struct_type_info", !31, i32 4, i32 16, i32 0, '
    '!"metal::array", !"sizes", i32 20, i32 2, i32 0, !"half", !"p"}\n'
    '!31 = !{i32 0, i32 4, i32 4, !"uint", !"__elems"}\n'
)


def test_structs_are_filled_by_the_names_in_the_kernels_own_metadata() -> None:
    text = air("k", "ptr addrspace(2) %p, i32 %i", "  ret void", [_STRUCT, builtin(1, GRID)]) + _NODES
    argument = parse_metadata(text).arguments[0]

    data = pack_argument(argument, {"scale": 2.0, "sizes": [1, 2, 3], "p": 0.5})

    assert data == struct.pack("<f4IeH", 2.0, 1, 2, 3, 0, 0.5, 0)
    with pytest.raises(WrongBinding, match="no field colour"):
        pack_argument(argument, {"colour": 1})
    with pytest.raises(WrongBinding, match="24 bytes, and 28"):
        pack_argument(argument, bytes(28))


def test_every_contract_has_a_binder_and_patterns_that_name_what_companions_use() -> None:
    rows = load_contracts()

    assert len(rows) > 40
    for row in rows:
        assert callable(find_binder(row.binder)), row.family
        used = set(re.findall(r"\{(\w+)\}", " ".join(row.companions))) - {"name"}
        assert used <= set(row.pattern.groupindex), row.family


def test_a_row_with_axes_stands_for_one_of_every_combination(tmp_path: Path) -> None:
    row = """
contracts:
- each: [[{a: ""}, {a: alpha_}], [{form: wide, types: {x: uint}}, {form: tall, types: {}}]]
  family: f_${a}${form}
  arguments: out
  types: ${types}
  name: <op>_${form}
  binder: dense
  companions: ["{op}_${a}dense"]
"""
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "family.yaml").write_text(row)

    rows = load_contracts(tmp_path)

    assert [each.family for each in rows] == ["f_wide", "f_tall", "f_alpha_wide", "f_alpha_tall"]
    assert [each.companions for each in rows] == [("{op}_dense",)] * 2 + [("{op}_alpha_dense",)] * 2
    assert [each.types for each in rows] == [{"x": "uint"}, {}] * 2
    assert rows[3].pattern.fullmatch("add_tall") and not rows[3].pattern.fullmatch("add_wide")
    (tmp_path / "f" / "family.yaml").write_text(row.replace("${form}", "${shape}"))
    load_families.cache_clear()
    load_contracts.cache_clear()
    with pytest.raises(KeyError, match="shape"):
        load_contracts(tmp_path)


def test_every_reference_is_an_expression_or_a_function_of_the_judge_and_never_both() -> None:
    rows = load_references()

    for name, row in rows.items():
        if "where" in row:
            compile(row["where"], name, "eval")
            continue
        assert len({"expr", "function"} & set(row)) == 1
        for key in ("expr", "magnitude", "overflow"):
            if key in row:
                compile(row[key], name, "eval")
    assert rows["add_alpha"]["parameters"] == ["x", "y", "alpha"]
    assert rows["nn_attention"]["parameters"][:3] == ["q", "k", "v"]


@pytest.mark.parametrize("row", ["{ulp: 1}", '{expr: "x", function: cast}'])
def test_a_reference_that_says_neither_or_both_is_an_error(tmp_path: Path, row: str) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "family.yaml").write_text(f"references: {{odd: {row}}}\n")

    with pytest.raises(ValueError, match="odd: a row says"):
        load_references(tmp_path)


@pytest.mark.parametrize("name", DTYPES)
def test_values_hold_the_edges_and_are_equal_for_equal_seeds(name: str) -> None:
    dtype = DTYPES[name]

    one = values.Values(3, "kernel").sweep(dtype, 300)
    again = values.Values(3, "kernel").sweep(dtype, 300)
    other = values.Values(4, "kernel").sweep(dtype, 300)

    assert one == again and len(one) == 300 * dtype.size
    assert one != other or name == "bool"
    assert len({one[at : at + dtype.size] for at in range(0, len(one), dtype.size)}) > (1 if name == "bool" else 60)


def test_bytes_between_the_elements_of_a_view_must_stay() -> None:
    view = View(buffer=output_buffer(12), dtype=DTYPES["short"], shape=(2, 2), strides=(3, 1))
    content = bytearray(b"\xa5" * 12)
    content[0:4] = content[6:10] = b"\1\2\3\4"

    assert examine.gap_changed([view], bytes(content), 0xA5) is None
    content[4] = 0
    assert examine.gap_changed([view], bytes(content), 0xA5) == 4


def _library(*names: str) -> Library:
    functions = tuple(Function(name=name, kind=2, offset=0, size=0) for name in names)
    return Library(name="metal_basic", os_version=(14, 0), functions=functions, data=b"")


def test_selection_by_name_by_operator_and_one_of_each_form() -> None:
    library = _library(
        "exp_dense_float_float", "exp_dense_half_half", "exp_strided_half_half", "exp_strided_float_float"
    )
    library = _library(
        *[each.name for each in library.functions], "add_alpha_dense_float_float_float", "exp2_dense_half_half"
    )

    assert selection.choose(library, selection.Choice(pattern="exp_s*")) == [2, 3]
    assert selection.choose(library, selection.Choice(operator="aten.exp")) == [0, 1, 2, 3]
    assert selection.choose(library, selection.Choice(operator="add")) == [4]
    assert selection.choose(library, selection.Choice(operator="exp", is_quick=True)) == [0, 1, 3]


def test_quick_takes_one_type_and_the_smallest_and_largest_threadgroup() -> None:
    kinds = [f"attention_{kind}_bq32_mask{kind}" for kind in ("bfloat16", "float16", "float32")]
    sizes = [f"sort_{kind}_tptg{size}_stable" for kind in ("int", "float") for size in (128, 32, 64, 1024)]
    library = _library(*kinds, *sizes)

    chosen = [library.functions[place].name for place in selection.choose(library, selection.Choice(is_quick=True))]

    assert len(chosen) == 3
    assert chosen[1:] == ["sort_float_tptg32_stable", "sort_float_tptg1024_stable"]


def _row(name: str, outcome: str, library: str = "metal_basic") -> KernelRow:
    return KernelRow(
        name=name,
        library=library,
        body="b",
        outcome=outcome,
        family="f",
        operator="o",
        reason="",
        is_compiled=outcome != "not_compiled",
    )


def test_nothing_verified_is_never_success() -> None:
    assert document.verdict_of([]) == ("not_verified", 2)
    assert document.verdict_of([_row("a", "not_bound"), _row("b", "not_compiled")]) == ("not_verified", 2)
    assert document.verdict_of([_row("a", "not_bound"), _row("b", "passed")]) == ("verified", 0)
    assert document.verdict_of([_row("a", "known"), _row("b", "passed")]) == ("known_issues_only", 11)
    assert document.verdict_of([_row("a", "misfit"), _row("b", "passed"), _row("c", "known")]) == ("misfit", 20)
    assert document.verdict_of([_row("a", "misfit"), _row("b", "wrong")]) == ("findings", 10)
    assert document.verdict_of([_row("a", "refused"), _row("b", "not_compiled")]) == ("refused", 21)
    assert document.verdict_of([_row("a", "refused"), _row("b", "passed")]) == ("verified", 0)
    assert document.verdict_of([_row("a", "known"), _row("b", "race")]) == ("findings", 10)


def test_the_document_counts_the_first_library_and_all_of_them() -> None:
    rows = [_row("a", "passed"), _row("b", "not_bound"), _row("c", "not_compiled"), _row("a", "passed", "metal_40")]

    found = document.document_of(rows, target="x", version="2.15.0", seed=0)

    assert found["coverage"] == {"kernels": 3, "compiled": 2, "bound": 1, "run": 1}
    one = {"kernels": 1, "compiled": 1, "bound": 1, "run": 1}
    assert found["libraries"]["metal_basic"] == found["coverage"]
    assert found["libraries"]["metal_40"] == {**one, "same": 0, "changed": one, "new": dict.fromkeys(one, 0)}


def test_kernels_of_another_library_are_the_same_changed_or_new() -> None:
    twin = _row("b", "passed", "metal_40")
    twin.is_twin = True
    rows = [_row("a", "passed"), _row("b", "passed"), twin, _row("a", "not_bound", "metal_40")]
    rows.append(_row("c", "passed", "metal_40"))

    found = document.document_of(rows, target="x", version="2.15.0", seed=0)["libraries"]["metal_40"]

    assert found["same"] == 1
    assert found["changed"] == {"kernels": 1, "compiled": 1, "bound": 0, "run": 0}
    assert found["new"] == {"kernels": 1, "compiled": 1, "bound": 1, "run": 1}


def test_known_issues_hold_for_their_releases_and_outcomes() -> None:
    for each in known.load_known():
        assert each.link.startswith(("https://", "docs/"))
        assert each.why
    row = known.KnownIssue(
        id="x",
        link="https://x",
        title="t",
        torch=SpecifierSet("==2.15.*"),
        kernels=("zeta_*",),
        outcomes=("wrong",),
        where="",
        why="w",
    )
    assert row.covers("zeta_dense_float_float", "wrong", "2.15.0")
    assert not row.covers("zeta_dense_float_float", "wrong", "2.14.1")
    assert not row.covers("zeta_dense_float_float", "out_of_bounds", "2.15.0")
    assert not row.covers("zeta_dense_float_float", "wrong", None)


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


@pytest.mark.parametrize("text", ["fault.py", "missing.py:f", "fault.py:g", "fault.py:1"])
def test_a_plant_that_cannot_be_loaded_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fault.py").write_text("def f(text):\n    return text\n")

    assert verify_all.load_plant("fault.py:f")("x") == "x"
    with pytest.raises(UsageError):
        verify_all.load_plant(text)
