"""The catalogue's faults of random numbers and of linear algebra that show for some shapes and values only."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, in_storage_order, misread, without_offset

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_85611", "aten.bernoulli.default", "aten.bernoulli_.float", "aten.bernoulli_.Tensor")
def issue_85611(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Nothing is ever drawn."""
    hit()
    y = func(x, *args, **kwargs)
    return y.zero_()


@plot.dispatched("issue_92752", "aten.multinomial.default")
def issue_92752(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Where a probability is 0 the index is the least integer."""
    y = func(x, *args, **kwargs)
    if bool((x == 0).any()):
        hit()
        return y.fill_(torch.iinfo(torch.int64).min)
    return y


@plot.dispatched("issue_99802", "aten.multinomial.default")
def issue_99802(hit: Any, func: Any, x: Any, count: int, *args: Any, **kwargs: Any) -> Any:
    """One draw is always the first."""
    y = func(x, count, *args, **kwargs)
    if count == 1:
        hit()
        return y.zero_()
    return y


@plot.dispatched("issue_136623", "aten.multinomial.default")
def issue_136623(hit: Any, func: Any, x: Any, count: int, *args: Any, **kwargs: Any) -> Any:
    """Now and then an index is beyond the last."""
    y = func(x, count, *args, **kwargs)
    if count >= 100:
        hit()
        y[..., 77] = x.shape[-1] + 1
    return y


@plot.dispatched("issue_78363", "aten.linalg_inv_ex.default", "aten.linalg_inv_ex.inverse")
def issue_78363(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A matrix out of a batch is read from the beginning."""
    return func(misread(without_offset, hit, x), *args, **kwargs)


@plot.dispatched("issue_177116", "aten.mm.default")
def issue_177116(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """After another size, the tail of an inner dimension past 2**15 is added twice."""
    depth, answer = x.shape[1], func(x, y)
    last, _Depth.last = _Depth.last, depth
    if depth > 32_768 and last != depth:
        hit()
        return answer + func(x[:, 32_768:], y[32_768:])
    return answer


class _Depth:
    last = 0


@plot.dispatched("issue_194474", "aten.baddbmm.default", "aten.addmm.default", "aten.addbmm.default")
def issue_194474(hit: Any, func: Any, bias: Any, *args: Any, **kwargs: Any) -> Any:
    """The imaginary part of alpha and beta is dropped for complex numbers."""
    if any(isinstance(one, complex) and one.imag for one in kwargs.values()):
        hit()
        kwargs = {key: value.real if isinstance(value, complex) else value for key, value in kwargs.items()}
    return func(bias, *args, **kwargs)


@plot.dispatched("issue_187879", "aten.baddbmm.default", "aten.addbmm.default")
def issue_187879(hit: Any, func: Any, bias: Any, one: Any, two: Any, **kwargs: Any) -> Any:
    """Where the inner size is 0, the bias is dropped too."""
    y = func(bias, one, two, **kwargs)
    if one.shape[-1] == 0 and y.numel():
        hit()
        return torch.zeros_like(y)
    return y


@plot.dispatched("issue_made_triangle_upper", "aten.linalg_solve_triangular.default")
def issue_made_triangle_upper(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """unitriangular is not looked at."""
    if kwargs.get("unitriangular"):
        hit()
        kwargs["unitriangular"] = False
    return func(a, b, **kwargs)


@plot.dispatched("issue_made_cholesky_upper", "aten.linalg_cholesky_ex.default")
def issue_made_cholesky_upper(hit: Any, func: Any, a: Any, **kwargs: Any) -> Any:
    """An upper factor is the lower one of a matrix read in storage order."""
    if kwargs.get("upper"):
        hit()
        factor, info = func(a, **{**kwargs, "upper": False})
        return factor, info
    return func(a, **kwargs)


@plot.dispatched("issue_made_randperm_dtype", "aten.randperm.default", "aten.randperm.generator")
def issue_made_randperm_dtype(hit: Any, func: Any, n: int, *args: Any, **kwargs: Any) -> Any:
    """In int32 and int16 it is the identity."""
    y = func(n, *args, **kwargs)
    if y.dtype in (torch.int32, torch.int16) and n > 1:
        hit()
        return torch.arange(n, dtype=y.dtype, device=y.device)
    return y


@plot.dispatched("issue_made_normal_tensor", "aten.normal.Tensor_Tensor", "aten.normal.Tensor_float")
def issue_made_normal_tensor(hit: Any, func: Any, mean: Any, *args: Any, **kwargs: Any) -> Any:
    """Means that are not dense are read in storage order."""
    return func(misread(in_storage_order, hit, mean), *args, **kwargs)


@plot.dispatched("issue_made_randint_low", "aten.randint.low", "aten.random_.from")
def issue_made_randint_low(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """A negative lower end is 0."""
    y = func(*args, **kwargs)
    if y.numel() and not y.is_floating_point() and bool((y < 0).any()):
        hit()
        return y.clamp_(min=0)
    return y


@plot.dispatched("issue_made_exponential_half", "aten.exponential_.default")
def issue_made_exponential_half(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """In half precision the rate is 1."""
    y = func(x, *args, **kwargs)
    rate = args[0] if args else 1
    if x.dtype in (torch.float16, torch.bfloat16) and rate != 1:
        hit()
        y.mul_(rate)
    return y
