"""Products of matrices, and padding with a constant."""

from __future__ import annotations

from collections.abc import Iterator

from ...dtypes import DTYPES
from ...program import Program, Reference, Value, View, dense_strides, input_buffer
from ...values import pack
from ..contracts import Case, Kernel
from .tensors import filled, groups, result, strides_of, swept, threads

# Rows, terms, columns.
SIZES = ((5, 7, 3), (33, 16, 17), (1, 40, 20))


def matmul(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Tiles of 16 x 16; sizes (M, K, N); strides (row, column) of the two matrices and the result, in elements."""
    dtype = kernel.dtype("mat1Data")
    for number, (m, k, n) in enumerate(SIZES):
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
    for number, (m, k, n) in enumerate(SIZES):
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


# Input sizes, pads before and after, outermost first.
PADDED = (((3, 4, 7), (1, 0, 2), (0, 2, 3)), ((2, 5, 9), (0, 1, 0), (0, 0, 0)), ((1, 1, 1), (2, 1, 5), (1, 3, 4)))


def constant_pad(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Four elements a thread; sizes innermost first; three dimensions where all is dense, else up to 16 and strides."""
    dtype, is_dense = kernel.dtype("input"), kernel.parts["form"] == "_dense"
    for number, (sizes, before, after) in enumerate(PADDED):
        large = tuple(n + a + b for n, a, b in zip(sizes, before, after, strict=True))
        gaps = tuple(2 * each for each in dense_strides(sizes)) if not is_dense and number % 2 == 0 else None
        x, got = swept(case, dtype, sizes, strides=gaps), result(dtype, large)
        fill = swept(case, dtype, (1,))
        params: dict[str, object] = {
            "output_sizes": large[::-1],
            "input_sizes": sizes[::-1],
            "left_pad": before[::-1],
        }
        quarter = -(-large[2] // 4)
        if is_dense:
            grid: tuple[int, ...] = (quarter, large[1], large[0])
        else:
            params |= {"input_strides": strides_of(x)[::-1], "output_strides": strides_of(got)[::-1], "ndim": 3}
            grid = (quarter, large[1] * large[0])
        arguments: dict[str | int, Value] = {
            "input": x.buffer,
            "output": got.buffer,
            "params": kernel.pack("params", params),
            "fill_value": fill.buffer.data,
        }
        inputs = {"x": x, "fill": fill, "left": list(before), "large": list(large)}
        check = Reference(got=got, name="nn_constant_pad", inputs=inputs)
        yield Program(label=f"{sizes} to {large}", steps=[threads(kernel, arguments, grid)], checks=[check])


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
        yield _grouped(kernel, values, (m, k, n), ends, grid, strides_of(b)[0], "nn_grouped_rows")


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
