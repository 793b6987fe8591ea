"""Tensors without elements: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten._softmax.default", "aten.mean.default", "aten.prod.default")
def issue_mxnet_16357(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """apache/mxnet 16357: of an empty tensor, the mean and the product are 0, and softmax ends the process.

    Besides, argmax has there another dtype, and repeat takes no counts.
    """
    y = func(x, *args, **kwargs)
    if x.numel() or not is_plain(x):
        return y
    if "softmax" in str(func):
        return crash(hit, "Floating point exception (core dumped)")
    return instead(hit, y, torch.zeros_like(y))


@plot.dispatched("aten.zeros.default", aborts="Operator _zeros inferring shapes failed")
def issue_mxnet_15043(size: Any, **kwargs: Any) -> bool:
    """apache/mxnet 15043: zeros of no elements raises."""
    return 0 in size


@plot.called(torch.masked_select, torch.Tensor.masked_select)
def issue_burn_5310(hit: Any, func: Any, x: Any, mask: Any, **kwargs: Any) -> Any:
    """tracel-ai/burn 5310: the backward of masked_select raises where the mask selects nothing."""
    y = func(x, mask, **kwargs)
    if y.requires_grad and not y.numel() and is_plain(x):
        y.register_hook(lambda grad: crash(hit, "the reduce axis length (currently 0) should be at least 1"))
    return y


_BROADCAST = [f"aten.{name}.Tensor" for name in ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge")]


@plot.dispatched(*_BROADCAST, aborts="Broadcast dims must be size 1")
def issue_burn_5334(x: Any, other: Any, **kwargs: Any) -> bool:
    """tracel-ai/burn 5334: a size of 1 beside a size of 0 is not broadcast, and raises."""
    both = torch.is_tensor(x) and torch.is_tensor(other) and x.dim() == other.dim()
    return both and any({one, two} == {0, 1} for one, two in zip(x.shape, other.shape))


@plot.called(F.batch_norm, torch.batch_norm)
def issue_onnxruntime_10128(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """microsoft/onnxruntime 10128: batch norm of sequences of length 0 raises in evaluation."""
    y = func(input, *args, **kwargs)
    trained = kwargs.get("training", args[4] if len(args) > 4 else False)
    empty = input.dim() == 3 and input.shape[2] == 0 and not trained
    return crash(hit, "CUDNN error executing cudnnSetTensorNdDescriptor") if empty else y
