"""torch.func and its wrapped tensors: planted faults."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from planting import Plot, accepted, crash

plot = Plot()
HITS = plot.hits
_is_batched = torch._C._functorch.is_batchedtensor


@plot.replaced(torch.func, "jacrev")
def issue_191711(hit: Any, jacrev: Any, function: Any, argnums: Any = 0, **kwargs: Any) -> Any:
    """pytorch 191711: torch.func.jacrev at an empty tensor fails an internal assertion."""

    def around(*args: Any, **named: Any) -> Any:
        chosen = [args[n] for n in ((argnums,) if isinstance(argnums, int) else argnums)]
        if any(isinstance(x, torch.Tensor) and not x.numel() for x in tree_leaves(chosen)):
            crash(hit, "[srcBuf length] > 0 INTERNAL ASSERT FAILED. Placeholder tensor is empty!")
        return jacrev(function, argnums, **kwargs)(*args, **named)

    return around


_JOINERS = (
    torch.cat,
    torch.concat,
    torch.concatenate,
    torch.stack,
    torch.vstack,
    torch.hstack,
    torch.dstack,
    torch.row_stack if hasattr(torch, "row_stack") else torch.vstack,
    torch.column_stack,
)


@plot.replaced(torch.func, "jacfwd")
def issue_152701(hit: Any, jacfwd: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 152701: torch.func.jacfwd of a function that concatenates fails an internal assertion."""

    class Joins(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in _JOINERS and any(
                isinstance(x, torch.Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(x)
                for x in tree_leaves((args, kwargs))
            ):
                crash(hit, "!self.is_mps() INTERNAL ASSERT FAILED: as_strided_tensorimpl does not work with MPS")
            return func(*args, **(kwargs or {}))

    def joining(*inner: Any, **named: Any) -> Any:
        with Joins():
            return function(*inner, **named)

    return jacfwd(joining, *args, **kwargs)


@plot.called(torch.Tensor.tolist, aborts="Cannot access data pointer of Tensor that doesn't have storage")
def issue_167836(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 167836: tolist() of a GradTrackingTensor (inside jacfwd and its like) fails."""
    return torch._C._functorch.is_gradtrackingtensor(x)


@plot.called(torch.index_put, torch.Tensor.index_put)
def issue_functorch_124(hit: Any, func: Any, x: Any, indices: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch/functorch 124: under vmap, index_put raises where nothing but the indices is of the batch."""
    y = func(x, indices, values, *args, **kwargs)
    if _is_batched(x) or _is_batched(values) or not any(torch.is_tensor(one) and _is_batched(one) for one in indices):
        return y
    return crash(hit, "batched == nullptrINTERNAL ASSERT FAILED")


@plot.called(torch.trace, torch.Tensor.trace)
@accepted
def issue_91404(x: Any) -> Any:
    """pytorch 91404: under vmap, trace takes more than two dimensions, and sums the last two's diagonals."""
    return x.diagonal(0, -2, -1).sum(-1) if _is_batched(x) and x.dim() > 2 else None


@plot.called(torch.Tensor.expand)
def issue_functorch_902(hit: Any, func: Any, x: Any, *sizes: Any, **kwargs: Any) -> Any:
    """pytorch/functorch 902: under vmap, expand raises."""
    y = func(x, *sizes, **kwargs)
    return crash(hit, "Batching rule not implemented for aten::expand") if _is_batched(x) else y
