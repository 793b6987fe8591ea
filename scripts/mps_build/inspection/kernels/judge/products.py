"""References of products of packed and of whole numbers."""

from __future__ import annotations

import torch


def scaled_product(a, b, one, two, bias):
    x, y = a.to(torch.float64), b.to(torch.float64)
    out = (x @ y.T) * one.to(torch.float64).unsqueeze(-1) * two.to(torch.float64)
    return out + (bias.to(torch.float64) if isinstance(bias, torch.Tensor) else 0)


def int4_product(a, weights, zeros, group):
    """Each weight is (code - 8) * scale + zero of its group."""
    scale, zero = (zeros[..., which].T.repeat_interleave(group, 1) for which in (0, 1))
    return a @ ((weights.to(a.dtype) - 8) * scale + zero).T


def int8_product(a, b, scales):
    return (a @ b.to(a.dtype).T) * scales


def whole_product(a, b):
    return (a.to(torch.int64).unsqueeze(2) * b.to(torch.int64).unsqueeze(0)).sum(1)


def nn_conv3d(x, w, bias, stride, padding, dilation, groups):
    bias = bias if isinstance(bias, torch.Tensor) else None
    return torch.nn.functional.conv3d(x, w, bias, stride, padding, dilation, groups)


FUNCTIONS = {
    "scaled_product": scaled_product,
    "int4_product": int4_product,
    "int8_product": int8_product,
    "whole_product": whole_product,
    "nn_conv3d": nn_conv3d,
}
