"""Contracts and references of the families: no recorded kernel has two, and a row that is not whole is an error."""

from __future__ import annotations

import json
import lzma
import re
import struct
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mps_build.kernels.families.shared.contracts import (
    FOLDER,
    Contract,
    find_binder,
    load_contracts,
    load_families,
    match_kernel,
)
from mps_build.kernels.families.shared.pack import pack_argument
from mps_build.kernels.judge.references import load_references
from mps_build.kernels.program import values
from mps_build.kernels.program.dtypes import DTYPES
from mps_build.kernels.program.launch import WrongBinding
from mps_build.kernels.read.metadata import Argument, Metadata, parse_metadata
from small_kernels import GRID, air, builtin

RELEASES = {"2.6.0", "2.10.0", "2.11.0", "2.13.0", "2.14.1", "2.15.0"}


KERNELS, BOUND = 24_000, 0.96


@cache
def _recorded() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        lzma.decompress((Path(__file__).parents[2] / "recorded" / "kernels" / "kernel_names.json.xz").read_bytes())
    )
    return document


def _arguments(row: list[list[str]]) -> tuple[Argument, ...]:
    return tuple(
        Argument(
            name=name,
            kind=kind,
            type="float" if type_ == "T" else type_,
            index=place,
            slot=place if kind.endswith("buffer") else None,
        )
        for place, (name, kind, type_) in enumerate(row)
    )


def _metadata(row: list[list[str]]) -> Metadata:
    return Metadata(function="k", arguments=_arguments(row), max_threads=None, arrays=(), types=())


def test_every_recorded_kernel_has_one_contract_or_none() -> None:
    """`match_kernel` raises where two match; nearly all have one."""
    names = [(name, _metadata(arguments)) for arguments, some in _recorded()["kernels"] for name in some]
    found = [match_kernel(name, metadata) for name, metadata in names]

    assert set(_recorded()["releases"]) == RELEASES
    assert len(names) > KERNELS
    assert sum(each is not None for each in found) > BOUND * len(names)


def test_the_order_of_contracts_decides_nothing() -> None:
    rows = load_contracts()
    some = [(names[0], _metadata(arguments)) for arguments, names in _recorded()["kernels"][::40]]
    for name, metadata in some:
        one, other = (match_kernel(name, metadata, order) for order in (rows, rows[::-1]))
        assert (one and one.contract) is (other and other.contract)


def test_a_kernel_that_two_contracts_match_is_an_error_that_names_both() -> None:
    def row(family: str) -> Contract:
        return Contract(
            folder="f", family=family, arguments="x", builtins="", types={}, pattern=re.compile("k.*"), binder="f.b.c",
            companions=(), options={},
        )  # fmt: skip

    metadata = _metadata([["x", "buffer", "T"]])
    assert match_kernel("kernel", metadata, (row("one"),)) is not None
    with pytest.raises(WrongBinding, match=r"kernel has two contracts: one \(f.b.c\) and two \(f.b.c\)"):
        match_kernel("kernel", metadata, (row("one"), row("two")))


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


def test_every_family_is_a_package_of_the_same_files() -> None:
    """A folder without __init__.py would be imported, but import-linter does not see it."""
    folders = {path.parent for path in FOLDER.rglob("*.py")} - {FOLDER, FOLDER / "shared"}

    assert {path.name for path in folders} == {each.folder for each in load_contracts()}
    for folder in folders:
        names = {path.name for path in folder.iterdir() if path.name != "__pycache__"}
        assert {"__init__.py", "family.yaml"} <= names <= {"__init__.py", "family.yaml", "references.py"}, folder


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
