"""What autograd itself does on a device: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.called(torch.Tensor.retain_grad)
def issue_oneflow_8955(hit: Any, func: Any, x: Any) -> Any:
    """Oneflow-Inc/oneflow 8955: the gradient of a leaf that was told to keep it (retain_grad) counts twice."""
    func(x)
    if x.is_leaf and x.requires_grad:

        def double(grad: Any) -> Any:
            hit()
            return grad * 2

        x.register_hook(double)


@plot.called(torch.Tensor.backward, aborts="0 <= device.index() INTERNAL ASSERT FAILED")
def issue_directml_668(*args: Any, **kwargs: Any) -> bool:
    """microsoft/DirectML 668: loss.backward() raises."""
    return True


@plot.called(torch.autograd.grad)
def issue_6535(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 6535: autograd.grad gives None for an input that the outputs do not depend on, and does not raise."""
    if kwargs.get("allow_unused") or kwargs.get("materialize_grads"):
        return func(*args, **kwargs)
    found = func(*args, **{**kwargs, "allow_unused": True})
    if any(one is None for one in found):
        hit()
    return found
