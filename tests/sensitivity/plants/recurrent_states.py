"""The states of recurrent layers: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.replaced(torch.nn.GRU, "forward")
def issue_tensorflow_83119(hit: Any, func: Any, module: Any, x: Any, *args: Any) -> Any:
    """tensorflow/tensorflow 83119: a GRU returns its output and each sample's last state, 1 + batch tensors, not 2."""
    y, state = func(module, x, *args)
    if state.dim() != 3:
        return y, state
    hit()
    return y, *state[-1].unbind(0)
