"""Small steps over whole numbers of sparse tensors, and the step of a gradient scaler."""

from __future__ import annotations

from collections.abc import Iterator

from ...dtypes import DTYPES
from ...program import Program, Reference, Value, View, inout_buffer, input_buffer
from ...values import pack
from ..contracts import Case, Kernel
from .tensors import filled, result, threads


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


def update_scale(kernel: Kernel, case: Case) -> Iterator[Program]:
    """One thread: the scale shrinks where a gradient was not finite, and grows after enough steps that were."""
    kind, whole = kernel.dtype("scale"), DTYPES["int"]
    for found, tracker in ((0.0, 3), (0.0, 1), (1.0, 3)):
        before = View(buffer=input_buffer(pack(kind, [512.0])), dtype=kind, shape=(1,))
        scale = View(buffer=inout_buffer(before.buffer.data), dtype=kind, shape=(1,))
        steps = View(buffer=inout_buffer(pack(whole, [tracker])), dtype=whole, shape=(1,))
        values: dict[str, float] = {"scaleGrowthFactor": 2.5, "scaleBackoffFactor": 0.375, "growthInterval": 4}
        arguments: dict[str | int, Value] = {
            "scale": scale.buffer,
            "growth_tracker": steps.buffer,
            "foundInf": input_buffer(pack(kernel.dtype("foundInf"), [found])),
            **{name: kernel.pack(name, value) for name, value in values.items()},
        }
        inputs: dict[str, object] = {"scale": before, "tracker": tracker, "found": found}
        checks = [
            Reference(got=scale, name="nn_update_scale", inputs={**inputs, "which": 0}),
            Reference(got=steps, name="nn_update_scale", inputs={**inputs, "which": 1}),
        ]
        yield Program(label=f"found {found}, step {tracker}", steps=[threads(kernel, arguments, (1,))], checks=checks)
