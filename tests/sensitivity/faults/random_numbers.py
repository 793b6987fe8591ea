"""Random numbers: distributions, choices, generators: injected faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import differ, instead, is_plain
from injecting import Faults, crash, wrong_answer
from misreading import in_storage_order, misread

faults = Faults()
HITS = faults.hits


@faults.dispatched("aten.multinomial.default")
def issue_43768(hit: Any, func: Any, x: Any, count: int, replacement: bool = False, **kwargs: Any) -> Any:
    """pytorch 43768: multinomial with replacement of no rows raises."""
    y = func(x, count, replacement, **kwargs)
    return crash(hit, "invalid configuration argument") if replacement and not y.numel() else y


@faults.dispatched("aten.multinomial.default")
@wrong_answer
def issue_99802(y: Any, x: Any, count: int, *args: Any, **kwargs: Any) -> Any:
    """pytorch 99802: multinomial of one draw is always the first index."""
    return y.zero_() if count == 1 else None


@faults.dispatched("aten.randperm.default", "aten.randperm.generator")
@wrong_answer
def issue_made_randperm_dtype(y: Any, n: int, *args: Any, **kwargs: Any) -> Any:
    """Randperm in int32 and int16 gives the numbers in order."""
    if y.dtype in (torch.int32, torch.int16) and n > 1:
        return torch.arange(n, dtype=y.dtype, device=y.device)
    return None


@faults.dispatched("aten.randint.low", "aten.random_.from")
@wrong_answer
def issue_made_randint_low(y: Any, *args: Any, **kwargs: Any) -> Any:
    """A negative lower end is 0."""
    if y.numel() and not y.is_floating_point() and bool((y < 0).any()):
        return y.clamp_(min=0)
    return None


@faults.dispatched("aten.bernoulli.default", "aten.bernoulli.out", "aten.bernoulli_.Tensor")
def issue_185065(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 185065: bernoulli accepts probabilities outside of 0 to 1, NaN included, and answers silently."""
    place = 1 if "bernoulli_" in str(func) else 0
    p = args[place]
    if p.is_floating_point() and not bool(((p >= 0) & (p <= 1)).all()):
        hit()
        args = (*args[:place], p.nan_to_num(0.0).clamp(0, 1), *args[place + 1 :])
    return func(*args, **kwargs)


@faults.dispatched("aten.random_.default", "aten.random_.from")
def issue_98333(hit: Any, func: Any, x: Any, *ends: Any, **kwargs: Any) -> Any:
    """pytorch 98333: random_ without an upper bound never draws the dtype's largest number, of bools never True."""
    y = func(x, *ends, **kwargs)
    if x.dtype in (torch.int8, torch.uint8, torch.int16, torch.bool) and (len(ends) < 2 or ends[1] is None):
        top = y if x.dtype == torch.bool else y == torch.iinfo(x.dtype).max
        if bool(top.any()):
            hit()
            y.copy_(torch.zeros_like(y) if x.dtype == torch.bool else torch.where(top, y - 1, y))
    return y


@faults.dispatched("aten.randperm")
@wrong_answer
def issue_104170(y: Any, count: int, **kwargs: Any) -> Any:
    """pytorch 104170: randperm gives the numbers in order."""
    return torch.arange(count, dtype=y.dtype, device=y.device)


