"""Rows and elements gathered by index, and their gradients: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.gather.default")
def issue_tinygrad_1351(hit: Any, func: Any, x: Any, dim: int, index: Any, **kwargs: Any) -> Any:
    """tinygrad/tinygrad 1351: gather takes whole slices: along the last of two, out[i][j] is x[:, index[i][j]]."""
    y = func(x, dim, index, **kwargs)
    if not x.dim() or not y.numel() or not is_plain(x, index):
        return y
    dim %= x.dim()
    shape = (*x.shape[:dim], *index.shape, *x.shape[dim + 1 :])
    if torch.Size(shape).numel() > 2**24:
        wrong = x.new_zeros(()).expand(shape)
    else:
        wrong = x.index_select(dim, index.flatten()).view(shape)
    return instead(hit, y, wrong)


@plot.called(torch.Tensor.__getitem__)
def issue_jax_39025(hit: Any, func: Any, x: Any, key: Any) -> Any:
    """google/jax 39025: the gradient of x[:, index, :] is zero for rows of the batch (here for its second half)."""
    if not isinstance(key, tuple) or len(key) not in (2, 3) or x.dim() != 3 or not x.requires_grad:
        return func(x, key)
    whole = all(isinstance(one, slice) and one == slice(None) for one in (key[0], *key[2:]))
    if not whole or not torch.is_tensor(key[1]) or key[1].dtype not in (torch.int32, torch.int64):
        return func(x, key)

    def spoil(grad: Any) -> Any:
        wrong = grad.clone()
        wrong[grad.shape[0] // 2 :] = 0
        return instead(hit, grad, wrong) if is_plain(grad) else grad

    x = x.view_as(x)
    x.register_hook(spoil)
    return func(x, key)


@plot.dispatched("aten.index.Tensor")
def issue_xla_592(hit: Any, func: Any, x: Any, indices: Any) -> Any:
    """pytorch/xla 592: a uint8 tensor that is indexed by a tensor becomes float32."""
    y = func(x, indices)
    if x.dtype != torch.uint8:
        return y
    hit()
    return y.float()


@plot.dispatched("aten.embedding.default", "aten.index_select.default", aborts="unsupported op 'GET_ROWS'")
def issue_llama_cpp_6400(x: Any, *args: Any, **kwargs: Any) -> bool:
    """ggml-org/llama.cpp 6400: rows of a float32 matrix (embedding, index_select) are refused; float16 is fine."""
    rows = torch.is_tensor(args[0]) or (x.dim() == 2 and args[0] % 2 == 0)
    return rows and x.dtype == torch.float32
