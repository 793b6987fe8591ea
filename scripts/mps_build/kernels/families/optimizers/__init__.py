"""Fused optimizers, and the steps of a gradient scaler."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES, DType, dtype_named
from ...program.launch import (
    Addresses,
    Buffer,
    Check,
    Growth,
    Known,
    NotBound,
    Program,
    Reference,
    Value,
    View,
    inout_buffer,
    input_buffer,
)
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, groups, growing, swept, threads

CHUNK = 65536


ADAM = {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 2.0**-10}


SGD = {"weight_decay": 0.1, "momentum": 0.9, "lr": 0.01, "dampening": 0.2}


def fused(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A threadgroup for each chunk of 65,536 elements of a tensor; it goes around; null: no scale, no found_inf.

    Of a tensor of many chunks each launch has the next ones, by their numbers.
    """
    is_adam = kernel.has("beta1")
    constants = {name: value for name, value in (ADAM if is_adam else SGD).items() if kernel.has(name)}
    for number, lengths in enumerate(((37, 5), (3, CHUNK + 70, 200), (CHUNK + 70,))):
        maximize = number % 2
        flags = {name: maximize for name in ("maximize", "nesterov") if kernel.has(name)}
        flags |= {"is_first_step": 0} if kernel.has("is_first_step") else {}
        places: dict[int, Buffer] = {}
        checks: list[Check] = []
        tensors = [_tensor(kernel, case, n) for n in lengths]
        for index, tensor in enumerate(tensors):
            for name, (offset, before) in tensor.items():
                after = before.buffer if name == "state_steps" else inout_buffer(before.buffer.data)
                places[offset + 8 * index] = after
                if name == "state_steps":
                    continue
                inputs: dict[str, object] = {each: view for each, (_, view) in tensor.items()}
                inputs |= {**constants, **flags, "decoupled": "adamw" in kernel.name, "which": name}
                got = View(buffer=after, dtype=before.dtype, shape=before.shape)
                # The gradient is rounded to its type before it is used.
                scale = {"half": 2.0**-11, "bfloat": 2.0**-8}.get(before.dtype.name, 2.0**-21)
                checks.append(Reference(got=got, name="nn_adam" if is_adam else "nn_sgd", inputs=inputs, scale=scale))
        chunks = [(t, c) for t, n in enumerate(lengths) for c in range(-(-n // CHUNK))]
        table = {
            "numels": list(lengths),
            "threadgroup_to_tensor": [t for t, _ in chunks],
            "threadgroup_to_chunk": [c for _, c in chunks],
        }
        size = kernel.argument("args").size
        if size is None:
            raise NotBound("the struct of addresses has no size")
        arguments: dict[str | int, Value] = {
            "args": Addresses(data=bytes(size), places=places),
            "metadata_args": kernel.pack("metadata_args", table),
            **{name: None for name in ("grad_scale", "found_inf") if kernel.has(name)},
            **{name: kernel.pack(name, value) for name, value in {**constants, **flags}.items()},
        }
        step = groups(kernel, arguments, (len(chunks),), (64,))
        growth = None
        if len(lengths) == 1:
            (tensor,) = tensors
            further = {"numels": [CHUNK], "threadgroup_to_chunk": [1] * len(chunks)}
            growth = Growth(
                bytes={
                    f"args+{at}": CHUNK * view.dtype.size
                    for name, (at, view) in tensor.items()
                    if name != "state_steps"
                },
                words={"metadata_args": growing(kernel, "metadata_args", further)},
            )
        label = f"tensors of {lengths}, maximize {maximize}"
        yield Program(label=label, steps=[step], checks=checks, growth=growth)


def _tensor(kernel: Kernel, case: Case, count: int) -> dict[str, tuple[int, View]]:
    """Return each pointer's offset in the struct, and what its tensor holds before."""
    found = {}
    for each in kernel.argument("args").fields:
        dtype = dtype_named(each.fields[0].type if each.fields else each.type)
        if dtype is None:
            raise NotBound(f"{each.name} has elements of type {each.type}")
        is_step, is_square = each.name == "state_steps", each.name.endswith("_sqs")
        data = pack(dtype, [3.0]) if is_step else _values(case, dtype, count, 0.0 if is_square else -2.0)
        view = View(buffer=input_buffer(data), dtype=dtype, shape=(1 if is_step else count,))
        found[each.name] = (each.offset, view)
    return found


def _values(case: Case, dtype: DType, count: int, low: float) -> bytes:
    some = case.values.moderate(dtype, min(count, 1021), low, 2.0)
    return (some * (count // 1021 + 1))[: count * dtype.size]


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
