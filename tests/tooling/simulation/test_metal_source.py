"""Metal source text as C++: which kernels there are, how each parameter is bound, what is refused."""

from __future__ import annotations

import pytest
from mps_build.simulation.python.metal_source import (
    Kernel,
    Parameter,
    Unsupported,
    kernels_of,
    split_commas,
    translated,
)

_KERNEL = """
#include <metal_stdlib>
using namespace metal;
kernel void scaled(constant uint& length [[buffer(0)]],
                   device float *out [[ buffer(2) ]],
                   constant array<int, 2> *sizes [[buffer(3)]],
                   uint2 index [[thread_position_in_grid]]) {
  out[index.x] = length;
}
"""


def test_parameters_are_buffers_by_their_index_or_ids_by_their_name() -> None:
    assert list(kernels_of(_KERNEL)) == [
        Kernel(
            name="scaled",
            function="scaled",
            parameters=(
                Parameter(type="constant uint&", slot=0, identity=None),
                Parameter(type="device float *", slot=2, identity=None),
                Parameter(type="constant array<int, 2> *", slot=3, identity=None),
                Parameter(type="uint2", slot=None, identity="thread_position_in_grid"),
            ),
        )
    ]


def test_a_buffer_without_an_index_has_the_next_one() -> None:
    (found,) = kernels_of(
        "kernel void f(device int *a [[buffer(4)]], device int *b, uint i [[thread_position_in_grid]]) {}"
    )

    assert [each.slot for each in found.parameters] == [4, 5, None]


_TEMPLATE = """
constant uint32_t count [[function_constant(3)]];
template<typename T, typename S>
kernel void filled(device T *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = T(count); }
template
[[host_name("filled_" "int" )]]
kernel void filled<int, atomic_int>(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]);
"""


def test_an_instance_without_attributes_has_those_of_its_template() -> None:
    (found,) = kernels_of(
        "template <typename T> kernel void f(device T *out [[buffer(2)]], uint i [[thread_position_in_grid]]) {}\n"
        'template [[host_name("f_float")]] kernel void f<float>(device float *, uint i);\n'
    )  # as 2.5.1 has them: complex and polar

    assert found.name == "f_float"
    assert [(each.slot, each.identity) for each in found.parameters] == [(2, None), (None, "thread_position_in_grid")]


def test_a_template_is_found_by_the_name_of_an_instance_as_pytorch_1_13_has_them() -> None:
    (found,) = kernels_of(_TEMPLATE)

    assert (found.name, found.function) == ("filled_int", "filled<int, atomic_int>")
    assert "filled<int, atomic_int>((device int *)slots[0]" in translated(_TEMPLATE)


def test_a_function_constant_is_exported_by_its_index() -> None:
    text = translated(_TEMPLATE)

    assert "static uint32_t count;" in text
    assert "sim_constants[] = {{3, sizeof(count), &count}, {0, 0, nullptr}}" in text


def test_the_text_exports_each_kernel_with_its_buffers_and_no_attribute() -> None:
    text = translated(_KERNEL)

    assert "[[" not in text
    assert "#include <metal" not in text
    assert "*(constant uint *)slots[0], (device float *)slots[1]" in text
    assert "sim_id<uint2>(ids + 0)" in text
    entries = "(void *)sim_run_scaled, (void *)sim_row_scaled"
    assert f'{{"scaled", {entries}, 3, {{{{0, 0, sim_size<constant uint&>()}}, {{1, 2,' in text
    assert "SIM_ROW(scaled, 3, scaled(*(constant uint *)slots[0], " in text


def test_no_two_buffers_of_a_kernel_are_the_same_memory_to_its_compiler() -> None:
    text = translated(_KERNEL)

    assert "device float *__restrict out ," in text
    assert "constant array<int, 2> *__restrict sizes ," in text
    assert "(device float *)slots[1]" in text


def test_a_cast_between_half_and_bfloat_is_a_function_of_the_shim() -> None:
    text = translated("bfloat f(half x) { return bfloat (x) + half(1) + cast<half>(x); }")

    assert "bfloat f(half x) { return sim_bfloat(x) + sim_half(1) + cast<half>(x); }" in text


@pytest.mark.parametrize(
    "text",
    [
        "kernel void f(texture2d<float> t [[texture(0)]]) {}",
        "kernel void f(float value) {}",
        "kernel void f(device int *a [[buffer(0)]]",
    ],
)
def test_what_the_shim_lacks_is_named_not_guessed(text: str) -> None:
    with pytest.raises(Unsupported):
        translated(text)


def test_commas_inside_of_brackets_split_nothing() -> None:
    assert split_commas("a<b, c> d, (e, f), g[h, i]") == ["a<b, c> d", " (e, f)", " g[h, i]"]
    assert split_commas("") == []
