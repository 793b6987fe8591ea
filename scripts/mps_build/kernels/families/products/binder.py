"""Products of matrices."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.launch import Program, Reference, Value
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, groups, result, strides_of, threads


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
