"""Sums, products, norms, variances and others, a binder for each layout."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.launch import dense_strides
from ..shared.contracts import Kernel
from ..shared.reduced import Layout, of_layouts, params_of, parts_of


@of_layouts
def outer(kernel: Kernel) -> Iterator[Layout]:
    """`outer`: sizes (length, inner, chunks), strides (length, inner, outer) in elements; 32 columns a threadgroup.

    Chunks came in 2.15, with `param`; before, a threadgroup goes through the whole length.
    """
    height = min(32, (kernel.metadata.max_threads or 1024) // 32)
    most = 3 if kernel.has("param") else 1
    for length, inner, chunks, batch, pad in (
        (5, 37, 1, 3, 0),
        (300, 33, 1, 2, 3),
        (96, 40, most, 1, 0),
        (1, 4, 1, 1, 0),
    ):
        row = inner + pad
        if chunks > 1:
            part = length // chunks
            shape, strides, groups = (chunks, part, inner), (row * part, row, 1), (chunks, 1)
        else:
            shape, strides, groups = (batch, length, inner), (row * length, row, 1), (1, batch)
        yield Layout(
            shape=shape,
            dims=(1,),
            strides=strides,
            elements=row * length * batch,
            constants={"sizes": (length, inner, chunks, 0), "strides": (row, 1, row * length, 0)},
            groups=(parts_of(inner, 32), *groups),
            threads=(32, height, 1),
        )


@of_layouts
def columns(_kernel: Kernel) -> Iterator[Layout]:
    """`outer` up to 2.13: sizes (length, inner, step of the result); 32 columns a threadgroup of 32 by 32."""
    for length, inner in ((5, 37), (300, 33), (96, 40), (1, 4)):
        yield Layout(
            shape=(length, inner),
            dims=(0,),
            constants={"sizes": (length, inner, 1)},
            groups=(parts_of(inner, 32), 1, 1),
            threads=(32, 32, 1),
        )


@of_layouts
def innermost(_kernel: Kernel) -> Iterator[Layout]:
    """`innermost`: sizes (rows, length); one simdgroup a row."""
    for rows, length, threads in ((3, 5, 64), (5, 300, 32), (1, 1, 96), (2, 1030, 128)):
        yield Layout(
            shape=(rows, length),
            dims=(1,),
            constants={"sizes": (rows, length)},
            groups=(parts_of(rows, threads // 32), 1, 1),
            threads=(threads, 1, 1),
        )


@of_layouts
def chunk(_kernel: Kernel) -> Iterator[Layout]:
    """`innermost_chunk`: sizes (rows, length, lanes a row, chunks); result (rows, chunks)."""
    for rows, length, lanes, chunks, threads in (
        (5, 36, 4, 1, 64),
        (3, 600, 32, 3, 96),
        (7, 3, 1, 1, 32),
        (2, 99, 8, 3, 32),
    ):
        yield Layout(
            shape=(rows, chunks, length // chunks),
            dims=(2,),
            constants={"sizes": (rows, length, lanes, chunks)},
            groups=(parts_of(rows * chunks * lanes, threads), 1, 1),
            threads=(threads, 1, 1),
        )


@of_layouts
def narrow(kernel: Kernel) -> Iterator[Layout]:
    """`narrow`: sizes (length, inner up to 31, chunks: third, or up to 2.14 fourth); of 256 threads as many as whole
    rows have.

    `strided`: strides (row, column, outer).
    """
    step, gap = (2, 1) if kernel.has("strides") else (1, 0)
    for length, inner, chunks, batch in ((700, 3, 1, 2), (90, 31, 3, 1), (9, 16, 1, 1), (33, 1, 1, 3)):
        row = inner * step + gap
        whole = row * length + gap
        constants: dict[str, object] = {"sizes": (length, inner, chunks, chunks)}
        if kernel.has("strides"):
            constants["strides"] = (row, step, whole)
        if chunks > 1:
            part = length // chunks
            shape, strides, groups = (chunks, part, inner), (part * row, row, step), (1, chunks, 1)
        else:
            shape, strides, groups = (batch, length, inner), (whole, row, step), (1, 1, batch)
        yield Layout(
            shape=shape,
            dims=(1,),
            strides=strides,
            elements=whole * batch,
            constants=constants,
            groups=groups,
            threads=(256 // inner * inner, 1, 1),
        )


@of_layouts
def flat(_kernel: Kernel) -> Iterator[Layout]:
    """`flat`: params (elements, elements a threadgroup); one partial result a threadgroup, never finished."""
    for groups, each, threads in ((1, 5, 32), (3, 1100, 64), (2, 4100, 128), (2, 36, 96)):
        yield Layout(
            shape=(groups, each),
            dims=(1,),
            constants={"params": (groups * each, each)},
            groups=(groups, 1, 1),
            threads=(threads, 1, 1),
            param=0.0,
        )


@of_layouts
def flat_strided(_kernel: Kernel) -> Iterator[Layout]:
    """`flat_strided`: n0 by n2 rows of n1 elements. `n1` gives the lanes a row has, and with the threadgroup how many
    rows it takes at once; with n2 = threadgroups * rows each threadgroup's share is a strided view.
    """
    for n0, n1, n2, step, gap, groups, threads in (
        (3, 40, 5, 1, 7, 1, 64),
        (4, 33, 6, 2, 0, 3, 128),
        (2, 600, 2, 1, 3, 2, 64),
        (5, 3, 8, 1, 1, 2, 128),
    ):
        lanes = 32
        while lanes < n1 and lanes < threads:
            lanes *= 2
        together = threads // min(lanes, threads)
        block = step * n1
        s0 = block * n2 + gap
        if groups == 1:
            shape, strides, dims = (1, n0, n2, n1), (0, s0, block, step), (1, 2, 3)
        elif n2 == groups * together:
            shape, strides, dims = (n0, groups, together, n1), (s0, together * block, block, step), (0, 2, 3)
        else:
            raise ValueError(f"{n2} rows do not divide into {groups} threadgroups of {together}")
        yield Layout(
            shape=shape,
            dims=dims,
            strides=strides,
            elements=s0 * n0,
            param=0.0,
            constants={"sizes": (n0, n1, n2, 0), "strides": (s0, step, 0, 0)},
            groups=(groups, 1, 1),
            threads=(threads, 1, 1),
        )


@of_layouts
def strided_parts(_kernel: Kernel) -> Iterator[Layout]:
    """`strided` up to 2.14: NormParams of a whole, strided tensor; each threadgroup has an equal part, in order."""
    for shape, order, gap, groups, threads in (
        ((6, 5, 7), (0, 2, 1), 1, 3, 64), ((4, 300), (1, 0), 0, 2, 96), ((1, 9, 3), (2, 0, 1), 2, 1, 32),
    ):  # fmt: skip
        strides, elements = [0] * len(shape), 1 + gap
        for d in order:
            strides[d], elements = elements, elements * shape[d]
        params = {
            "reduction_size": math.prod(shape) // groups,
            "ndim": len(shape),
            "input_sizes": shape,
            "input_strides": strides,
            "output_sizes": [1] * len(shape),
            "output_strides": [1] * len(shape),
        }
        yield Layout(
            shape=(groups, shape[0] // groups, *shape[1:]),
            dims=tuple(range(1, len(shape) + 1)),
            strides=(strides[0] * (shape[0] // groups), *strides),
            elements=elements,
            constants={"params": params},
            groups=(groups, 1, 1),
            threads=(threads, 1, 1),
            param=0.0,
        )


@of_layouts
def general(kernel: Kernel) -> Iterator[Layout]:
    """`op_reduction`: NormParams; one threadgroup an element of the result."""
    cases = (
        ((6, 100), (1,), 32),
        ((3, 7, 5), (1,), 64),
        ((37, 4), (0,), 96),
        ((4, 3, 9), (0, 2), 64),
        ((1, 2500), (1,), 1024),
    )
    for shape, dims, threads in cases:
        out = tuple(1 if d in dims else n for d, n in enumerate(shape))
        group = min(threads, kernel.metadata.max_threads or 1024)
        length = math.prod(shape) // math.prod(out)
        params = {
            "reduction_size": length,
            "ndim": len(shape),
            "input_sizes": shape,
            "input_strides": dense_strides(shape),
            "output_sizes": out,
            "output_strides": dense_strides(out),
        }
        for p in params_of(kernel, length):
            yield Layout(
                shape=shape,
                dims=dims,
                constants={"params": {**params, "p": p}},
                param=p,
                groups=(math.prod(out), 1, 1),
                threads=(group, 1, 1),
            )
