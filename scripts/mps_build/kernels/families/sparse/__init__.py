"""Sparse tensors: coalescing, products, softmax, pointers."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from ...program.dtypes import DTYPES
from ...program.launch import Check, Growth, Known, Program, Reference, Value, View, every, inout_buffer, scratch_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, growing, numbered, result, threads, zeroed


def mapped(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread an element: `options` name source, target and reference; neighbours are read."""
    source, target = kernel.options["source"], kernel.options["target"]
    for count, stride in ((1, 1), (37, 4), (200, 64)):
        x = filled(case, kernel.dtype(source), (count,), low=0, high=3)
        y = result(kernel.dtype(target), (count,))
        arguments: dict[str | int, Value] = {source: x.buffer, target: y.buffer}
        constants = {"stride": stride, "nnz": count}
        arguments |= {name: kernel.pack(name, value) for name, value in constants.items() if kernel.has(name)}
        inputs = {"x": x, "stride": stride}
        check = Reference(got=y, name=kernel.options["reference"], inputs=inputs)
        yield Program(label=f"{count} elements", steps=[threads(kernel, arguments, (count,))], checks=[check])


LONG = DTYPES["long"]


INT = DTYPES["int"]


BOOL = DTYPES["bool"]


def _keys(case: Case, count: int, most: int) -> list[int]:
    """Sorted whole numbers with repetitions."""
    return sorted(case.values.integers(count, 0, most))


def _firsts(keys: Sequence[int]) -> list[int]:
    return [int(at == 0 or keys[at - 1] != each) for at, each in enumerate(keys)]


