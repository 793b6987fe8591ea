"""A program as a script: its inputs, its calls, and the frame that compares."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from .shrinking import Fault
from .steps import Device, Inexpressible, Program, Ref, leaves, mapped

MOST_LINES = 80
# What prepares the call in question, or reads its answer.
_PLUMBING = tuple("to cpu requires_grad_ detach as_strided __getitem__ backward sum clone __get__".split())
MOST_WIDTH = 600
_FRAME = Path(__file__).with_name("frame.py.txt")


def render(program: Program, said: str, device: str) -> str:
    """Return the script.

    Raises:
        Inexpressible: it would be longer than a maintainer reads.
    """
    names = list(program.inputs)
    made = [_wrapped(f"    {name} = {one.text()}") for name, one in program.inputs.items()]
    body = [f"    {line}" for line in _moved_where_used(program).body()]
    head = [
        "#!/usr/bin/env python3",
        '"""' + "\n".join(textwrap.wrap(said, 110)).replace("\\", "\\\\").replace('"""', "'''") + '"""',
        "import argparse, contextlib, os, runpy, sys, traceback",
        'os.environ.pop("PYTORCH_ENABLE_MPS_FALLBACK", None)  # else the CPU would be compared with itself',
        "",
        f"DEVICE, FACTOR = {device!r}, {program.factor:.4g}",
        "",
        "def inputs(torch):",
        *made,
        f"    return [{', '.join(names)}]",
        "",
        f"def ask(torch, device, cast, {', '.join(names)}):" if names else "def ask(torch, device, cast):",
        *body,
        f"    return [{', '.join(program.answers)}]",
        "",
    ]
    text = "\n".join([*head, ""]) + _FRAME.read_text(encoding="utf-8")
    lines = text.splitlines()
    if max(map(len, lines)) > MOST_WIDTH:
        raise Inexpressible("a call in it is too long to be read")
    if len(lines) > MOST_LINES:
        raise Inexpressible(f"{len(program.steps)} calls are needed: the script would have {len(lines)} lines")
    return text


def _moved_where_used(program: Program) -> Program:
    """Return the program with `x.to(device)` where the one call stands that takes it, not in a line of its own."""
    steps = list(program.steps)
    for step in program.steps:
        users = [each for each in steps if any(ref.name == step.result for ref in each.refs())]
        plain = step.name == "torch.Tensor.to" and step.args[1:] == (Device(),) and not step.kwargs
        count = sum(ref.name == step.result for each in users for ref in each.refs())
        if not (plain and count == 1 and not users[0].changes and step.result not in program.answers):
            continue
        moved = Ref(f"{step.args[0].text}.to(device)")
        place = steps.index(users[0])
        steps[place] = replace(
            users[0],
            args=mapped(users[0].args, lambda one, old=step.result, new=moved: new if one == Ref(old) else one),
            kwargs=mapped(users[0].kwargs, lambda one, old=step.result, new=moved: new if one == Ref(old) else one),
        )
        steps.remove(step)
    return replace(program, steps=tuple(steps))


def _wrapped(line: str) -> str:
    """Return an input's line, broken between its numbers."""
    return textwrap.fill(line, 118, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False)


def facts_of(program: Program, fault: Fault | None) -> dict[str, Any]:
    """Return what a title says: the operator, the dtype, the condition, and what was wrong where a device was given."""
    real = [step for step in program.steps if not _is_plumbing(step.name, step.args)]
    last = real[-1] if real else program.steps[-1]
    kinds = [one.value.dtype for one in program.inputs.values()]
    floating = [kind for kind in kinds if kind.is_floating_point or kind.is_complex]
    dtype = (floating or kinds or [torch.float32])[0]
    return {
        "operator": _spoken(last.name),
        "dtype": str(dtype)[6:],
        "condition": _condition(program),
        "effect": fault.effect if fault else "",
        "calls": [step.text() for step in program.steps],
    }


def _spoken(name: str) -> str:
    if name.endswith((".__get__", ".__set__")):
        return name.rpartition(".")[0]
    return {"torch.Tensor.__getitem__": "indexing", "torch.Tensor.__setitem__": "assignment by index"}.get(name, name)


def _is_plumbing(name: str, args: Any) -> bool:
    return name.rpartition(".")[2] in _PLUMBING


def _condition(program: Program) -> str:
    """Return the most telling condition of the inputs, in words."""
    values = [one.value for one in program.inputs.values()]
    if any(one.numel() == 0 for one in values):
        return "an input without elements"
    floats = [one for one in values if one.is_floating_point()]
    if any(bool(torch.isnan(one).any()) for one in floats):
        return "NaN in the input"
    if any(bool(torch.isinf(one).any()) for one in floats):
        return "infinity in the input"
    names = {step.name.rpartition(".")[2]: step for step in program.steps}
    kinds = [("transpose", "a transposed input"), ("permute", "a permuted input"), ("expand", "an expanded input")]
    kinds += [("t", "a transposed input"), ("as_strided", "a strided input"), ("__getitem__", "a view")]
    kinds += [("backward", "the gradient"), ("grad", "the gradient")]
    for name, words in kinds:
        if name in names:
            return words
    if any("out" in step.kwargs for step in program.steps):
        return "out="
    sides = " and ".join(str(tuple(one.shape)) for one in values[:2])
    return f"shape {sides}" if sides else "no input"


def reads(program: Program) -> set[str]:
    """Return the names that the steps read."""
    return {one.name for step in program.steps for one in leaves([step.args, step.kwargs]) if isinstance(one, Ref)}
