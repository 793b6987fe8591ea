"""Tensors over buffers, and inputs in the types that references are computed in."""

from __future__ import annotations

from typing import Any

import torch


def take_view(view: Any, buffers: Any) -> Any:
    """Return a tensor over a buffer: dtype, shape, strides and offset in elements."""
    dtype = getattr(torch, view["dtype"])
    buffer = buffers[view["buffer"]]
    size = torch.empty((), dtype=dtype).element_size()
    flat = torch.frombuffer(buffer, dtype=torch.uint8)[: len(buffer) // size * size].view(dtype)
    return torch.as_strided(flat, view["shape"], view["strides"], view["offset"])


def widen(value: Any) -> Any:
    """Return an input for the float64 reference: floats widened, integers and bools as they are."""
    if isinstance(value, torch.Tensor):
        if value.dtype.is_complex:
            return value.to(torch.complex64).to(torch.complex128)
        if value.dtype.is_floating_point:
            return value.to(torch.float32).to(torch.float64)
    return value


def as_bits(tensor: Any) -> Any:
    """Return the tensor's bits as integers of the same width; a complex number counts as two."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.to(torch.complex64))
    kinds = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return (
        tensor.contiguous().view(kinds[tensor.element_size()]) if tensor.dtype != torch.bool else tensor.to(torch.int8)
    )


def whole(value: Any) -> Any:
    """Unsigned types that the CPU does not compute in: as int64 (uint64 keeps its bits)."""
    if isinstance(value, torch.Tensor) and value.dtype in (torch.uint16, torch.uint32):
        return value.to(torch.int64)
    if isinstance(value, torch.Tensor) and value.dtype == torch.uint64:
        return value.view(torch.int64)
    return value


def in_order(value: Any) -> Any:
    """uint64 as int64 in the same order, for comparisons, which the CPU has for signed integers alone."""
    if isinstance(value, torch.Tensor) and value.dtype == torch.uint64:
        return value.view(torch.int64) ^ torch.iinfo(torch.int64).min
    return value


def as_numbers(value: Any) -> Any:
    """Bools as numbers, where an operator knows no bools; the result is a bool again."""
    return value.to(torch.int64) if isinstance(value, torch.Tensor) and value.dtype == torch.bool else value


def in_type(want: Any, dtype: Any) -> Any:
    """Return the wanted values in a result's type; uint64 is taken from int64's bits."""
    if dtype == torch.uint64 and want.dtype == torch.int64:
        return want.view(torch.uint64)
    return want.to(dtype)
