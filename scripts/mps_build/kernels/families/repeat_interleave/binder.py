"""`repeat_interleave`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Program, Reference, Value, View, input_buffer, output_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.strided import Arguments, known_bytes, one_launch
from ..shared.tensors import result, threads


def repeat_interleave(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each count: it writes its own index so often, before its cumulative sum."""
    kind = kernel.dtype("repeat_ptr")
    for count in (1, 37, 70):
        repeats = [*case.values.integers(count - 1, 0, 4), 2]
        sums = [sum(repeats[: i + 1]) for i in range(count)]
        x = View(buffer=input_buffer(pack(kind, repeats)), dtype=kind, shape=(count,))
        y = result(kernel.dtype("result_ptr"), (sums[-1],))
        arguments: dict[str | int, Value] = {
            "repeat_ptr": x.buffer,
            "cumsum_ptr": input_buffer(pack(DTYPES["long"], sums)),
            "result_ptr": y.buffer,
        }
        if kernel.has("repeat_stride"):
            arguments["repeat_stride"] = kernel.pack("repeat_stride", 1)
        check = Reference(got=y, name="nn_repeat", inputs={"x": x})
        yield Program(label=f"{count} counts", steps=[threads(kernel, arguments, (count,))], checks=[check])


def by_runs(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`repeat_interleave`: index i as often as repeat[i] says; cumsum is the running sum of repeat."""
    dtype = kernel.dtype("repeat_ptr")
    for count, every in ((33, 1), (20, 3), (1, 1)):
        numbers = [case.values.random.randrange(5) for _ in range(count)]
        numbers[-1] = 2
        spread = [0] * ((count - 1) * every + 1)
        spread[::every] = numbers
        want = [i for i, times in enumerate(numbers) for _ in range(times)]
        out = output_buffer(len(want) * dtype.size)
        arguments: Arguments = {
            "repeat_ptr": input_buffer(pack(dtype, spread)),
            "result_ptr": out,
            "cumsum_ptr": input_buffer(pack(DTYPES["long"], list(itertools.accumulate(numbers)))),
            "repeat_stride": kernel.pack("repeat_stride", every),
        }
        yield Program(
            label=f"{count} numbers, every {every}",
            steps=[one_launch(kernel, arguments, (count, 1, 1))],
            checks=[known_bytes(out, dtype, pack(dtype, want))],
        )
