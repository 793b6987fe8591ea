"""Products of packed, scaled and whole numbers."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Known, Program, Reference, Step, View, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, groups, numbered, result, strides_of, threads

# Rows, terms, columns.
SIZES = ((5, 64, 33), (33, 96, 16), (1, 32, 70), (2, 1056, 9))


def scaled(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`scaled_mm`: 8-bit floats times one scale, or one for each row and column; tiles of 32, or a few rows at once."""
    few = kernel.parts.get("few")
    dtype, kind = kernel.dtype("out"), DTYPES["float8_e4m3fn"]
    for number, (m, k, n) in enumerate(SIZES):
        rows = int(few) if few else m
        columns = -(-n // 4) * 4 if few else n
        # Codes of numbers up to 2.
        a, b = (
            View(
                buffer=input_buffer(bytes(each | (sign << 7) for each, sign in _codes(case, x * k)), align=16),
                dtype=kind,
                shape=(x, k),
            )
            for x in (rows, columns)
        )
        rowwise, has_bias, brain = bool(number % 2), number != 2, dtype.name == "bfloat"
        one = filled(case, DTYPES["float"], (rows,) if rowwise else (1,), low=0.25, high=2)
        two = filled(case, DTYPES["float"], (columns,) if rowwise else (1,), low=0.25, high=2)
        bias = filled(case, DTYPES["bfloat" if brain else "half"], (columns,))
        out = result(dtype, (rows, columns))
        params: dict[str, object] = {"m": rows, "n": columns, "k": k, "a_row_stride": k, "a_col_stride": 1}
        params |= {"b_row_stride": 1, "b_col_stride": k, "out_row_stride": columns, "out_col_stride": 1}
        params |= {"rowwise": rowwise, "has_bias": has_bias, "bias_bfloat16": brain}
        values: dict[str, object] = {
            "a": a,
            "b": b,
            "out": out,
            "scale_a": one,
            "scale_b": two,
            "bias": bias,
            "p": params,
        }
        inputs: dict[str, object] = {"a": a, "b": b, "one": one, "two": two, "bias": bias if has_bias else 0}
        scale = k * 2.0**-16
        check = Reference(got=out, name="scaled_product", inputs=inputs, scale=scale)
        grid = (columns // 4,) if few else (-(-columns // 32), -(-rows // 32))
        step = groups(kernel, bound(kernel, values), grid, (128,))
        yield Program(label=f"{rows} x {k} x {columns}, rowwise {rowwise}", steps=[step], checks=[check])


def _codes(case: Case, count: int) -> list[tuple[int, int]]:
    """Codes of e4m3 numbers below 2, and signs."""
    return list(zip(case.values.integers(count, 0, 0x3F), case.values.integers(count, 0, 1), strict=True))


def int4_pack(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`weight_to_int4pack`: the two halves of each byte change places."""
    for rows, columns in ((3, 5), (33, 8), (1, 1)):
        data = bytes(case.values.integers(rows * columns * 4, 0, 255))
        out = result(DTYPES["uchar"], (len(data),))
        values = {"W": input_buffer(data), "outputData": out, "sizes": (rows, columns)}
        want = bytes((each & 15) << 4 | each >> 4 for each in data)
        step = threads(kernel, bound(kernel, values), (rows, columns))
        yield Program(label=f"{rows} x {columns} words", steps=[step], checks=[Known(got=out, want=want)])


def int4(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`int4pack_mm`: weights of 4 bits in groups along the terms, each with scale and zero; four columns each."""
    dtype, group = kernel.dtype("A"), int(kernel.parts["group"])
    first = "A"
    target = "output_data" if kernel.has("output_data") else "outputData"
    for m, k, n in ((1, 2 * group, 8), (5, 256, 32), (33, max(group, 64), 4)):
        k = -(-k // group) * group
        a = filled(case, dtype, (m, k), align=16)
        codes = case.values.integers(n * k, 0, 15)
        data = bytes(codes[at] | codes[at + 1] << 4 for at in range(0, n * k, 2))
        # Sixteenths: 8 * scale - zero, which the kernel makes first, is exact in every type.
        zeros = numbered(
            dtype, [each / 16 for each in case.values.integers(k // group * n * 2, -8, 8)], (k // group, n, 2)
        )
        out = result(dtype, (m, n), align=16)
        weights = numbered(DTYPES["uchar"], codes, (n, k))
        values: dict[str, object] = {first: a, "B": input_buffer(data, align=16), target: out, "sizes": (m, k, n)}
        values |= {"scales_and_zeros": zeros, "scalesAndZeros": zeros}
        inputs = {"a": a, "weights": weights, "zeros": zeros, "group": group}
        # Terms up to 2 * 16, added in float.
        check = Reference(got=out, name="int4_product", inputs=inputs, scale=k * 32 * 2.0**-20)
        step = groups(kernel, bound(kernel, values), (n // 4, 1, m), (32,))
        yield Program(label=f"{m} x {k} x {n}", steps=[step], checks=[check])


def int8(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`int8pack`: weights of 8 bits with a scale for each column; up to 11 rows one at a time, more as tiles of
    32 x 64."""
    dtype, is_large = kernel.dtype("A"), kernel.name.startswith("large")
    for m, k, n in (
        ((13, 64, 64), (40, 96, 96), (12, 256, 32)) if is_large else ((11, 64, 64), (3, 96, 96), (1, 256, 32))
    ):
        a, scales = filled(case, dtype, (m, k), align=16), filled(case, dtype, (n,), low=0.25, high=1)
        codes = [each - 256 if each > 127 else each for each in case.values.integers(n * k, 0, 255)]
        kind = DTYPES["char"]
        b = View(buffer=input_buffer(pack(kind, codes), align=16), dtype=kind, shape=(n, k))
        out = result(dtype, (m, n), align=16)
        values: dict[str, object] = {"A": a, "B": b, "scalesAndZeros": scales, "outputData": out, "sizes": (m, k, n)}
        inputs = {"a": a, "b": b, "scales": scales}
        # Terms up to 256; half is accumulated as it is multiplied, in float.
        scale = (
            k
            * 256
            * (2.0**-20 if dtype.size == 4 else 2.0 ** (-11 if dtype.name == "half" else -8) if is_large else 2.0**-19)
        )
        check = Reference(got=out, name="int8_product", inputs=inputs, scale=scale)
        count = (-(-m // 32), -(-n // 64)) if is_large else (-(-n // 8), m)
        width = 128 if is_large else 64
        arguments = bound(kernel, values)
        step = Step(
            kernel=kernel.name, arguments=arguments, grid=(count[0] * width, count[1], 1), threadgroup=(width, 1, 1),
            free=False, threadgroup_bytes={"shared_memory": 12288 if is_large else 32},
        )  # fmt: skip
        yield Program(label=f"{m} x {k} x {n}", steps=[step], checks=[check])


def whole_numbers(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`int_mm`: tiles of 16 x 16; sizes (M, K, N); strides (row, column) of the matrices and the result."""
    dtype, low = kernel.dtype("mat1Data"), -128 if kernel.dtype("mat1Data").kind == "signed" else 0
    for number, (m, k, n) in enumerate(((5, 7, 3), (33, 16, 17), (1, 40, 20), (17, 1, 16))):
        a = filled(case, dtype, (m, k), strides=(1, m + 2) if number % 2 else (k + 1, 1), low=low, high=low + 255)
        kind = kernel.dtype("mat2Data")
        b = filled(case, kind, (k, n), strides=(n * 2, 2) if number % 2 else (1, k), low=-128, high=127)
        out = result(kernel.dtype("outputData"), (m, n))
        values = {"mat1Data": a, "mat2Data": b, "outputData": out, "sizes": (m, k, n)}
        arguments = bound(kernel, {**values, "strides": [each for view in (a, b, out) for each in [strides_of(view)]]})
        check = Reference(got=out, name="whole_product", inputs={"a": a, "b": b})
        step = groups(kernel, arguments, (-(-n // 16), -(-m // 16)), (16, 16))
        yield Program(label=f"{m} x {k} x {n}", steps=[step], checks=[check])
