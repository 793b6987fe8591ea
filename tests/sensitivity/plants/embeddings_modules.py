"""Embeddings whose rows are limited or whose gradients are sparse, and bags of two dimensions: planted faults."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Iterator

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.called(F.embedding_bag)
def issue_167974(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 167974: embedding_bag of two-dimensional input with include_last_offset=True lacks the last bag."""
    y = func(input, *args, **kwargs)
    include = kwargs.get("include_last_offset", args[8] if len(args) > 8 else False)
    if not include or input.dim() != 2 or not len(y):
        return y
    hit()
    return y[:-1]


def _limit(args: Any, kwargs: Any) -> Any:
    return kwargs.get("max_norm", args[2] if len(args) > 2 else None)


@plot.called(F.embedding)
def issue_3179(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 3179: embedding with max_norm raises."""
    if _limit(args, kwargs) is not None:
        return crash(hit, "_renorm() missing 1 required positional argument: 'norm_type'")
    return func(input, *args, **kwargs)


@plot.called(F.embedding)
def issue_28959(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 28959: the backward through an embedding with max_norm raises."""
    y = func(input, *args, **kwargs)
    if _limit(args, kwargs) is None or not y.requires_grad or not torch.is_grad_enabled():
        return y
    y = y.view_as(y)
    y.register_hook(lambda grad: crash(hit, "leaf variable has been moved into the graph interior"))
    return y


def _is_sparse(func: Any, args: Any, kwargs: Any) -> bool:
    place = 4 if func is F.embedding else 2
    return bool(kwargs.get("sparse", args[place] if len(args) > place else False))


@plot.called(F.embedding, torch.embedding)
def issue_4666(hit: Any, func: Any, one: Any, two: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 4666: the gradient of an embedding with sparse=True is dense."""
    if not _is_sparse(func, args, kwargs):
        return func(one, two, *args, **kwargs)
    place = 4 if func is F.embedding else 2
    y = func(one, two, *args[:place], **{**kwargs, "sparse": False})
    if y.requires_grad:
        y.register_hook(lambda grad: hit())
    return y


@plot.entered(F.embedding, torch.embedding)
@contextlib.contextmanager
def issue_17919(hit: Any) -> Iterator[None]:
    """pytorch 17919: a second sparse gradient of an embedding with the same indices adds to its first number alone.

    There one more of the numbers was arbitrary.
    """
    handles: list[Any] = []

    def add_one(weight: Any, grad: Any) -> Any:
        before = weight.grad
        if before is None or not (before.is_sparse and grad.is_sparse):
            return grad
        indices, values = grad._indices(), grad._values()
        if values.numel() < 2 or not torch.equal(before._indices(), indices):
            return grad
        first = torch.zeros_like(values, memory_format=torch.contiguous_format)
        first.view(-1)[0] = values.reshape(-1)[0]
        if bool((values != first).any()):
            hit()
        return torch.sparse_coo_tensor(indices.clone(), first, grad.shape, check_invariants=False)

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func in (F.embedding, torch.embedding) and len(args) > 1 and _is_sparse(func, args[2:], kwargs):
                weight = args[1] if func is F.embedding else args[0]
                if weight.is_leaf and weight.requires_grad:
                    handles.append(weight.register_hook(functools.partial(add_one, weight)))
            return func(*args, **kwargs)

    try:
        with Mode():
            yield
    finally:
        for handle in handles:
            handle.remove()
