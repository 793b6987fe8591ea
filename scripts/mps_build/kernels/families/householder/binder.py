"""Products of Householder reflections (`orgqr`)."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.launch import Program, Reference, scratch_buffer
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, groups, started, threads

# Matrices, rows, columns, reflections.
REFLECTED = ((1, 5, 3, 3), (2, 12, 9, 7), (1, 4, 4, 1))


def reflections(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`orgqr`: the first columns of a product of reflections; a threadgroup, or up to 2.10 m * m threads, a matrix."""
    dtype = kernel.dtype("A")
    for count, m, n, k in REFLECTED:
        given, tau = (filled(case, dtype, shape, low=-1, high=1) for shape in ((count, m, n), (count, k)))
        memory, room = started(given), count * m * m * dtype.size
        params = {"num_batch_dims": 1, "m": m, "m2": m * m, "n": n, "k": k, "A_strides": [m * n, n, 1]}
        params |= {"tau_strides": [k, 1], "H_strides": [m * m, m, 1], "H_sizes": [count, m, m]}
        known = {each.name for each in kernel.argument("params").fields}
        values: dict[str, object] = {"A": memory, "tau": tau}
        values |= {name: scratch_buffer(room) for name in ("H", "H_prod", "H_prod_work")}
        values["params"] = {name: value for name, value in params.items() if name in known}
        arguments = bound(kernel, values)
        whole = kernel.has("H_prod_work")
        step = groups(kernel, arguments, (count,), (64,)) if whole else threads(kernel, arguments, (count * m * m,))
        # Products of k matrices, each rounded to the element type.
        scale = k * m * {"half": 2.0**-9, "half2": 2.0**-9, "bfloat": 2.0**-6}.get(dtype.name, 2.0**-20)
        check = Reference(got=memory, name="reflections", inputs={"a": given, "tau": tau}, scale=scale)
        yield Program(label=f"{count} of {m} x {n}, {k} reflections", steps=[step], checks=[check])
