"""The steps of a gradient scaler."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.errors import NotBound
from ...program.launch import Addresses, Known, Program, Reference, Value, View, inout_buffer, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, groups, swept, threads


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


def unscale_single(kernel: Kernel, case: Case) -> Iterator[Program]:
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
