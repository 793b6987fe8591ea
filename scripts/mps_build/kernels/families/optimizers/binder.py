"""Fused optimizers."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DType, dtype_named
from ...program.errors import NotBound
from ...program.launch import (
    Addresses,
    Buffer,
    Check,
    Growth,
    Program,
    Reference,
    Value,
    View,
    inout_buffer,
    input_buffer,
)
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import groups, growing

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
