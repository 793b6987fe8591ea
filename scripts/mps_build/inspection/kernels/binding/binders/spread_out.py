"""Strided forms of a few operators: cross products, glu's gradient, frexp, coefficients; sums of products."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ...dtypes import DTYPES
from ...program import Addresses, Known, Program, Reference, Shape, View, dense_strides, inout_buffer
from ...values import pack
from ..contracts import Case, Kernel, NotBound
from .elementwise import spread_output
from .tensors import bound, filled, groups, numbered, result, strides_of, swept, threads

# Shape, and the dimension of three along which products are taken; strides of operands differ.
CROSSES = (((3, 5), 0), ((4, 3, 2), 1), ((2, 2, 5, 3), 3), ((3,), 0))


def _placed(shape: Shape, gap: int) -> Shape:
    """Strides of a tensor with gaps, whose outermost dimension lies innermost."""
    return (gap, *(each * shape[0] * gap for each in dense_strides(shape[1:])))


def cross(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`cross_strided`: sizes without `dim`; strides in elements, all innermost first."""
    dtype = kernel.dtype("input")
    for shape, dim in CROSSES:
        a, b = filled(case, dtype, shape, strides=_placed(shape, 2)), filled(case, dtype, shape)
        if dtype.size == 1:
            a, b = (filled(case, dtype, v.shape, strides=v.strides, low=0, high=5) for v in (a, b))
        out = spread_output(dtype, shape, tuple(range(len(shape))))
        last = len(shape) - 1
        sizes = [n for d, n in enumerate(shape) if d != dim][::-1]
        values: dict[str, object] = {"out": out, "input": a, "other": b, "squashed_sizes": sizes or [1]}
        for name, view in (("out", out), ("input", a), ("other", b)):
            values[f"{name}_strides"] = strides_of(view)[::-1]
        values |= {"ndim": len(shape), "dim": last - dim}
        scale = {"half": 2.0**-9, "half2": 2.0**-8, "bfloat": 2.0**-6}.get(
            dtype.name, 0 if dtype.is_exact else 2.0**-20
        )
        check = Reference(got=out, name="spread_cross", inputs={"a": a, "b": b, "dim": dim}, scale=scale)
        step = threads(kernel, bound(kernel, values), (out.count // 3,))
        yield Program(label=f"{shape} along {dim}", steps=[step], checks=[check])


def glu_backward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`glu_backward`: sizes and strides (bytes) of the half that goes in, and where the other half begins."""
    names = {"float": "float", "half": "half", "bfloat": "bfloat"}
    dtype = DTYPES[names[kernel.parts["T"]]]
    size = dtype.size
    for shape in ((3, 5), (33, 2), (2, 3, 4)):
        whole = (*shape[:-1], 2 * shape[-1])
        x = filled(case, dtype, whole, strides=_placed(whole, 1), low=-4, high=4)
        dx = result(dtype, whole, strides=_placed(whole, 1))
        dy = filled(case, dtype, shape, strides=tuple(2 * each for each in dense_strides(shape)))
        half = shape[-1] * strides_of(x)[-1] * size
        values: dict[str, object] = {"grad_input": dx, "input": x, "grad_output": dy, "sizes": shape[::-1]}
        for name, view in (("grad_input", dx), ("input", x), ("grad_output", dy)):
            values[f"{name}_strides"] = [each * size for each in strides_of(view)[::-1]]
        values |= {"grad_input_byte_offset": half, "input_byte_offset": half, "ndim": len(shape)}
        scale = {"half": 2.0**-9, "bfloat": 2.0**-6}.get(dtype.name, 2.0**-21)
        check = Reference(got=dx, name="nn_glu_backward", inputs={"dy": dy, "x": x}, scale=scale)
        step = threads(kernel, bound(kernel, values), (dy.count,))
        yield Program(label=f"{whole}", steps=[step], checks=[check])


def frexp(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`frexp_strided`: sizes and strides (bytes) innermost first, of three tensors."""
    dtype, whole = DTYPES[kernel.parts["T"]], DTYPES["int"]
    for shape in ((37,), (5, 7), (2, 3, 11)):
        x = filled(case, dtype, shape, strides=tuple(2 * each for each in dense_strides(shape)), low=-300, high=300)
        mantissa = spread_output(dtype, shape, tuple(reversed(range(len(shape)))))
        exponent = spread_output(whole, shape, tuple(range(len(shape))))
        values: dict[str, object] = {"mantissa": mantissa, "exponent": exponent, "input": x, "sizes": shape[::-1]}
        for name, view in (("mantissa", mantissa), ("exponent", exponent), ("input", x)):
            values[f"{name}_strides"] = [each * view.dtype.size for each in strides_of(view)[::-1]]
        values["ndim"] = len(shape)
        checks = [
            Reference(got=mantissa, name="nn_frexp_mantissa", inputs={"input": x}),
            Reference(got=exponent, name="nn_frexp_exponent", inputs={"input": x}),
        ]
        step = threads(kernel, bound(kernel, values), (x.count,))
        yield Program(label=f"{shape}", steps=[step], checks=checks)


def combination(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`compute_linear_combination`: out += the sum of in[k] * coeff[k]; params (strides of k, count, dimensions)."""
    name = kernel.parts["T"]
    dtype = DTYPES[name]
    for shape, count in (((5, 7), 3), ((33,), 1), ((2, 3, 4), 6)):
        x = filled(case, dtype, (count, *shape))
        # Coefficients are real, whatever the numbers are.
        kind = DTYPES[{"float2": "float", "half2": "half"}.get(name, name)]
        coefficients = filled(case, kind, (*shape, count))
        before = filled(case, dtype, shape)
        out = View(buffer=inout_buffer(before.buffer.data), dtype=dtype, shape=shape)
        size = dtype.size
        inner = {"out": strides_of(out), "in": strides_of(x)[1:], "coeff": strides_of(coefficients)[:-1]}
        values: dict[str, object] = {"out_ptr": out, "in_ptr": x, "coeff_ptr": coefficients, "sizes": shape[::-1]}
        sizes = {"out": size, "in": size, "coeff": kind.size}
        values |= {f"{each}_strides": [s * sizes[each] for s in strides[::-1]] for each, strides in inner.items()}
        values["params"] = (strides_of(x)[0], 1, count, len(shape))
        inputs = {"before": before, "x": x, "coefficients": coefficients}
        scale = count * {"half": 2.0**-8, "half2": 2.0**-7, "bfloat": 2.0**-5}.get(name, 2.0**-19)
        check = Reference(got=out, name="spread_combination", inputs=inputs, scale=scale)
        step = threads(kernel, bound(kernel, values), (out.count,))
        yield Program(label=f"{count} of {shape}", steps=[step], checks=[check])


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


CHUNK = 65536


def unscale_many(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`ampNonFiniteCheckAndUnscale`: a threadgroup a chunk of a tensor; foundInf becomes 1 where one is not finite."""
    dtype = DTYPES[kernel.parts["T"]]
    for lengths, is_finite in (((37, 5), True), ((3, CHUNK + 70, 200), True), ((300, 4), False)):
        tensors = [
            filled(case, dtype, (n,)) if is_finite or at else swept(case, dtype, (n,)) for at, n in enumerate(lengths)
        ]
        after = [inout_buffer(each.buffer.data) for each in tensors]
        chunks = [(t, c) for t, n in enumerate(lengths) for c in range(-(-n // CHUNK))]
        size = kernel.argument("pointerArgs").size
        if size is None:
            raise NotBound("the struct of addresses has no size")
        flag = View(buffer=inout_buffer(bytes(4)), dtype=DTYPES["float"], shape=(1,))
        factor = filled(case, kernel.dtype("invScale"), (1,), low=0.25, high=0.5)
        table = {"numels": list(lengths), "threadgroup_to_tensor": [t for t, _ in chunks]}
        values: dict[str, object] = {"foundInf": flag, "invScale": factor}
        values |= {"metadata": {**table, "threadgroup_to_chunk": [c for _, c in chunks]}}
        values["pointerArgs"] = Addresses(data=bytes(size), places={8 * t: each for t, each in enumerate(after)})
        checks: list[Known | Reference] = [
            Reference(
                got=View(buffer=each, dtype=dtype, shape=x.shape), name="nn_unscale", inputs={"x": x, "factor": factor}
            )
            for each, x in zip(after, tensors, strict=True)
        ]
        checks.append(Known(got=flag, want=pack(DTYPES["float"], [0.0 if is_finite else 1.0])))
        step = groups(kernel, bound(kernel, values), (len(chunks),), (64,))
        yield Program(label=f"tensors of {lengths}, finite {is_finite}", steps=[step], checks=checks)


def unpack_pivots(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`unpack_pivots`: a thread a batch; the pivots' exchanges, one after the other, in a row of numbers."""
    dtype, kind = kernel.dtype("perm"), kernel.dtype("pivots")
    for batch, rows, count in ((3, 7, 5), (1, 40, 40), (33, 2, 1)):
        pivots = [[case.values.random.randint(at + 1, rows) for at in range(count)] for _ in range(batch)]
        want: list[int] = []
        for row in pivots:
            order = list(range(rows))
            for at, each in enumerate(row):
                order[at], order[each - 1] = order[each - 1], order[at]
            want += order
        perm = View(buffer=inout_buffer(pack(dtype, list(range(rows)) * batch)), dtype=dtype, shape=(batch, rows))
        params = {"perm_batch_stride": rows, "pivots_batch_stride": count, "dim_size": count}
        source = numbered(kind, list(itertools.chain(*pivots)))
        step = threads(kernel, bound(kernel, {"perm": perm, "pivots": source, "params": params}), (batch,))
        yield Program(label=f"{batch} x {rows}", steps=[step], checks=[Known(got=perm, want=pack(dtype, want))])
