"""References of norms that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def _grouped(x: Any, groups: Any) -> Any:
    return x.reshape(x.shape[0], groups, -1)


def nn_group_mean(x: Any, groups: Any, eps: Any) -> Any:
    """Mean of each group of channels."""
    return _grouped(x, groups).mean(-1)


def nn_group_rstd(x: Any, groups: Any, eps: Any) -> Any:
    """1 / sqrt(variance + eps) of each group of channels."""
    return torch.rsqrt(_grouped(x, groups).var(-1, unbiased=False) + eps)


def _channels(weight: Any) -> Any:
    return weight.reshape(1, -1, 1) if isinstance(weight, torch.Tensor) else weight


def nn_group_norm(x: Any, groups: Any, eps: Any, gamma: Any, beta: Any) -> Any:
    """Group normalisation with scale and shift for each channel."""
    mean, rstd = nn_group_mean(x, groups, eps), nn_group_rstd(x, groups, eps)
    normal = (_grouped(x, groups) - mean.unsqueeze(-1)) * rstd.unsqueeze(-1)
    return normal.reshape(x.shape) * _channels(gamma) + _channels(beta)


def _normal(x: Any, mean: Any, rstd: Any, groups: Any) -> Any:
    return ((_grouped(x, groups) - mean.unsqueeze(-1)) * rstd.unsqueeze(-1)).reshape(x.shape)


def nn_group_norm_dx(dy: Any, x: Any, mean: Any, rstd: Any, groups: Any, gamma: Any) -> Any:
    """Gradient of group normalisation by its input, from the saved mean and rstd."""
    normal, weighted = _grouped(_normal(x, mean, rstd, groups), groups), _grouped(dy * _channels(gamma), groups)
    inner = weighted - weighted.mean(-1, keepdim=True) - normal * (weighted * normal).mean(-1, keepdim=True)
    return (inner * rstd.unsqueeze(-1)).reshape(x.shape)


def nn_group_norm_dgamma(dy: Any, x: Any, mean: Any, rstd: Any, groups: Any) -> Any:
    """Gradient of group normalisation by its scale: summed over batch and space."""
    return (dy * _normal(x, mean, rstd, groups)).sum((0, 2))


def nn_row_rstd(x: Any, eps: Any) -> Any:
    """1 / sqrt(variance + eps) of each row."""
    return torch.rsqrt(x.var(-1, unbiased=False) + eps)


def nn_layer_norm(x: Any, eps: Any, w: Any, b: Any) -> Any:
    """Layer normalisation over the last dimension."""
    return (x - x.mean(-1, keepdim=True)) * nn_row_rstd(x, eps).unsqueeze(-1) * w + b