def flatten(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`flatten_indices`: one number for each column of indices (dimension by dimension)."""
    for count, factors in ((1, (5,)), (40, (35, 7, 1)), (33, (4, 1))):
        dims = len(factors)
        for strides in ((count, 1), (1, dims)):
            rows = case.values.integers(count * dims, 0, 6)
            want = [
                sum(rows[d * strides[0] + at * strides[1]] * factor for d, factor in enumerate(factors))
                for at in range(count)
            ]
            out = result(LONG, (count,))
            values = {"indices": numbered(LONG, rows), "row_muls": numbered(LONG, factors), "flat_indices": out}
            arguments = bound(kernel, {**values, "sparse_dim": dims, "idx_strides": strides})
            yield Program(
                label=f"{count} columns of {dims}, strides {strides}",
                steps=[threads(kernel, arguments, (count,))],
                checks=[Known(got=out, want=pack(LONG, want))],
            )


def output_positions(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`compute_output_positions`: how many firsts lie before each."""
    for count in (1, 45):
        marks = _firsts(_keys(case, count, count // 2))
        out = result(INT, (count,))
        values = {"is_unique": numbered(BOOL, marks), "positions": out}
        want = pack(INT, [sum(marks[:at]) for at in range(count)])
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{count} marks", steps=[step], checks=[Known(got=out, want=want)])


def mark_unique(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`mark_unique_positions_and_count`: the first of each run of equal keys, and how many there are."""
    for count in (1, 77):
        keys = _keys(case, count, count // 2)
        marks, out, total = _firsts(keys), result(BOOL, (count,)), zeroed(INT, (1,))
        values = {"flat_indices": numbered(LONG, keys), "is_unique": out, "count": total}
        checks = [Known(got=out, want=bytes(marks)), Known(got=total, want=pack(INT, [sum(marks)]))]
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{count} keys", steps=[step], checks=checks)


def coalesce(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`coalesce_with_positions`: the first of each run takes the sum of all its values, and its indices."""
    dtype = kernel.dtype("in_values")
    for count, width, dims in ((1, 1, 1), (40, 3, 2), (33, 5, 3), (12, 3, 1)):
        keys = _keys(case, count, count // 3)
        marks = _firsts(keys)
        total, positions = sum(marks), [sum(marks[:at]) for at in range(count)]
        rows = case.values.integers(dims * count, 0, 99)
        x = (
            filled(case, dtype, (count, width), low=0, high=3)
            if dtype.is_exact
            else filled(case, dtype, (count, width))
        )
        out, where = result(dtype, (total, width)), result(LONG, (dims, total))
        values: dict[str, object] = {"flat_indices": numbered(LONG, keys), "indices": numbered(LONG, rows)}
        values |= {"in_values": x, "is_unique": numbered(BOOL, marks), "output_positions": numbered(INT, positions)}
        values |= {"out_indices": where, "out_values": out, "nnz": count, "value_size": width}
        arguments = bound(kernel, values | {"sparse_dim": dims, "total_unique": total})
        kept = [rows[d * count + at] for d in range(dims) for at in range(count) if marks[at]]
        groups = [sum(marks[: at + 1]) - 1 for at in range(count)]
        inputs = {"x": x, "groups": groups, "total": total}
        scale = (
            0.0 if dtype.is_exact else 2.0 ** (-5 if dtype.name == "bfloat" else -8) if dtype.size == 2 else 2.0**-19
        )
        if dtype.name == "half2":
            scale = 2.0**-8
        checks: list[Check] = [
            Reference(got=out, name="sparse_sums", inputs=inputs, scale=scale),
            Known(got=where, want=pack(LONG, kept)),
        ]
        yield Program(
            label=f"{count} x {width}, {total} different", steps=[threads(kernel, arguments, (count,))], checks=checks
        )


def gather_multiply(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`fused_gather_mul`: rows of two tensors, chosen and multiplied; the indices of the left ones are copied."""
    dtype = kernel.dtype("lhs_vals")
    for left, right, taken, width, dims in ((5, 7, 4, 3, 2), (20, 9, 33, 1, 1), (3, 3, 2, 40, 3)):
        a, b = filled(case, dtype, (left, width)), filled(case, dtype, (right, width))
        one, two = case.values.integers(taken, 0, left - 1), case.values.integers(taken, 0, right - 1)
        rows = case.values.integers(dims * left, 0, 99)
        out, where = result(dtype, (taken, width)), result(LONG, (dims, taken))
        x, y = numbered(LONG, one), numbered(LONG, two)
        values: dict[str, object] = {"lhs_vals": a, "rhs_vals": b, "lhs_sel": x, "rhs_sel": y, "out_vals": out}
        values |= {"lhs_indices": numbered(LONG, rows), "out_indices": where}
        arguments = bound(kernel, values | {"dims_input": (dims, left), "dims_output": (taken, width)})
        checks: list[Check] = [
            Reference(got=out, name="sparse_rows_product", inputs={"a": a, "b": b, "one": x, "two": y}),
            Known(got=where, want=pack(LONG, [rows[d * left + each] for d in range(dims) for each in one])),
        ]
        yield Program(
            label=f"{taken} of {left} and {right}, {width} wide",
            steps=[threads(kernel, arguments, (width, 1, taken))],
            checks=checks,
        )


def dense_multiply(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`dense_sparse_mul`: each value times the dense row at its indices; sparse_params (values, dimensions, width)."""
    dtype = kernel.dtype("dense")
    for count, sizes, width in ((4, (3, 5), 7), (33, (9,), 1), (6, (2, 3, 4), 5)):
        dense = filled(case, dtype, (*sizes, width))
        values_ = filled(case, dtype, (count, width))
        columns = [case.values.integers(count, 0, size - 1) for size in sizes]
        index = numbered(LONG, [each for column in columns for each in column], (len(sizes), count))
        out = result(dtype, (count, width))
        values: dict[str, object] = {"dense": dense, "values": values_, "out_values": out, "indices": index}
        values |= {"sizes": numbered(LONG, sizes), "sparse_params": (count, len(sizes), width)}
        check = Reference(got=out, name="sparse_dense_product", inputs={"dense": dense, "x": values_, "index": index})
        step = threads(kernel, bound(kernel, values), (width, 1, count))
        yield Program(label=f"{count} in {sizes}, {width} wide", steps=[step], checks=[check])


def spmm(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`spmm_addmm_coo`: beta * t + alpha * sparse @ dense; a thread an element; dims (rows, inner, columns)."""
    dtype = kernel.dtype("vals")
    factors = (2.0, 3.0) if dtype.is_exact else (1.5, -0.75)
    for count, (m, k, n), beta in ((1, (2, 2, 4), factors[1]), (9, (5, 7, 3), factors[1]), (40, (3, 11, 20), 0.0)):
        rows, columns = _keys(case, count, m - 1), case.values.integers(count, 0, k - 1)
        index = numbered(LONG, [*rows, *columns], (2, count))
        x, dense, before = (filled(case, dtype, shape) for shape in ((count,), (k, n), (m, n)))
        if dtype.name in ("char", "uchar", "bool"):
            x, dense, before = (filled(case, dtype, v.shape, low=0, high=1) for v in (x, dense, before))
        if count == 1:  # an explicit zero: every row is that of `t` alone
            x = numbered(dtype, [0] * (2 if dtype.kind == "complex" else 1), (1,))
        out = result(dtype, (m, n))
        values: dict[str, object] = {"indices2d": index, "vals": x, "dense": dense, "t_in": before, "out": out}
        values |= {"dims": (m, k, n), "alpha_beta": (factors[0], beta), "nnz": count}
        inputs = {"index": index, "x": x, "dense": dense, "t": before, "alpha": factors[0], "beta": beta, "m": m}
        check = Reference(got=out, name="sparse_addmm", inputs=inputs, scale=_rounded(dtype.name, count))
        step = threads(kernel, bound(kernel, values), (n, 1, m))
        yield Program(label=f"{count} values, {m} x {k} x {n}", steps=[step], checks=[check])


def _rounded(name: str, count: int) -> float:
    """Sums of `count` products up to 4, rounded as they go."""
    unit = {"half": 2.0**-10, "half2": 2.0**-10, "bfloat": 2.0**-7}.get(name, 2.0**-21)
    return 0.0 if name in ("long", "int", "short", "char", "uchar", "bool") else max(count, 1) * unit


def spmm_rows(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`spmm_bmm_coo_rows_grouped`: a batch of products; row_ptr says where each row's values begin."""
    dtype = kernel.dtype("vals")
    for batch, (m, k, n), each in ((2, (3, 5, 7), 6), (1, (4, 9, 40), 11), (3, (2, 2, 2), 1)):
        rows = [_keys(case, each, m - 1) for _ in range(batch)]
        columns, starts = case.values.integers(batch * each, 0, k - 1), []
        for b, line in enumerate(rows):
            starts += [b * each + bisect_left(line, row) for row in range(m)] + [(b + 1) * each]
        low, high = (0, 1) if dtype.name in ("char", "uchar", "bool") else (-2, 2)
        x = filled(case, dtype, (batch * each,), low=low, high=high)
        dense = filled(case, dtype, (batch, k, n), low=low, high=high)
        out, cols = result(dtype, (batch, m, n)), numbered(LONG, columns)
        values: dict[str, object] = {"cols": cols, "vals": x, "dense": dense, "out": out}
        values |= {"row_ptr": numbered(LONG, starts), "dims": (batch, m, k, n)}
        order = numbered(LONG, [row for line in rows for row in line])
        inputs = {"rows": order, "cols": cols, "x": x, "dense": dense, "m": m}
        check = Reference(got=out, name="sparse_bmm", inputs=inputs, scale=_rounded(dtype.name, each))
        step = threads(kernel, bound(kernel, values), (32, m, batch))
        step = type(step)(
            kernel=step.kernel, arguments=step.arguments, grid=step.grid, threadgroup=(32, 1, 1), free=False
        )
        yield Program(label=f"{batch} x {m} x {k} x {n}", steps=[step], checks=[check])


def row_pointers(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`build_row_ptr_from_sorted_rows_by_batch`: where each row of each batch begins; dims (rows, batches)."""
    for count, m, batch in ((30, 7, 3), (5, 2, 1), (9, 40, 2)):
        lines = [_keys(case, count, m - 1) for _ in range(batch)]
        want = [b * count + bisect_left(line, row) for b, line in enumerate(lines) for row in range(m + 1)]
        out = result(LONG, (batch, m + 1))
        values = {"rows": numbered(LONG, [row for line in lines for row in line]), "row_ptr": out}
        values["batch_ptr"] = numbered(LONG, [b * count for b in range(batch + 1)])
        arguments = bound(kernel, values | {"dims": (m, batch)})
        step = threads(kernel, arguments, (m + 1, batch))
        yield Program(label=f"{batch} x {m}", steps=[step], checks=[Known(got=out, want=pack(LONG, want))])


def batch_pointers(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`build_batch_ptr_from_sorted_batches`: where each batch begins; nnz_B (values, batches)."""
    for count, batch in ((30, 4), (1, 1), (40, 33)):
        keys = _keys(case, count, batch - 1)
        out = result(LONG, (batch + 1,))
        values = {"batches": numbered(LONG, keys), "batch_ptr": out, "nnz_B": (count, batch)}
        want = pack(LONG, [bisect_left(keys, b) for b in range(batch + 1)])
        step = threads(kernel, bound(kernel, values), (batch + 1,))
        yield Program(label=f"{count} in {batch}", steps=[step], checks=[Known(got=out, want=want)])


def intersect(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`intersect_binary_search`: pairs of equal keys, in the order in which an atomic counter gives them places."""
    for (many, few), is_left in itertools.product(((40, 25), (1, 1), (33, 70)), (0, 1)):
        keys_a = sorted(case.values.random.sample(range(120), many))
        keys_b = sorted(case.values.random.sample(range(120), few))
        places = [(at, bisect_left(keys_b, key)) for at, key in enumerate(keys_a) if key in keys_b]
        room = len(places)
        one, two = zeroed(LONG, (max(room, 1),)), zeroed(LONG, (max(room, 1),))
        total = View(buffer=inout_buffer(bytes(4)), dtype=DTYPES["uint"], shape=(1,))
        values: dict[str, object] = {"keysA": numbered(LONG, keys_a), "keysB": numbered(LONG, keys_b)}
        values |= {"outA_idx": one, "outB_idx": two, "counter": total, "lenB": few, "A_is_lhs": bool(is_left)}
        step = threads(kernel, bound(kernel, values), (many,))
        checks: list[Known | Reference] = [Known(got=total, want=pack(DTYPES["uint"], [room]))]
        if room:
            flat = [each for pair in places for each in (pair if is_left else pair[::-1])]
            inputs: dict[str, object] = {"a": one, "b": two, "pairs": numbered(LONG, flat, (room, 2))}
            checks += [
                Reference(got=got, name="sparse_pairs", inputs={**inputs, "which": which})
                for which, got in enumerate((one, two))
            ]
        yield Program(
            label=f"{many} in {few}, left {is_left}",
            steps=[step],
            checks=checks,
            varies="places are given by an atomic",
        )


def softmax(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`softmax_sparse`: a thread a pool of rows, one column after the other."""
    is_backward, dtype = kernel.has("grad_output"), kernel.dtype("output")
    for sizes, width, is_log in (((3, 1, 7), 4, 0), ((3, 1, 7), 4, 1), ((33,), 1, 0), ((1, 2), 5, 1)):
        count = sum(sizes)
        starts = [sum(sizes[:at]) for at in range(len(sizes))]
        pools = [pool + 1 for pool, size in enumerate(sizes) for _ in range(size)]
        x = filled(case, dtype, (count, width), low=-4, high=0 if is_backward else 4)
        dy, out = filled(case, dtype, (count, width)), result(dtype, (count, width))
        values: dict[str, object] = {"values": x, "output": x if is_backward else out, "grad_input": out}
        values |= {"grad_output": dy, "nnz_nvalues": (count, width), "is_log": bool(is_log)}
        begins, lengths = numbered(INT, starts), numbered(INT, list(sizes))
        values |= {"pool_offsets": begins, "offsets": begins, "pool_sizes": lengths, "counts": lengths}
        values["scan"] = numbered(INT, pools)
        inputs: dict[str, object] = {"x": x, "sizes": list(sizes), "log": bool(is_log)}
        name = "sparse_softmax_backward" if is_backward else "sparse_softmax"
        # Sums of up to 33 terms up to 8.
        unit = {"half": 2.0**-10, "bfloat": 2.0**-7}.get(dtype.name, 2.0**-22)
        check = Reference(got=out, name=name, inputs=inputs | ({"dy": dy} if is_backward else {}), scale=64 * unit)
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"pools of {sizes}, {width} wide, log {is_log}", steps=[step], checks=[check])


def offsets_and_counts(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`compute_offsets_and_counts`: where each run of equal numbers begins, and how long it is; a thread an element,
    of which each run has at least one."""
    for sizes in ((1,), (3, 1, 7, 20), (40, 2)):
        scan = [pool + 1 for pool, size in enumerate(sizes) for _ in range(size)]
        many, runs = len(scan), len(sizes)
        # What it writes for the elements beyond the runs is not used.
        out, lengths = (View(buffer=scratch_buffer(4 * many), dtype=INT, shape=(runs,)) for _ in range(2))
        values = {"scan": numbered(INT, scan), "offsets": out, "counts": lengths, "total_elements": many}
        checks = [
            Known(got=out, want=pack(INT, [sum(sizes[:at]) for at in range(runs)])),
            Known(got=lengths, want=pack(INT, list(sizes))),
        ]
        # More elements in front, which belong to no run that is tested.
        growth = Growth(
            bytes={"scan": 4},
            words={"total_elements": growing(kernel, "total_elements", 1)},
            results={"offsets": every(4 * many, 4, 1)},
        )
        step = threads(kernel, bound(kernel, values), (many,))
        yield Program(label=f"runs of {sizes}", steps=[step], checks=checks, growth=growth)
