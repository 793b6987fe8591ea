"""One thread an element, told by the row's options; triangles; small products."""

from __future__ import annotations

from collections.abc import Iterator

from ...dtypes import DTYPES
from ...program import Check, Program, Reference, Value, View, inout_buffer
from ..contracts import Case, Kernel
from .tensors import filled, groups, result, strides_of, swept, threads


def elements(kernel: Kernel, case: Case) -> Iterator[Program]:
    """The row's options: `inputs` with bounds, `scalars` with values, `outputs` with references; `scale`."""
    options = kernel.options
    for count in (1, 37, 300):
        arguments: dict[str | int, Value] = {}
        inputs: dict[str, object] = {}
        for name, (low, high) in options["inputs"].items():
            view = filled(case, kernel.dtype(name), (count,), low=low, high=high)
            arguments[name], inputs[name] = view.buffer, view
        for name, value in options.get("scalars", {}).items():
            arguments[name], inputs[name] = kernel.pack(name, value), value
        checks: list[Check] = []
        for name, reference in options["outputs"].items():
            got = result(kernel.dtype(name), (count,))
            arguments[name] = got.buffer
            checks.append(Reference(got=got, name=reference, inputs=inputs, scale=float(options.get("scale", 0.0))))
        yield Program(label=f"{count} elements", steps=[threads(kernel, arguments, (count,))], checks=checks)


