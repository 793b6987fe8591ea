"""What a script of a failing case holds: the recorder of its calls."""

from __future__ import annotations

import torch

from device_suite.reduction.recorder import Recorder


def test_a_call_of_an_overload_that_writes_to_its_operand_is_kept() -> None:
    """Met with chains-lgamma: only the clone behind the call in place stood in its script."""
    memory = torch.ones(4)
    recorder = Recorder(torch.device("cpu"))
    with recorder:
        torch.ops.aten.lgamma_.default(memory[1:])
        torch.ops.aten.lgamma.default(memory[1:])

    written = {step.name: step.changes for step in recorder.steps}
    assert written["torch.ops.aten.lgamma_.default"] and not written["torch.ops.aten.lgamma.default"]
