"""What binders launch is what torch's host code launches: sizes, modes, and work that ends in the time there is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from mps_build.kernels.families.reductions.binder import outer
from mps_build.kernels.families.shared.contracts import Case, find_binder, match_kernel
from mps_build.kernels.program.launch import Program, Reference, Step
from mps_build.kernels.program.values import Values
from mps_build.kernels.read.metadata import Argument, Field, Metadata

SIZES = {"float": 4, "uint": 4, "uint2": 8, "uint3": 16, "uint4": 16, "long": 8, "ulong": 8,
         "uchar": 1, "NormParams": 268}  # fmt: skip


def _argument(number: int, name: str, kind: str, fields: Sequence[Field] = ()) -> Argument:
    size = fields[-1].offset + fields[-1].size if fields else SIZES[kind]
    is_value = kind not in ("float", "uchar") or name in ("epsilon", "scale", "eps", "algorithm")
    return Argument(
        index=number, name=name, kind="buffer", type=kind, slot=number, access="read", space=2 if is_value else 1,
        size=size if is_value else None, element=size, align=4, fields=tuple(fields),
    )  # fmt: skip


def _arguments(text: str) -> list[Argument]:
    """Return arguments written as `name` or `name:type`; `name:type*` for a pointer to what is no float."""
    words = [word.partition(":") for word in text.split()]
    made = [_argument(number, name, kind.rstrip("*") or "float") for number, (name, _, kind) in enumerate(words)]
    return [
        replace(each, size=None, space=1) if kind.endswith("*") else each
        for each, (_, _, kind) in zip(made, words, strict=True)
    ]


def _programs(name: str, arguments: Sequence[Argument]) -> list[Program]:
    kernel = match_kernel(name, Metadata(function=name, arguments=tuple(arguments), max_threads=None))
    assert kernel is not None
    assert kernel.contract is not None
    case = Case(values=Values(0, name), kernels={name: kernel}, references={})
    return list(find_binder(kernel.contract.binder)(kernel, case))


def _number(step: Step, name: str) -> int:
    value = step.arguments[name]
    assert isinstance(value, bytes)
    return int.from_bytes(value, "little")


NORMS = {
    "layer_norm_{}_float": "input output meanOut rstdTensor axis_size:uint epsilon weight bias",
    "rms_norm{}_float": "x w out eps axis_size:uint w_stride:uint",
}


@pytest.mark.parametrize(
    ("name", "form", "is_looped"),
    [("layer_norm_{}_float", "looped", True), ("layer_norm_{}_float", "single_row", False),
     ("rms_norm{}_float", "_looped", True), ("rms_norm{}_float", "", False)],
)  # fmt: skip
def test_a_row_is_gone_around_by_a_whole_threadgroup_and_only_if_it_is_longer_than_its_reach(
    name: str, form: str, *, is_looped: bool
) -> None:
    programs = _programs(name.format(form), _arguments(NORMS[name]))

    assert programs
    for program in programs:
        (step,) = program.steps
        length = _number(step, "axis_size")
        assert (length > 4 * 1024) == is_looped
        assert step.threadgroup[0] == 1024 if is_looped else 4 * step.threadgroup[0] >= length


def _grid_fields() -> list[Field]:
    array = tuple(Field(name="__elems", type="int", offset=0, size=4, length=5) for _ in range(1))
    names = ("output_sizes", "output_strides", "input_sizes", "input_strides", "grid_sizes", "grid_strides")
    fields = [Field(name="sampler_dims", type="int", offset=0, size=4, length=0)]
    fields += [
        Field(name=name, type="metal::array", offset=4 + 20 * at, size=20, length=0, fields=array)
        for at, name in enumerate(names)
    ]
    fields += [
        Field(name=name, type="int", offset=124 + 4 * at, size=4, length=0)
        for at, name in enumerate(("interpolation_mode", "padding_mode"))
    ]
    return [*fields, Field(name="align_corners", type="bool", offset=132, size=1, length=0)]


@pytest.mark.parametrize(
    ("name", "modes", "dimensions"), [("grid_sampler_float", 4, 3), ("grid_sampler_2d_float", 9, 2)]
)
def test_a_sampler_whose_mode_is_a_parameter_is_asked_in_each_mode(name: str, modes: int, dimensions: int) -> None:
    buffers = [_argument(number, each, "float") for number, each in enumerate(("output", "input", "grid"))]
    programs = _programs(name, [*buffers, _argument(3, "params", "GridSamplerParams", _grid_fields())])

    asked = set()
    for program in programs:
        (check,) = program.checks
        assert isinstance(check, Reference)
        params = program.steps[0].arguments["params"]
        assert isinstance(params, bytes)
        assert params[0] == dimensions
        asked.add((params[124], params[128], check.inputs["mode"], check.inputs["pad"]))
    assert len(asked) == modes == len({each[:2] for each in asked})


def test_attention_in_blocks_has_one_whole_block_of_queries() -> None:
    strides = " ".join(f"{each}_strides:uint3" for each in "QKVO")
    arguments = _arguments(f"Q K V O qL:uint kL:uint gqa_factor:uint scale NK:uint {strides}")

    programs = _programs("attention_float_bq32_bk16_bd128_wm4_wn1", arguments)

    whole = sum(_number(p.steps[0], "qL") // 32 * p.steps[0].grid[1] // 4 * p.steps[0].grid[2] for p in programs)
    assert whole == 1, "each thread computes all of its block, which takes seconds"
    assert any(_number(p.steps[0], "qL") % 32 for p in programs)
    assert any(_number(p.steps[0], "kL") % 16 for p in programs)
    assert {_number(p.steps[0], "gqa_factor") for p in programs} == {1, 2}


@pytest.mark.parametrize(
    ("name", "arguments", "family"),
    [
        ("max_reduction_inner_chunk_float_float", "input output sizes:uint4", "reduction_inner_chunk_bare"),
        ("sum_reduction_inner_chunk_float_float", "input output sizes:uint4 divisor", "reduction_inner_chunk"),
        ("max_reduction_inner_float_float", "input output sizes:uint2", "reduction_inner_bare"),
        ("sum_reduction_strided_float_float", "input output params:NormParams", "reduction_strided_parts"),
        ("sum_reduction_float_float", "input output params:NormParams", "reduction"),
        ("norm_float_float", "input output params:NormParams", "norm"),
        ("argmax_reduction_outer_float_long", "input output:long sizes:uint3", "arg_reduction_columns"),
        ("max_reduction_outer_float_float", "input output sizes:uint3", "reduction_columns_bare"),
        ("argmax_reduction_inner_float_long", "input output:long sizes:uint2", "arg_reduction_inner_bare"),
        ("luStreamUpdate", "A dims params scratch", "lu_stream_update"),
        ("luStreamUpdate_float2", "A dims params scratch", "lu_stream_update"),
        ("trsmPanelLU_16", "A dims params", "lu_solve"),
        ("trsmDiagSolveLU_upper_unit", "A dims params", "lu_solve"),
    ],
)
def test_a_name_that_another_begins_with_is_not_taken_for_it(name: str, arguments: str, family: str) -> None:
    kernel = match_kernel(name, Metadata(function=name, arguments=tuple(_arguments(arguments)), max_threads=None))

    assert kernel is not None
    assert kernel.contract is not None
    assert kernel.contract.family == family


def test_edges_of_a_histogram_rise_in_a_type_without_negative_numbers() -> None:
    words = (
        "input_:uchar weight:uchar local_out:uchar offsets:uint* num_dims:ulong bin_seq:uchar num_bin_edges:long* "
        "leftmost_edge:uchar rightmost_edge:uchar local_out_strides:long* algorithm:uchar weight_stride:long"
    )
    programs = _programs("histogramdd_uchar", _arguments(words))

    assert programs
    for program in programs:
        (check,) = program.checks
        assert isinstance(check, Reference)
        edges: Any = check.inputs["edges"]
        assert all(0 <= least < most <= 255 for row in edges for least, most in itertools.pairwise(row))


@pytest.mark.parametrize(("more", "most"), [("divisor ", 1), ("", 1), ("param ", 3)])
def test_the_length_of_an_outer_reduction_is_cut_in_chunks_from_2_15_on(more: str, most: int) -> None:
    """2.14's kernels had no chunks: several threadgroups for one result wrote it several times, a race of our own."""
    words = f"input output sizes:uint4 {more}strides:uint4"
    name = "sum_reduction_outer_float_float"
    kernel = match_kernel(name, Metadata(function=name, arguments=tuple(_arguments(words)), max_threads=None))
    assert kernel is not None
    references: Any = {"reduced_sum": None}
    programs = outer(kernel, Case(values=Values(0, name), kernels={name: kernel}, references=references))

    steps = [program.steps[0] for program in programs]
    assert max(step.grid[1] // step.threadgroup[1] for step in steps) == most