def triangle(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Threads (columns, rows, rest); sizes and strides innermost first, in elements; k_ndim = (diagonal, rank)."""
    op, is_inplace = kernel.parts["op"], kernel.has("self")
    dtype = kernel.dtype("self" if is_inplace else "inp")
    for shape, k in (((5, 7), 0), ((3, 6, 4), -1), ((2, 3, 4, 5), 2), ((9, 1), -3)):
        # Row-major of twice the size along the last dimension, so that strides are told apart.
        rows = [2]
        for n in reversed(shape[1:]):
            rows.append(rows[-1] * n)
        strides = tuple(reversed(rows))
        x = swept(case, dtype, shape, strides=strides)
        arguments: dict[str | int, Value] = {
            "sizes": kernel.pack("sizes", shape[::-1]),
            "k_ndim": kernel.pack("k_ndim", [k, len(shape)]),
        }
        if is_inplace:
            got = View(buffer=inout_buffer(x.buffer.data), dtype=dtype, shape=shape, strides=strides)
            arguments |= {"self": got.buffer, "strides": kernel.pack("strides", strides[::-1])}
        else:
            got = result(kernel.dtype("out"), shape)
            arguments |= {"out": got.buffer, "inp": x.buffer}
            arguments |= {"inp_strides": kernel.pack("inp_strides", strides[::-1])}
            arguments |= {"out_strides": kernel.pack("out_strides", strides_of(got)[::-1])}
        rest = 1
        for n in shape[:-2]:
            rest *= n
        check = Reference(got=got, name="nn_triangle", inputs={"x": x, "k": k, "upper": op == "triu"})
        step = threads(kernel, arguments, (shape[-1], shape[-2], rest))
        yield Program(label=f"{shape}, diagonal {k}", steps=[step], checks=[check])


def eye(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Ones on the diagonal: of the whole matrix, or alone (`eye_diag`, into zeros)."""
    dtype = kernel.dtype("output")
    is_diagonal = kernel.has("diag_stride")
    for rows, columns in ((3, 5), (6, 2), (1, 1)):
        data = bytes(rows * columns * dtype.size)
        if is_diagonal:
            got = View(buffer=inout_buffer(data), dtype=dtype, shape=(rows, columns))
            arguments: dict[str | int, Value] = {"diag_stride": kernel.pack("diag_stride", columns + 1)}
            grid: tuple[int, ...] = (min(rows, columns),)
        else:
            got = result(dtype, (rows, columns))
            arguments = {"stride0": kernel.pack("stride0", columns), "stride1": kernel.pack("stride1", 1)}
            grid = (columns, rows)
        arguments["output"] = got.buffer
        check = Reference(got=got, name="nn_eye", inputs={"rows": rows, "columns": columns})
        yield Program(label=f"{rows} x {columns}", steps=[threads(kernel, arguments, grid)], checks=[check])


def cross(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each pair of vectors of three; `dim_stride` elements lie between components."""
    dtype = kernel.dtype("input")
    for outer, inner in ((1, 1), (5, 1), (3, 4)):
        a, b = (filled(case, dtype, (outer, 3, inner), low=-5.0, high=5.0) for _ in range(2))
        out = result(kernel.dtype("out"), (outer, 3, inner))
        arguments: dict[str | int, Value] = {
            "out": out.buffer,
            "input": a.buffer,
            "other": b.buffer,
            "dim_stride": kernel.pack("dim_stride", inner),
        }
        scale = 0.0 if dtype.is_exact else 50 * 2.0 ** {"half": -10, "bfloat": -7}.get(dtype.name, -22)
        if dtype.name == "half2":
            scale = 50 * 2.0**-9
        check = Reference(got=out, name="nn_cross", inputs={"a": a, "b": b}, scale=scale)
        yield Program(
            label=f"{outer} x 3 x {inner}", steps=[threads(kernel, arguments, (outer * inner,))], checks=[check]
        )


def glu(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Threads (half a row, rows); backward writes both halves."""
    dtype, is_backward = kernel.dtype("input"), kernel.has("grad_output")
    for rows, half in ((1, 1), (3, 37), (5, 4)):
        x, dy = filled(case, dtype, (rows, 2 * half)), filled(case, dtype, (rows, half))
        out = result(dtype, (rows, 2 * half) if is_backward else (rows, half))
        arguments: dict[str | int, Value] = {"input": x.buffer, "inner_half": kernel.pack("inner_half", half)}
        arguments |= {"grad_input": out.buffer, "grad_output": dy.buffer} if is_backward else {"out": out.buffer}
        inputs: dict[str, object] = {"x": x, "dy": dy} if is_backward else {"x": x}
        scale = 2.0 ** {"half": -9, "bfloat": -6}.get(dtype.name, -21)
        check = Reference(got=out, name="nn_glu_backward" if is_backward else "nn_glu", inputs=inputs, scale=scale)
        yield Program(label=f"{rows} x {half}", steps=[threads(kernel, arguments, (half, rows))], checks=[check])


def dhwio(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Threads (output channels, input channels, depth * height): rows of a kernel, moved."""
    dtype = kernel.dtype("source")
    for o, i, d, h, w in ((5, 3, 2, 3, 4), (1, 2, 1, 1, 3)):
        x = swept(case, dtype, (o, i, d, h, w))
        y = result(kernel.dtype("destination"), (d, h, w, i, o))
        names = ("output_channel", "input_channel", "depth", "height", "width")
        params: dict[str, object] = {f"{n}_stride": s for n, s in zip(names, strides_of(x), strict=True)}
        params |= {"output_channels": o, "input_channels_per_group": i, "kernel_height": h, "kernel_width": w}
        arguments: dict[str | int, Value] = {
            "source": x.buffer,
            "destination": y.buffer,
            "params": kernel.pack("params", params),
        }
        check = Reference(got=y, name="nn_dhwio", inputs={"x": x})
        yield Program(label=f"{x.shape}", steps=[threads(kernel, arguments, (o, i, d * h))], checks=[check])


def products(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def unscale(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Every element times 1/scale, in place; foundInf becomes 1 where one is not finite."""
    dtype = kernel.dtype("data")
    for is_finite in (True, False):
        x = filled(case, dtype, (37,)) if is_finite else swept(case, dtype, (300,))
        factor = filled(case, kernel.dtype("invScale"), (1,), low=0.25, high=0.5)
        got = View(buffer=inout_buffer(x.buffer.data), dtype=dtype, shape=x.shape)
        flag = View(buffer=inout_buffer(bytes(4)), dtype=DTYPES["float"], shape=(1,))
        arguments: dict[str | int, Value] = {"data": got.buffer, "foundInf": flag.buffer, "invScale": factor.buffer}
        checks = [
            Reference(got=got, name="nn_unscale", inputs={"x": x, "factor": factor}),
            Reference(got=flag, name="nn_found_inf", inputs={"x": x}),
        ]
        steps = [threads(kernel, arguments, x.shape)]
        yield Program(label=f"finite: {is_finite}", steps=steps, checks=checks)


def flip(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Strided copies by element width; sizes and strides innermost first, in bytes; `direct`: a thread a position."""
    dtype = {"8": DTYPES["char"], "16": DTYPES["short"], "32": DTYPES["int"], "64": DTYPES["long"]}[
        kernel.parts["bits"]
    ]
    for shape in ((3, 5, 7), (1, 4, 2)):
        a, _, c = shape
        x = swept(case, dtype, shape, strides=(2, 2 * a * c, 2 * a))
        y = result(dtype, shape, strides=(1, a * c, a))
        arguments: dict[str | int, Value] = {
            "output": y.buffer,
            "input": x.buffer,
            "output_strides": kernel.pack("output_strides", [s * dtype.size for s in strides_of(y)[::-1]]),
            "input_strides": kernel.pack("input_strides", [s * dtype.size for s in strides_of(x)[::-1]]),
        }
        if kernel.has("sizes"):
            arguments |= {"sizes": kernel.pack("sizes", shape[::-1]), "ndim": kernel.pack("ndim", 3)}
        grid = (x.count,) if kernel.has("sizes") else shape[::-1]
        check = Reference(got=y, name="nn_copy", inputs={"x": x})
        yield Program(label=f"{shape}", steps=[threads(kernel, arguments, grid)], checks=[check])
