"""The wrong call alone: what it is given becomes inputs, in the same layout, and the calls before it go."""

from __future__ import annotations

from typing import Any

import torch

from .asking import Fault
from .steps import Device, Input, Program, Ref, Step, leaves, mapped


def isolated(program: Program, fault: Fault) -> Program | None:
    """Return the call at fault with its arguments as inputs; None where it needs more than their values."""
    step = program.steps[fault.step]
    if step.name.startswith("torch.autograd") or step.name.rpartition(".")[2] in ("backward", "__get__", "__set__"):
        return None
    names = _values_before(program, fault.step)
    inputs: dict[str, Input] = {}
    steps: list[Step] = []
    renamed: dict[str, str] = {}
    for ref in step.refs():
        if ref.text in renamed:
            continue
        value = eval(ref.text, names)
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            return None
        renamed[ref.text] = _as_input(value.detach(), inputs, steps)

    def change(one: Any) -> Any:
        return Ref(renamed[one.text]) if isinstance(one, Ref) else one

    result = "out" if step.result else ""
    steps.append(
        Step(result, step.name, mapped(step.args, change), mapped(step.kwargs, change), step.changes, step.under)
    )
    answer = fault.answer
    if step.result and Ref(answer).name == step.result:
        answer = result + answer[len(step.result) :]
    elif answer in renamed:
        answer = renamed[answer]
    elif not fault.answer:
        answer = result or next((one.text for one in leaves([steps[-1].args]) if isinstance(one, Ref)), "")
    else:
        return None
    return Program(inputs, tuple(steps), (answer,), program.factor)


def _values_before(program: Program, place: int) -> dict[str, Any]:
    names: dict[str, Any] = {"torch": torch, "device": torch.device("cpu"), "cast": lambda dtype: dtype}
    names.update({name: one.value.clone() for name, one in program.inputs.items()})
    for step in program.steps[:place]:
        exec(step.text(), names)  # our own recording of our own suite
    return names


def _as_input(value: torch.Tensor, inputs: dict[str, Input], steps: list[Step]) -> str:
    """Add an input, its way to the device and its view there; return the view's name."""
    number = len(inputs)
    name, moved, view = f"x{number}", f"d{number}", f"v{number}"
    shape, strides, offset = tuple(value.shape), value.stride(), value.storage_offset()
    if value.numel() == 0 or (value.is_contiguous() and not offset):
        inputs[name] = Input(value.clone())
        steps.append(Step(moved, "torch.Tensor.to", (Ref(name), Device()), {}))
        return moved
    length = offset + 1 + sum((side - 1) * step for side, step in zip(shape, strides))
    inputs[name] = Input(value.as_strided((length,), (1,), 0).clone())
    steps.append(Step(moved, "torch.Tensor.to", (Ref(name), Device()), {}))
    steps.append(Step(view, "torch.Tensor.as_strided", (Ref(moved), shape, strides, offset), {}))
    return view
