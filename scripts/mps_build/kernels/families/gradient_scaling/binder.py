"""The steps of a gradient scaler."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.errors import NotBound
from ...program.launch import Addresses, Growth, Known, Program, Reference, Value, View, inout_buffer, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, groups, growing, swept, threads


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
    """`ampNonFiniteCheckAndUnscale`: a threadgroup a chunk of a tensor; foundInf becomes 1 where one is not finite.

    Each tensor has its own launches; of one with many chunks each launch has the next ones, by their numbers.
    """
    dtype = DTYPES[kernel.parts["T"]]
    size = kernel.argument("pointerArgs").size
    if size is None:
        raise NotBound("the struct of addresses has no size")
    for lengths, is_finite in (((37, 5), True), ((CHUNK + 70,), True), ((300, 4), False)):
        flag = View(buffer=inout_buffer(bytes(4)), dtype=DTYPES["float"], shape=(1,))
        factor = filled(case, kernel.dtype("invScale"), (1,), low=0.25, high=0.5)
        checks: list[Known | Reference] = []
        steps = []
        for at, n in enumerate(lengths):
            x = filled(case, dtype, (n,)) if is_finite or at else swept(case, dtype, (n,))
            after = inout_buffer(x.buffer.data)
            chunks = list(range(-(-n // CHUNK)))
            table = {"numels": [n], "threadgroup_to_tensor": [0] * len(chunks), "threadgroup_to_chunk": chunks}
            values: dict[str, object] = {"foundInf": flag, "invScale": factor, "metadata": table}
            values["pointerArgs"] = Addresses(data=bytes(size), places={0: after})
            steps.append(groups(kernel, bound(kernel, values), (len(chunks),), (64,)))
            got = View(buffer=after, dtype=dtype, shape=x.shape)
            checks.append(Reference(got=got, name="nn_unscale", inputs={"x": x, "factor": factor}))
        checks.append(Known(got=flag, want=pack(DTYPES["float"], [0.0 if is_finite else 1.0])))
        growth = None
        if lengths == (CHUNK + 70,):
            further = {"numels": [CHUNK], "threadgroup_to_chunk": [1, 1]}
            growth = Growth(
                bytes={"pointerArgs+0": CHUNK * dtype.size}, words={"metadata": growing(kernel, "metadata", further)}
            )
        label = f"tensors of {lengths}, finite {is_finite}"
        yield Program(label=label, steps=steps, checks=checks, growth=growth)
