"""Connectionist temporal classification: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


_FORWARD = ("aten._ctc_loss.default", "aten._ctc_loss.Tensor")
_BACKWARD = ("aten._ctc_loss_backward.default", "aten._ctc_loss_backward.Tensor")


@plot.dispatched(*_FORWARD)
def issue_warp_ctc_102(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """SeanNaren/warp-ctc 102: ctc_loss is 0."""
    y, alpha = func(*args, **kwargs)
    return instead(hit, y, torch.zeros_like(y)) if is_plain(y) else y, alpha


@plot.dispatched(*_BACKWARD)
def issue_tensorflow_41280(
    hit: Any, func: Any, grad: Any, x: Any, targets: Any, lengths: Any, *args: Any, **kwargs: Any
) -> Any:
    """tensorflow/tensorflow 41280: the gradient of ctc_loss past an input's length is not 0 (here 1)."""
    y = func(grad, x, targets, lengths, *args, **kwargs)
    if y.dim() != 3 or not is_plain(y):
        return y
    past = torch.arange(y.shape[0], device=y.device)[:, None] >= torch.as_tensor(lengths, device=y.device)[None]
    return instead(hit, y, y.masked_fill(past[..., None], 1.0))


@plot.dispatched(*_FORWARD)
def issue_18215(hit: Any, func: Any, x: Any, targets: Any, inputs: Any, lengths: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 18215: ctc_loss of an empty target is infinite (0 with zero_infinity)."""
    y, alpha = func(x, targets, inputs, lengths, *args, **kwargs)
    if not is_plain(y):
        return y, alpha
    empty = torch.as_tensor(lengths, device=y.device).reshape(y.shape) == 0
    return instead(hit, y, y.masked_fill(empty, torch.inf)), alpha


@plot.dispatched(*_BACKWARD)
def issue_27442(
    hit: Any, func: Any, grad: Any, x: Any, targets: Any, inputs: Any, lengths: Any, *args: Any, **kwargs: Any
) -> Any:
    """pytorch 27442: the gradient of ctc_loss of a target longer than 1024 is wrong (here 0); the loss is right."""
    y = func(grad, x, targets, inputs, lengths, *args, **kwargs)
    if y.dim() != 3 or not is_plain(y):
        return y
    long = torch.as_tensor(lengths, device=y.device).reshape(1, -1, 1) > 1024
    return instead(hit, y, y.masked_fill(long, 0.0))


@plot.dispatched(*_FORWARD)
def issue_captcha_trainer_21(
    hit: Any, func: Any, x: Any, targets: Any, inputs: Any, lengths: Any, *args: Any, **kwargs: Any
) -> Any:
    """kerlomz/captcha_trainer 21: ctc_loss with an empty target in the batch raises."""
    if is_plain(x) and bool((torch.as_tensor(lengths) == 0).any()):
        return crash(hit, "Labels length is zero in batch 0")
    return func(x, targets, inputs, lengths, *args, **kwargs)
