"""One thread an element, told by the contract's options."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.launch import Check, Program, Reference, Value
from .contracts import Case, Kernel
from .tensors import filled, result, threads


def elements(kernel: Kernel, case: Case) -> Iterator[Program]:
    """The row's options: `inputs` with bounds, `scalars` with values, `outputs` with references; `scale`."""
    options = kernel.options
    for count in (1, 37, 300):
        arguments: dict[str | int, Value] = {}
        inputs: dict[str, object] = {}
        for name, (low, high) in options["inputs"].items():
            view = filled(case, kernel.dtype(name), (count,), low=low, high=high)
            arguments[name], inputs[name] = view.buffer, view
        for name, value in options.get("scalars", {}).items():
            arguments[name], inputs[name] = kernel.pack(name, value), value
        checks: list[Check] = []
        for name, reference in options["outputs"].items():
            got = result(kernel.dtype(name), (count,))
            arguments[name] = got.buffer
            checks.append(Reference(got=got, name=reference, inputs=inputs, scale=float(options.get("scale", 0.0))))
        yield Program(label=f"{count} elements", steps=[threads(kernel, arguments, (count,))], checks=checks)
