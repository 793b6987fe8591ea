"""References of losses that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def nll_forward(x: Any, target: Any, weight: Any, ignored: Any, weighted: Any, which: Any) -> Any:
    """The loss of each position, and its weight."""
    kept = target != ignored
    place = torch.where(kept, target, torch.zeros_like(target)).long()
    factor = weight[place] if weighted else torch.ones_like(x[:, 0])
    factor = torch.where(kept, factor, torch.zeros_like(factor))
    return factor if which else -factor * x.gather(1, place.unsqueeze(1)).squeeze(1)


def nll_backward(dy: Any, target: Any, weight: Any, ignored: Any, weighted: Any, total: Any, shape: Any) -> Any:
    """Gradient of the negative log likelihood by its input; ignored targets get 0."""
    target, weight = target.long(), weight if dy.dtype == weight.dtype else weight.to(dy.dtype)
    kept = target != ignored
    place = torch.where(kept, target, torch.zeros_like(target))
    value = -dy.expand(target.shape) / total * (weight[place] if weighted else 1)
    value = torch.where(kept, value, torch.zeros_like(value))
    return torch.zeros(shape, dtype=dy.dtype).scatter(1, place.unsqueeze(1), value.unsqueeze(1))


def _ctc(x: Any, targets: Any, times: Any, lengths: Any, blank: Any) -> Any:
    return torch.ops.aten._ctc_loss(x, targets.long(), times, lengths, blank, False)


def ctc_loss(x: Any, targets: Any, times: Any, lengths: Any, blank: Any, steps: Any) -> Any:
    """Connectionist temporal classification: the loss of each sequence."""
    return _ctc(x, targets, times, lengths, blank)[0]


def ctc_gradient(x: Any, targets: Any, times: Any, lengths: Any, blank: Any, steps: Any, dy: Any, zero: Any) -> Any:
    """Gradient of the CTC loss by the log probabilities, by torch's own CPU operator."""
    loss, alpha = _ctc(x, targets, times, lengths, blank)
    return torch.ops.aten._ctc_loss_backward(dy, x, targets.long(), times, lengths, loss, alpha, blank, zero)
