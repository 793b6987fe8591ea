"""Products of matrices and of vectors: dense, in groups, of packed and of whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...program.dtypes import DTYPES
from ...program.launch import Growth, Known, Program, Reference, Step, Value, View, every, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, groups, growing, numbered, result, strides_of, threads


def naive_matmul(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`naive_matmul` up to 2.6: a thread a column; sizes (M, K, N), strides (row, column) of all three."""
    dtype = kernel.dtype("mat1Data")
    for m, k, n in ((5, 7, 3), (33, 16, 17), (1, 40, 20)):
        a, b, out = filled(case, dtype, (m, k)), filled(case, dtype, (k, n)), result(dtype, (m, n))
        strides = [strides_of(each) for each in (a, b, out)]
        values = {"mat1Data": a, "mat2Data": b, "outputData": out, "strides": strides, "sizes": (m, k, n)}
        scale = k * {"half": 2.0**-9, "bfloat": 2.0**-6}.get(dtype.name, 2.0**-20)
        check = Reference(got=out, name="nn_matmul", inputs={"a": a, "b": b}, scale=scale)
        step = threads(kernel, bound(kernel, values), (m * n,))
        yield Program(label=f"{m} x {k} x {n}", steps=[step], checks=[check])


def matmul_and_addmm(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`naive_bmm`: strides (column, row, batch); `addmm`: (row, column) of both, the result and the bias."""
    dtype, is_batched = kernel.dtype("mat1Data"), not kernel.has("biasData")
    for number, (m, k, n) in enumerate(((5, 7, 3), (33, 16, 17), (1, 40, 20))):
        batch: tuple[int, ...] = (1 + number,) if is_batched else ()
        a, b = filled(case, dtype, (*batch, m, k)), filled(case, dtype, (*batch, k, n))
        out = result(kernel.dtype("outputData"), (*batch, m, n))
        arguments: dict[str | int, Value] = {"mat1Data": a.buffer, "mat2Data": b.buffer, "outputData": out.buffer}
        inputs: dict[str, object] = {"a": a, "b": b}
        if is_batched:
            strides: list[object] = [s for each in (a, b, out) for s in reversed(strides_of(each))]
            sizes = [m, k, n, batch[0]]
        else:
            bias = filled(case, dtype, (m, n), strides=(2 * n, 2))
            alpha, beta = (2, 3) if dtype.is_exact else (1.5, -0.75)
            factors = [complex(alpha), complex(beta)] if dtype.kind == "complex" else [alpha, beta]
            arguments |= {"biasData": bias.buffer, "alpha_beta": kernel.pack("alpha_beta", factors)}
            inputs |= {"bias": bias, "alpha": alpha, "beta": beta}
            strides, sizes = [strides_of(each) for each in (a, b, out, bias)], [m, k, n]
        arguments |= {"strides": kernel.pack("strides", strides), "sizes": kernel.pack("sizes", sizes)}
        scale = 0.0 if dtype.is_exact else k * 2.0**-18
        check = Reference(got=out, name="nn_matmul" if is_batched else "nn_baddbmm", inputs=inputs, scale=scale)
        step = groups(kernel, arguments, (-(-n // 16), -(-m // 16), *batch), (16, 16))
        yield Program(label=f"{batch} {m} x {k} x {n}", steps=[step], checks=[check])


# Rows, terms, columns.
MATMUL_SIZES = ((5, 7, 3), (33, 16, 17), (1, 40, 20))


def matmul(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Tiles of 16 x 16; sizes (M, K, N); strides (row, column) of the two matrices and the result, in elements."""
    dtype = kernel.dtype("mat1Data")
    for number, (m, k, n) in enumerate(MATMUL_SIZES):
        a = filled(case, dtype, (m, k), strides=(1, m + 2) if number % 2 else (k + 1, 1))
        b = filled(case, dtype, (k, n), strides=(n * 2, 2) if number % 2 else (1, k))
        out = result(kernel.dtype("outputData"), (m, n))
        arguments: dict[str | int, Value] = {
            "mat1Data": a.buffer,
            "mat2Data": b.buffer,
            "outputData": out.buffer,
            "strides": kernel.pack("strides", [strides_of(a), strides_of(b), strides_of(out)]),
            "sizes": kernel.pack("sizes", [m, k, n]),
        }
        scale = k * 2.0**-19 if not dtype.is_exact else 0.0
        check = Reference(got=out, name="nn_matmul", inputs={"a": a, "b": b}, scale=scale)
        steps = [groups(kernel, arguments, (-(-n // 16), -(-m // 16)), (16, 16))]
        yield Program(label=f"{m} x {k} x {n}", steps=steps, checks=[check])


def baddbmm(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Batches of such products; strides (column, row, batch) of both matrices, the result and the bias."""
    dtype = kernel.dtype("mat1Data")
    whole = dtype.is_exact
    for number, (m, k, n) in enumerate(MATMUL_SIZES):
        batch = 1 + number
        a, b = filled(case, dtype, (batch, m, k)), filled(case, dtype, (batch, k, n))
        bias = filled(case, dtype, (batch, m, n), strides=(m * n * 2, n * 2, 2))
        out = result(kernel.dtype("outputData"), (batch, m, n))
        alpha, beta = (2, 3) if whole else (1.5, -0.75)
        strides = [s for each in (a, b, out, bias) for s in reversed(strides_of(each))]
        factors = [complex(alpha), complex(beta)] if dtype.kind == "complex" else [alpha, beta]
        arguments: dict[str | int, Value] = {
            "mat1Data": a.buffer,
            "mat2Data": b.buffer,
            "outputData": out.buffer,
            "biasData": bias.buffer,
            "alpha_beta": kernel.pack("alpha_beta", factors),
            "strides": kernel.pack("strides", strides),
            "sizes": kernel.pack("sizes", [m, k, n, batch]),
        }
        inputs = {"a": a, "b": b, "bias": bias, "alpha": alpha, "beta": beta}
        check = Reference(got=out, name="nn_baddbmm", inputs=inputs, scale=0.0 if whole else k * 2.0**-18)
        steps = [groups(kernel, arguments, (-(-n // 16), -(-m // 16), batch), (16, 16))]
        yield Program(label=f"{batch} x {m} x {k} x {n}", steps=steps, checks=[check])


def addbmm(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`naive_addbmm`: the sum of a batch's products; strides (column, row, batch) of both, the result and the bias."""
    dtype = kernel.dtype("mat1Data")
    whole = dtype.is_exact
    for batch, m, k, n in ((1, 5, 7, 3), (3, 33, 16, 17), (2, 1, 40, 20)):
        low, high = (0, 1) if dtype.size == 1 else (-2, 2)
        a, b = (filled(case, dtype, shape, low=low, high=high) for shape in ((batch, m, k), (batch, k, n)))
        bias = filled(case, dtype, (m, n), strides=(n * 2, 2), low=low, high=high)
        out = result(kernel.dtype("outputData"), (m, n))
        alpha, beta = (2, 3) if whole else (1.5, -0.75)
        strides = [s for each in (a, b) for s in reversed(strides_of(each))]
        for each in (out, bias):
            strides += [*reversed(strides_of(each)), 0]
        factors = [complex(alpha), complex(beta)] if dtype.kind == "complex" else [alpha, beta]
        values: dict[str, object] = {"mat1Data": a, "mat2Data": b, "outputData": out, "biasData": bias}
        values |= {"alpha_beta": factors, "strides": strides, "sizes": [m, k, n, batch]}
        inputs = {"a": a, "b": b, "bias": bias, "alpha": alpha, "beta": beta}
        scale = 0.0 if whole else batch * k * 2.0**-17
        check = Reference(got=out, name="spread_addbmm", inputs=inputs, scale=scale)
        step = groups(kernel, bound(kernel, values), (-(-n // 16), -(-m // 16)), (16, 16))
        yield Program(label=f"{batch} x {m} x {k} x {n}", steps=[step], checks=[check])


# Rows, terms, columns, ends of the groups (the second is empty).
GROUPED = ((37, 20, 70, (5, 5, 37)), (9, 33, 18, (9, 9, 9)), (130, 48, 65, (64, 64, 130)))


def grouped_rows(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Rows of one matrix in groups, each with a matrix of its own; tiles of bm x 64, or 16 columns of one row."""
    dtype, few = kernel.dtype("mat_a"), kernel.parts["form"] == "few_rows"
    for m, k, n, ends in GROUPED[: 1 if case.is_quick else 3]:
        count, ld = len(ends), -(-k // 4) * 4
        a = filled(case, dtype, (m, k), strides=(ld, 1), align=16)
        b = filled(case, dtype, (count, k, n), strides=(n * ld, 1, ld), align=16)
        out = result(dtype, (m, n), align=16)
        values = (a, b, out)
        grid = (-(-n // 16), m) if few else (-(-n // 64), -(-m // int(kernel.parts["bm"])) + count)
        program = _grouped(kernel, values, (m, k, n), ends, grid, strides_of(b)[0], "nn_grouped_rows")
        # The first group grows, and every row keeps its group.
        growth = Growth(
            groups=1,
            axis=1,
            bytes={"mat_a": ld * dtype.size, "output": n * dtype.size},
            words={"params": growing(kernel, "params", {"m": 1})},
            values={"offsets": every(4 * count, 4, 1)},
        )
        yield replace(program, growth=growth if few else None)


def grouped_terms(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Terms in groups: a product for each."""
    dtype = kernel.dtype("mat_a")
    for m, n, _, ends in GROUPED[: 1 if case.is_quick else 3]:
        terms = ends[-1]
        a = filled(case, dtype, (m, terms), strides=(-(-terms // 4) * 4, 1), align=16)
        b = filled(case, dtype, (terms, n), strides=(-(-n // 4) * 4, 1), align=16)
        out = result(dtype, (len(ends), m, n), align=16)
        grid = (-(-n // 64), -(-m // int(kernel.parts["bm"])), len(ends))
        yield _grouped(kernel, (a, b, out), (m, terms, n), ends, grid, strides_of(out)[0], "nn_grouped_terms")


def _grouped(
    kernel: Kernel,
    values: tuple[View, View, View],
    sizes: tuple[int, int, int],
    ends: tuple[int, ...],
    grid: tuple[int, ...],
    batch_stride: int,
    name: str,
) -> Program:
    (a, b, out), (m, k, n) = values, sizes
    offsets = View(buffer=input_buffer(pack(DTYPES["int"], list(ends))), dtype=DTYPES["int"], shape=(len(ends),))
    params = {"m": m, "n": n, "k": k, "groups": len(ends), "batch_stride": batch_stride}
    for prefix, view, axes in (("a", a, "mk"), ("b", b, "kn"), ("out", out, "mn")):
        params |= {f"{prefix}_stride_{axis}": s for axis, s in zip(axes, strides_of(view)[-2:], strict=True)}
    arguments: dict[str | int, Value] = {
        "mat_a": a.buffer,
        "mat_b": b.buffer,
        "offsets": offsets.buffer,
        "output": out.buffer,
        "params": kernel.pack("params", params),
    }
    inputs = {"a": a, "b": b, "offsets": offsets}
    check = Reference(got=out, name=name, inputs=inputs, scale=k * 2.0**-19)
    step = groups(kernel, arguments, grid, (kernel.metadata.max_threads or 128,))
    return Program(label=f"{m} x {k} x {n}, groups end at {ends}", steps=[step], checks=[check])


# Outputs and terms: no multiple of a vector; one; longer than one turn of the loop.
VECTOR_SIZES = ((7, 37), (1, 1), (5, 530), (70, 64), (33, 3), (2, 1150))


def vector_rows(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`gemv_nt_a_b`: y = A x; a simdgroups a threadgroup, one row each; b elements are loaded at a time."""
    yield from _vector_products(kernel, case, matrix="A", per_group=int(kernel.parts["a"]), transposed=False)


def vector_columns(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`gemv_t_a_b`: y = B^T x; 32 * b columns a threadgroup, its a simdgroups share the rows."""
    yield from _vector_products(kernel, case, matrix="B", per_group=32 * int(kernel.parts["b"]), transposed=True)


def vector_tiles(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`gemv_t2d_a_b`: at least 32 columns a threadgroup, its lanes share rows too; groups past the end do nothing."""
    yield from _vector_products(kernel, case, matrix="B", per_group=32, transposed=True)


def _vector_products(kernel: Kernel, case: Case, *, matrix: str, per_group: int, transposed: bool) -> Iterator[Program]:
    dtype, simdgroups, width = kernel.dtype("y"), int(kernel.parts["a"]), int(kernel.parts["b"])
    tail = kernel.parts["tail"]
    for number, (n, length) in enumerate(VECTOR_SIZES[:3] if case.is_quick else VECTOR_SIZES):
        inner = 1 + number % 3 if "_strided" in tail else 1
        step = 1 if "_xc" in tail else 1 + number % 2
        run = n if transposed else length
        # Vectors are loaded whole: the host takes rows that begin at a multiple of one.
        ld = (run * inner + number + width - 1) // width * width
        strides = (inner, ld) if transposed else (ld, inner)
        align = width * dtype.size
        a = filled(case, dtype, (n, length), strides=strides, align=align)
        x = filled(case, dtype, (length,), strides=(step,), align=align)
        y = result(dtype, (n,), align=align)
        dims = {"n": n, "K": length, "ld": ld, "ms": inner, "xs": step}
        inputs: dict[str, object] = {"a": a, "x": x}
        bias = None
        if kernel.parts["mode"] == "ab":
            gap = 1 + number % 2
            bias = filled(case, dtype, (n,), strides=(gap,))
            dims |= {"bias_r": gap, "bias_c": gap}
            inputs |= {"bias": bias, "alpha": 1.5, "beta": -0.75}
        arguments: dict[str | int, Value] = {
            matrix: a.buffer,
            "x": x.buffer,
            "y": y.buffer,
            "gP": kernel.pack("gP", dims),
            "bias": bias.buffer if bias else None,
            "alpha_beta": kernel.pack("alpha_beta", [1.5, -0.75]),
        }
        launch = groups(kernel, arguments, (-(-n // per_group),), (32 * simdgroups,))
        name = "nn_mv_bias" if bias else "nn_mv"
        check = Reference(got=y, name=name, inputs=inputs, scale=length * 2.0**-20)
        yield Program(
            label=f"{n} outputs of {length} terms, strides {strides}, x {step}", steps=[launch], checks=[check]
        )


# Rows, terms, columns.
QUANTIZED_SIZES = ((5, 64, 33), (33, 96, 16), (1, 32, 70), (2, 1056, 9))


def scaled(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`scaled_mm`: 8-bit floats times one scale, or one for each row and column; tiles of 32, or a few rows at once."""
    few = kernel.parts.get("few")
    dtype, kind = kernel.dtype("out"), DTYPES["float8_e4m3fn"]
    for number, (m, k, n) in enumerate(QUANTIZED_SIZES):
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
        # More columns: what is left of each row lies further on, and the rows further apart.
        more = 64 if is_large else 8
        growth = Growth(
            groups=1,
            axis=1 if is_large else 0,
            bytes={"B": more * k, "scalesAndZeros": more * dtype.size, "outputData": more * dtype.size},
            stretched={"outputData": (n * dtype.size, more * dtype.size)},
            words={"sizes": growing(kernel, "sizes", (0, 0, more))},
        )
        yield Program(label=f"{m} x {k} x {n}", steps=[step], checks=[check], growth=growth)


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
