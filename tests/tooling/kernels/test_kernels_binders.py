"""Every contract binds a kernel: recorded signatures of official wheels become programs that fit their arguments.

kernel_signatures.json holds, for each contract and for each set of lengths that its constants have in the releases,
one kernel's argument list as its metadata says it, with the kernels that its programs launch beside it.
"""

from __future__ import annotations

import fnmatch
import itertools
import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mps_build.kernels.families.reductions import outer
from mps_build.kernels.families.shared.contracts import (
    Case,
    Kernel,
    companions_of,
    find_binder,
    load_contracts,
    match_kernel,
)
from mps_build.kernels.judge.references import load_references
from mps_build.kernels.machine.shift import raised
from mps_build.kernels.program.launch import Buffer, Growth, Program, Reference, Step, memory_of
from mps_build.kernels.program.values import Values
from mps_build.kernels.read.metadata import Argument, Field, Metadata
from rows import for_each

RECORDED = json.loads(
    (Path(__file__).parents[2] / "recorded" / "kernels" / "kernel_signatures.json").read_text(encoding="utf-8")
)


# In none of the six releases recorded: the forms of releases between them.
BINDS_NOTHING_RECORDED = 7


THREADGROUP = 3


def _field(row: Any) -> Field:
    return Field(**{"length": 0, **row, "fields": tuple(map(_field, row.get("fields", ())))})


def _argument(index: int, row: Any) -> Argument:
    return Argument(**{"index": index, **row, "fields": tuple(map(_field, row.get("fields", ())))})


@cache
def _kernels(release: str) -> dict[str, Kernel]:
    found = {}
    for name, row in RECORDED["kernels"][release].items():
        arguments = (_argument(*each) for each in enumerate(RECORDED["arguments"][n] for n in row["arguments"]))
        metadata = Metadata(
            function=name,
            arguments=tuple(arguments),
            max_threads=row.get("max_threads"),
            arrays=tuple(row.get("arrays", ())),
            types=tuple(row.get("types", ())),
        )
        kernel = match_kernel(name, metadata)
        assert kernel is not None, name
        found[name] = kernel
    return found


def _programs(release: str, name: str, seed: int) -> list[Program]:
    kernels = _kernels(release)
    kernel = kernels[name]
    assert kernel.contract is not None
    beside = {each: kernels[each] for each in (*companions_of(kernel), name) if each in kernels}
    case = Case(values=Values(seed, name), kernels=beside, references=load_references(), is_quick=True, version=release)
    return list(find_binder(kernel.contract.binder)(kernel, case))


def _bound() -> list[tuple[str, str]]:
    """Return the release and the kernel of each record."""
    return [(release, name) for release, names in RECORDED["chosen"].items() for name in names]


def test_nearly_every_contract_matches_a_recorded_kernel() -> None:
    """A new contract needs a record: record_signatures.py (docs/contributing/kernel_family.md)."""
    matched = {id(_kernels(release)[name].contract) for release, name in _bound()}
    assert len(matched) >= len(load_contracts()) - BINDS_NOTHING_RECORDED


@for_each(sorted(_bound()), name=" ".join)
def test_a_contract_launches_its_kernel_with_arguments_that_fit(release: str, name: str) -> None:
    programs = _programs(release, name, 0)

    assert any(step.kernel == name for program in programs for step in program.steps)
    for step in (step for program in programs for step in program.steps):
        _check_fits(_kernels(release)[step.kernel], step)
    for program in programs:
        if program.growth is not None:
            _check_grows(program.growth, program.steps[0])


def _check_grows(growth: Growth, step: Step) -> None:
    """What a binder says of growth names memory and constants of its launch, and numbers that are within them."""
    memory = memory_of(step)
    assert {*growth.bytes, *growth.stretched, *growth.values, *growth.results} <= set(memory)
    for key, words in growth.words.items():
        assert all(at + size <= len(step.arguments[key]) for at, size, _ in words), key  # type: ignore[arg-type]
    for key, words in {**growth.values, **growth.results}.items():
        assert all(at + size <= memory[key].size for at, size, _ in words), key


