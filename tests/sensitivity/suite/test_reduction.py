"""What a script of a failing case holds: the recorder of its calls."""

from __future__ import annotations

import torch

from engine.reduction.shrinking import slice_of
from engine.reduction.steps import Recorder


def test_a_call_of_an_overload_that_writes_to_its_operand_is_kept() -> None:
    """Met with chains-lgamma: only the clone behind the call in place stood in its script."""
    memory = torch.ones(4)
    recorder = Recorder(torch.device("cpu"))
    with recorder:
        torch.ops.aten.lgamma_.default(memory[1:])
        torch.ops.aten.lgamma.default(memory[1:])

    written = {step.name: step.changes for step in recorder.steps}
    assert written["torch.ops.aten.lgamma_.default"] and not written["torch.ops.aten.lgamma.default"]


def test_the_backward_behind_a_gradient_is_kept_whichever_operand_it_is_of() -> None:
    """Met with condition-limit-layers-conv3d-batch: its script read a gradient that nobody had derived."""
    recorder = Recorder(torch.device("cpu"))
    x, w = torch.ones(2, 3), torch.ones(4, 3)
    with recorder:
        first, second = x.detach().requires_grad_(), w.detach().requires_grad_()
        torch.nn.functional.linear(first, second).sum().backward()
        first.grad.clone(), second.grad.clone()

    program = recorder.program()
    reads = [step.result for step in program.steps if step.name.endswith("grad.__get__")]
    assert len(reads) == 2
    for one in reads:
        kept = [step.name for step in slice_of(program, (one,), len(program.steps) - 1).steps]
        assert "torch.Tensor.backward" in kept, kept
