"""`searchsorted` and `bucketize`."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.launch import Known, Program, Step
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, numbered, result


def searchsorted(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A loop over all values; boundaries of one dimension serve all rows; data_sort says in which order they rise."""
    dtype, kind = kernel.dtype("data_in"), kernel.dtype("data_out")
    for number, (rows, many, limits) in enumerate(((3, 9, 17), (1, 70, 32), (4, 5, 1), (2, 40, 33))):
        for right in (0, 1):
            is_flat = number == 1
            low = 0 if dtype.kind == "unsigned" else -12
            lines = [sorted(case.values.integers(limits, low, 40)) for _ in range(1 if is_flat else rows)]
            orders = []
            for _ in lines:
                order = list(range(limits))
                case.values.random.shuffle(order)
                orders.append(order)
            asked: list[float] = [*case.values.integers(rows * many - 2, low - 2 if low else 0, 45), low, 40]
            stored = [0] * (limits * len(lines))
            if kernel.has("data_sort"):
                for row, (line, order) in enumerate(zip(lines, orders, strict=True)):
                    for rank, at in enumerate(order):
                        stored[row * limits + at] = line[rank]
            else:
                stored = [each for line in lines for each in line]
            x = numbered(dtype, asked, (rows, many))
            out = result(kind, (rows, many))
            values: dict[str, object] = {"data_in": x, "data_bd": numbered(dtype, stored), "data_out": out}
            values |= {"idim_in": many, "idim_bd": limits, "numel_in": rows * many, "right": right}
            values |= {"is_1d_boundaries": int(is_flat), "data_sort": [each for order in orders for each in order]}
            found = []
            for at, each in enumerate(asked):
                line = lines[0 if is_flat else at // many]
                found.append(sum(other <= each if right else other < each for other in line))
            step = Step(
                kernel=kernel.name, arguments=bound(kernel, values), grid=(64, 1, 1), threadgroup=(16, 1, 1), free=False
            )
            yield Program(
                label=f"{rows} x {many} in {limits}, right {right}",
                steps=[step],
                checks=[Known(got=out, want=pack(kind, found))],
            )