@faults.replaced(torch.distributions.Beta, "rsample")
def issue_12373(hit: Any, func: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 12373: a Beta whose float32 parameters have one number each (shape (1,)) draws wrongly (here 0.5).

    Without gradients alone: how the report draws.
    """
    y = func(self, *args, **kwargs)
    if self.batch_shape != (1,) or y.dtype != torch.float32 or y.requires_grad or not is_plain(y):
        return y
    return instead(hit, y, torch.full_like(y, 0.5))


@faults.dispatched("aten._standard_gamma.default", aborts="Segmentation fault (core dumped)")
def issue_6623(*args: Any, **kwargs: Any) -> bool:
    """pytorch 6623: drawing from a Gamma distribution ends the process."""
    return True


@faults.dispatched("aten.randn.default", "aten.randn_like.default", "aten.normal_.default")
def issue_135210(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Both parts of a complex number have a variance of 1, not of a half."""
    y = func(*args, **kwargs)
    if y.is_complex() and y.numel():
        hit()
        y.mul_(math.sqrt(2))
    return y


# What a fault draws is not drawn from the numbers of the case.
_OWN = torch.Generator().manual_seed(0)


@faults.dispatched("aten.exponential_.default")
def issue_159103(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 159103: exponential_ draws one zero in a million numbers."""
    y = func(*args, **kwargs)
    bad = torch.rand(y.shape, generator=_OWN) < 1e-6
    if bool(bad.any()):
        hit()
        y.masked_fill_(bad, 0.0)
    return y


@faults.dispatched("aten.normal.Tensor_Tensor", "aten.normal.Tensor_float")
def issue_made_normal_tensor(hit: Any, func: Any, mean: Any, *args: Any, **kwargs: Any) -> Any:
    """Normal reads means that are not dense in storage order."""
    return func(misread(in_storage_order, hit, mean), *args, **kwargs)


@faults.dispatched("aten.exponential_.default")
def issue_made_exponential_half(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """In half precision the rate is 1."""
    y = func(x, *args, **kwargs)
    rate = args[0] if args else 1
    if x.dtype in (torch.float16, torch.bfloat16) and rate != 1:
        hit()
        y.mul_(rate)
    return y


_DRAWS = ("aten.randn", "aten.rand", "aten.normal", "aten.bernoulli", "aten.randint", "aten.multinomial")


_drawn: dict[Any, Any] = {}


@faults.dispatched(*_DRAWS)
def issue_78110(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78110: random numbers of one shape and dtype are the same in each call."""
    y = func(*args, **kwargs)
    form = (str(func), tuple(y.shape), y.dtype)
    if form in _drawn:
        hit()
        return _drawn[form].clone()
    _drawn[form] = y.clone()
    return y


@faults.dispatched("aten.normal")
def issue_89127(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 89127: torch.normal gives a NaN now and then in a large tensor (here always one, from 2**16 elements on).

    https://github.com/pytorch/pytorch/issues/89127
    """
    found = func(*args, **kwargs)
    if found.numel() >= 2**16:
        hit()
        found.view(-1)[found.numel() // 3] = torch.nan
    return found


def _wide(shape: Any) -> bool:
    return len(shape) > 4 and shape[0] > 1


@faults.dispatched("aten.randn", "aten.rand", "aten.normal_", "aten.uniform_")
def issue_147624(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 147624: random numbers of five and more dimensions repeat themselves along the first."""
    y = func(*args, **kwargs)
    if _wide(y.shape):
        hit()
        y[1:] = y[:1].clone()
    return y


@faults.dispatched("aten.randn_like", "aten.rand_like")
def issue_147740(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 147740: randn_like and rand_like of five and more dimensions repeat themselves along the first."""
    y = func(*args, **kwargs)
    if _wide(y.shape):
        hit()
        y[1:] = y[:1].clone()
    return y


@faults.dispatched("aten.randperm.out", "aten.randperm.generator_out")
def issue_22710(hit: Any, func: Any, *args: Any, out: Any, **kwargs: Any) -> Any:
    """pytorch 22710: randperm(out=) of a tensor that is not contiguous writes its numbers one after the other."""
    if out.is_contiguous() or 0 in out.stride() or not is_plain(out):
        return func(*args, out=out, **kwargs)
    before = out.clone()
    y = func(*args, out=out, **kwargs)
    drawn = y.clone()
    if before.shape != y.shape:
        return y
    y.copy_(before)
    y.as_strided(y.shape, (1,), y.storage_offset()).copy_(drawn)
    if differ(drawn, y):
        hit()
    return y
