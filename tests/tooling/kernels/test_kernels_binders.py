"""Every contract binds a kernel: recorded signatures of official wheels become programs that fit their arguments.

kernel_signatures.json holds, for each contract and for each set of lengths that its constants have in the releases,
one kernel's argument list as its metadata says it, with the kernels that its programs launch beside it.
"""

from __future__ import annotations

import fnmatch
import json
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

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
from mps_build.kernels.program.launch import Buffer, Growth, Program, Step, memory_of
from mps_build.kernels.program.values import Values
from mps_build.kernels.read.metadata import Argument, Field, Metadata
from rows import for_each

RECORDED = json.loads((Path(__file__).parent / "kernel_signatures.json").read_text(encoding="utf-8"))
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
    assert {*growth.bytes, *growth.values, *growth.results} <= set(memory)
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
    """Of the types that it can write, every third is asked: of those of complex numbers there are two."""
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
