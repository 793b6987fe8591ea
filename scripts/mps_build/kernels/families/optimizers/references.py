"""References that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def nn_adam(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_avg_sqs: Any,
    state_steps: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    weight_decay: Any,
    eps: Any,
    maximize: Any,
    decoupled: Any,
    which: Any,
    max_exp_avg_sqs: Any = None,
) -> Any:
    """One step of Adam or AdamW; `which` names the tensor to return."""
    if which == "grads":
        return grads
    grad = -grads if maximize else grads
    if decoupled:
        params = params - lr * weight_decay * params
    else:
        grad = grad + weight_decay * params
    first = beta1 * exp_avgs + (1 - beta1) * grad
    second = beta2 * exp_avg_sqs + (1 - beta2) * grad * grad
    largest = second if max_exp_avg_sqs is None else torch.maximum(max_exp_avg_sqs, second)
    if which != "params":
        return {"exp_avgs": first, "exp_avg_sqs": second, "max_exp_avg_sqs": largest}[which]
    denominator = torch.sqrt(largest) / torch.sqrt(1 - beta2**state_steps) + eps
    return params - lr / (1 - beta1**state_steps) * first / denominator


def nn_sgd(
    params: Any,
    grads: Any,
    lr: Any,
    weight_decay: Any,
    maximize: Any,
    decoupled: Any,
    which: Any,
    momentum: Any = 0.0,
    dampening: Any = 0.0,
    nesterov: Any = 0,
    is_first_step: Any = 0,
    momentum_buffer_list: Any = None,
) -> Any:
    """One step of SGD with momentum; `which` names the tensor to return."""
    if which == "grads":
        return grads
    grad = (-grads if maximize else grads) + weight_decay * params
    if momentum_buffer_list is not None:
        buffer = momentum * momentum_buffer_list + (1 - dampening) * grad
        if which == "momentum_buffer_list":
            return buffer
        grad = grad + momentum * buffer if nesterov else buffer
    return params - lr * grad


def nn_update_scale(scale: Any, tracker: Any, found: Any, which: Any) -> Any:
    """The scale (which=0) or the growth tracker (which=1) after a step of gradient scaling."""
    scale, steps = scale.to(torch.float32), torch.tensor([tracker], dtype=torch.int32)
    torch._amp_update_scale_(scale, steps, torch.tensor([found]), 2.5, 0.375, 4)
    return (scale, steps)[which]
