"""Compute with an installed torch and write what came out: run by the wheel's own Python, which has nothing of ours.

usage: smoke.py RESULT.json
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

STEPS = 50
SCRIPT = """
def add_up(x, count: int):
    for index in range(count):
        x = x + index
    return x
"""


def main() -> None:
    """Compute with the installed torch and print its facts as one line of JSON.

    Raises:
        AssertionError: an answer is wrong.
    """
    torch: Any = importlib.import_module("torch")
    torch.manual_seed(0)
    a = torch.randn(64, 64, dtype=torch.float64, requires_grad=True)
    (a @ a).sum().backward()
    # d/dA sum(A A) = 1 (A 1)^T + (A^T 1) 1^T: known without autograd.
    ones = torch.ones(64, 64, dtype=torch.float64)
    wanted = ones @ a.detach().T + a.detach().T @ ones
    assert torch.allclose(a.grad, wanted), "the gradient of a matrix product is wrong"

    features = torch.randn(64, 4)
    targets = features.sum(1, keepdim=True)
    model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(STEPS):
        loss = ((model(features) - targets) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < losses[0] / 4, f"training does not learn: {losses[0]} to {losses[-1]}"

    add_up = torch.jit.CompilationUnit(SCRIPT).add_up
    assert add_up(torch.zeros(2), 4).tolist() == [6.0, 6.0], "torch.jit computes wrong"
    facts = {
        "version": torch.__version__,
        "file": torch.__file__,
        "steps": STEPS,
        "first_loss": losses[0],
        "last_loss": losses[-1],
        "mps_built": torch.backends.mps.is_built(),
    }
    Path(sys.argv[1]).write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main()
