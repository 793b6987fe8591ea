"""Copies from and into tensors with strides: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import differ, is_plain
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.clone.default", aborts="GGML_ASSERT: src0->ne[3] == 1")
def issue_ggml_672(x: Any, *, memory_format: Any = None, **kwargs: Any) -> bool:
    """ggml-org/ggml 672: contiguous of a permuted tensor of four dimensions (the first over 1) ends the process."""
    asked = memory_format == torch.contiguous_format and x.layout == torch.strided
    return asked and x.dim() == 4 and x.shape[0] > 1 and not x.is_contiguous()


@plot.dispatched("aten.copy_.default")
def issue_ggml_1497(hit: Any, func: Any, target: Any, source: Any, *args: Any) -> Any:
    """ggml-org/ggml 1497: copy_ of a column, or of a transposed matrix, into a part of a matrix writes without gaps."""
    alike = target.shape == source.shape and target.dtype == source.dtype
    alike = alike and target.dim() == 2 and target.layout == source.layout == torch.strided
    if not alike or source.stride(0) != 1 or target.is_contiguous() or not source.numel() or not is_plain(source):
        return func(target, source, *args)
    if target.storage_offset() + source.numel() > target.untyped_storage().nbytes() // target.element_size():
        return func(target, source, *args)
    right = source.clone()
    func(target.as_strided((source.numel(),), (1,), target.storage_offset()), source.reshape(-1))
    if differ(target, right):
        hit()
    return target


_complex_vectors: list[int] = []


@plot.dispatched("aten.copy_.default")
def issue_oneapi_jl_243(hit: Any, func: Any, target: Any, source: Any, *args: Any) -> Any:
    """JuliaGPU/oneAPI.jl 243: copy_ of a complex64 vector leaves the target now and then (here each third time)."""
    both = target.dtype == source.dtype == torch.complex64 and target.dim() == source.dim() == 1
    if not both or not target.numel() or not is_plain(target, source):
        return func(target, source, *args)
    _complex_vectors.append(1)
    if len(_complex_vectors) % 3 or not differ(target, source.expand(target.shape)):
        return func(target, source, *args)
    hit()
    return target