def test_the_first_of_the_groups_of_rows_grows_and_every_row_keeps_its_group() -> None:
    """Trying does not find it: the ends of all groups grow with the rows. The form of tiles is found by trying."""
    release = next(each for each, names in RECORDED["chosen"].items() if "grouped_mm_rows_half_bm32_u32" in names)
    tiles = _kernels(release)["grouped_mm_rows_half_bm32_u32"]
    few = match_kernel("grouped_mm_few_rows_half_u32", tiles.metadata)
    assert few is not None and few.contract is not None and tiles.contract is not None
    case = Case(values=Values(0, few.name), kernels={few.name: few}, references=load_references(), version=release)

    programs = list(find_binder(few.contract.binder)(few, case))

    for program in programs:
        (step,) = program.steps
        assert program.growth is not None
        _check_grows(program.growth, step)
        ends, moved = (raised(_offsets(step), program.growth.values["offsets"], units) for units in (0, 5))
        assert [b - a for a, b in zip(ends[::4], moved[::4], strict=True)] == [5] * (len(ends) // 4)
        ((at, size, by),) = program.growth.words["params"]
        assert by == 1 and int.from_bytes(_constant(step, "params")[at : at + size], "little") == step.grid[1]
    assert all(program.growth is None for program in _programs(release, tiles.name, 0))


def _offsets(step: Step) -> bytes:
    value = step.arguments["offsets"]
    assert isinstance(value, Buffer)
    return value.data


def _constant(step: Step, name: str) -> bytes:
    value = step.arguments[name]
    assert isinstance(value, bytes)
    return value


def _check_fits(kernel: Kernel, step: Step) -> None:
    """Every buffer is bound, shared memory has its length, and what is copied is as long as what is read."""
    buffers = [each for each in kernel.metadata.arguments if each.is_buffer]
    shared = {each.name for each in buffers if each.space == THREADGROUP and each.size is None}
    assert set(step.threadgroup_bytes) == shared
    bound = {_key(each, step): each for each in buffers if each.name not in shared}
    assert set(bound) == set(step.arguments)
    for key, each in bound.items():
        value = step.arguments[key]
        if isinstance(value, bytes) and each.size:
            assert len(value) >= each.size, f"{each.name}: {len(value)} bytes, the kernel reads {each.size}"


def _key(argument: Argument, step: Step) -> str | int:
    return argument.index if argument.index in step.arguments else argument.name


def test_a_form_that_casts_complex_numbers_is_launched_in_quick_too() -> None:
    """Of the types that it can write, every third is tested: of those of complex numbers there are two."""
    release = next(each for each, names in RECORDED["chosen"].items() if "copy_neg_dense_castout_ilp_short" in names)
    kernels = {
        kernel.name.replace("short", "float2"): _of_complex(kernel)
        for kernel in _kernels(release).values()
        if kernel.name in ("copy_neg_dense_castout_ilp_short", "copy_neg_dense_short_short")
    }
    name = "copy_neg_dense_castout_ilp_float2"
    case = Case(values=Values(0, name), kernels=kernels, references=load_references(), is_quick=True, version=release)
    contract = kernels[name].contract
    assert contract is not None

    programs = find_binder(contract.binder)(kernels[name], case)

    assert any(step.kernel == name for program in programs for step in program.steps)


def _of_complex(kernel: Kernel) -> Kernel:
    arguments = tuple(
        replace(each, type="float2", element=8) if each.type == "short" else each for each in kernel.metadata.arguments
    )
    name = kernel.name.replace("short", "float2")
    found = match_kernel(name, replace(kernel.metadata, function=name, arguments=arguments))
    assert found is not None
    return found


def test_a_fused_radix_scatter_is_launched_for_few_tiles_alone() -> None:
    """It has room for the counts of few tiles in a threadgroup; torch launches it while tiles**2 * rows <= 128."""
    release, recorded = next(
        (release, kernel)
        for release, names in RECORDED["chosen"].items()
        if "radix_scatter_short_8bit" in names
        for kernel in [_kernels(release)["radix_scatter_short_8bit"]]
    )
    name = "radix_scatter_fused_final_short_8bit_tptg512"
    fused = match_kernel(name, replace(recorded.metadata, function=name))
    assert fused is not None
    assert fused.contract is not None
    case = Case(values=Values(0, name), kernels={}, references=load_references(), is_quick=True, version=release)

    programs = list(find_binder(fused.contract.binder)(fused, case))

    assert programs
    for step in (step for program in programs for step in program.steps):
        tiles, rows = step.grid[0] // step.threadgroup[0], step.grid[1]
        assert tiles**2 * rows <= 128


def _numbers(kernel: Kernel, step: Step, name: str) -> tuple[int, ...]:
    """Return the 32-bit numbers of a constant."""
    data = step.arguments[_key(kernel.argument(name), step)]
    assert isinstance(data, bytes)
    return struct.unpack(f"<{len(data) // 4}I", data)


def _is_narrow(kernel: Kernel, step: Step) -> bool:
    """As many of 256 threads as whole rows of fewer than 32 columns have."""
    columns = _numbers(kernel, step, "sizes")[1]
    return columns < 32 and step.threadgroup == (256 // columns * columns, 1, 1)


def _is_int8(kernel: Kernel, step: Step) -> bool:
    """Up to 11 rows go to one kernel, more to the other."""
    return (_numbers(kernel, step, "sizes")[0] > 11) == kernel.name.startswith("large")


def _is_dirichlet(kernel: Kernel, step: Step) -> bool:
    return step.threadgroup == (min(_numbers(kernel, step, "num_alpha")[0], 1024), 1, 1)


LIMITS: dict[str, Callable[[Kernel, Step], bool]] = {
    "reduction_narrow*": _is_narrow,
    "arg_reduction_narrow": _is_narrow,
    "int8pack_mm": _is_int8,
    "dirichlet": _is_dirichlet,
    "randperm_small": lambda kernel, step: _numbers(kernel, step, "n")[0] <= 384,
    "unscale_many": lambda _, step: [key for key in memory_of(step) if "+" in str(key)] == ["pointerArgs+0"],
}


@for_each(LIMITS)
def test_a_case_keeps_the_limits_between_which_torch_launches_its_kernel(family: str) -> None:
    """What the host code of 2.15.0 asks before it launches them (machine code; Quantized.mm, Distributions.mm)."""
    steps = [
        (_kernels(release)[step.kernel], step)
        for release, name in _bound()
        if fnmatch.fnmatchcase(_kernels(release)[name].contract.family, family)  # type: ignore[union-attr]
        for program in _programs(release, name, 0)
        for step in program.steps
        if step.kernel == name
    ]

    assert steps
    assert all(LIMITS[family](kernel, step) for kernel, step in steps)


SIZES = {"float": 4, "uint": 4, "uint2": 8, "uint3": 16, "uint4": 16, "long": 8, "ulong": 8,
         "uchar": 1, "NormParams": 268}  # fmt: skip


def _made(number: int, name: str, kind: str, fields: Sequence[Field] = ()) -> Argument:
    size = fields[-1].offset + fields[-1].size if fields else SIZES[kind]
    is_value = kind not in ("float", "uchar") or name in ("epsilon", "scale", "eps", "algorithm")
    return Argument(
        index=number, name=name, kind="buffer", type=kind, slot=number, access="read", space=2 if is_value else 1,
        size=size if is_value else None, element=size, align=4, fields=tuple(fields),
    )  # fmt: skip


def _arguments(text: str) -> list[Argument]:
    """Return arguments written as `name` or `name:type`; `name:type*` for a pointer to what is no float."""
    words = [word.partition(":") for word in text.split()]
    made = [_made(number, name, kind.rstrip("*") or "float") for number, (name, _, kind) in enumerate(words)]
    return [
        replace(each, size=None, space=1) if kind.endswith("*") else each
        for each, (_, _, kind) in zip(made, words, strict=True)
    ]


def _launches(name: str, arguments: Sequence[Argument]) -> list[Program]:
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
    programs = _launches(name.format(form), _arguments(NORMS[name]))

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
def test_a_sampler_whose_mode_is_a_parameter_is_launched_in_each_mode(name: str, modes: int, dimensions: int) -> None:
    buffers = [_made(number, each, "float") for number, each in enumerate(("output", "input", "grid"))]
    programs = _launches(name, [*buffers, _made(3, "params", "GridSamplerParams", _grid_fields())])

    launched = set()
    for program in programs:
        (check,) = program.checks
        assert isinstance(check, Reference)
        params = program.steps[0].arguments["params"]
        assert isinstance(params, bytes)
        assert params[0] == dimensions
        launched.add((params[124], params[128], check.inputs["mode"], check.inputs["pad"]))
    assert len(launched) == modes == len({each[:2] for each in launched})


def test_attention_in_blocks_has_one_whole_block_of_queries() -> None:
    strides = " ".join(f"{each}_strides:uint3" for each in "QKVO")
    arguments = _arguments(f"Q K V O qL:uint kL:uint gqa_factor:uint scale NK:uint {strides}")

    programs = _launches("attention_float_bq32_bk16_bd128_wm4_wn1", arguments)

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
    programs = _launches("histogramdd_uchar", _arguments(words))

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
