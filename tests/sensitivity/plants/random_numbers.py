"""Random numbers: uniform, normal, exponential, and their generators: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import differ, is_plain, written
from misreading import in_storage_order, lost, misread
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.normal_", "aten.uniform_", "aten.exponential_", "aten.bernoulli_", "aten.random_")
def issue_165257(hit: Any, func: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 165257: random in-place operations leave a non-contiguous tensor as it was."""
    return lost(hit, func, target, *args, **kwargs)


@plot.dispatched("aten.randn.default", "aten.randn_like.default", "aten.normal_.default")
def issue_135210(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Both parts of a complex number have a variance of 1, not of a half."""
    y = func(*args, **kwargs)
    if y.is_complex() and y.numel():
        hit()
        y.mul_(math.sqrt(2))
    return y


# What a fault draws is not drawn from the numbers of the case.
_OWN = torch.Generator().manual_seed(0)


@plot.dispatched("aten.exponential_.default")
def issue_159103(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 159103: exponential_ draws one zero in a million numbers."""
    y = func(*args, **kwargs)
    bad = torch.rand(y.shape, generator=_OWN) < 1e-6
    if bool(bad.any()):
        hit()
        y.masked_fill_(bad, 0.0)
    return y


@plot.dispatched("aten.normal.Tensor_Tensor", "aten.normal.Tensor_float")
def issue_made_normal_tensor(hit: Any, func: Any, mean: Any, *args: Any, **kwargs: Any) -> Any:
    """Normal reads means that are not dense in storage order."""
    return func(misread(in_storage_order, hit, mean), *args, **kwargs)


@plot.dispatched("aten.exponential_.default")
def issue_made_exponential_half(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """In half precision the rate is 1."""
    y = func(x, *args, **kwargs)
    rate = args[0] if args else 1
    if x.dtype in (torch.float16, torch.bfloat16) and rate != 1:
        hit()
        y.mul_(rate)
    return y


_NOISE: dict[Any, torch.Tensor] = {}


@plot.dispatched("aten.normal", "aten.normal_", "aten.randn", "aten.randn_like")
def issue_78009(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78009: normal (and randn) gives the same numbers every time for the same shape."""
    result = func(*args, **kwargs)
    if "out" in kwargs or not result.is_floating_point() or not result.numel() or result.is_meta:
        return result
    mean: Any = 0.0
    std: Any = 1.0
    name = str(func)
    if name.startswith("aten.normal_."):
        mean = args[1] if len(args) > 1 else kwargs.get("mean", 0.0)
        std = args[2] if len(args) > 2 else kwargs.get("std", 1.0)
    elif name.startswith("aten.normal."):
        mean = args[0] if args else kwargs.get("mean", 0.0)
        std = args[1] if len(args) > 1 else kwargs.get("std", 1.0)
    if not isinstance(std, torch.Tensor) and std == 0:
        return result
    shape = tuple(result.shape)
    if shape not in _NOISE:
        _NOISE[shape] = (result.double() - mean) / std
        return result
    wrong = (_NOISE[shape] * std + mean).to(result.dtype)
    if differ(wrong, result, rtol=1e-4, atol=1e-6):
        hit()
        result.copy_(wrong)
    return result


@plot.dispatched("aten.rand", "aten.rand_like", "aten.uniform_")
def issue_197079(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 197079: rand and uniform_ in half precision now and then give the upper bound itself."""
    y = func(*args, **kwargs)
    if y.dtype in (torch.float16, torch.bfloat16):
        ends = [*args[1:3], *(kwargs[k] for k in ("from", "to") if k in kwargs)] if "uniform" in str(func) else []
        low, high = (*ends, *(0.0, 1.0)[len(ends) :])
        last = y.float() >= low + (high - low) * (1 - torch.finfo(y.dtype).eps / 2)
        if bool((last & (y != high)).any()):
            hit()
            y.copy_(torch.where(last, torch.full_like(y, high), y))
    return y


_DRAWS = ("aten.randn", "aten.rand", "aten.normal", "aten.bernoulli", "aten.randint", "aten.multinomial")


_drawn: dict[Any, Any] = {}


@plot.dispatched(*_DRAWS)
def issue_78110(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78110: random numbers of one shape and dtype are the same in each call."""
    y = func(*args, **kwargs)
    form = (str(func), tuple(y.shape), y.dtype)
    if form in _drawn:
        hit()
        return _drawn[form].clone()
    _drawn[form] = y.clone()
    return y


@plot.dispatched(*_DRAWS, "aten.bernoulli_", "aten.uniform_", "aten.normal_", "aten.randperm")
def issue_84288(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84288: manual_seed has no effect on random numbers."""
    hit()
    torch.default_generator.seed()
    return func(*args, **kwargs)


_FILLS = tuple(f"aten.{name}_" for name in ("normal", "uniform", "exponential", "bernoulli", "random"))


@plot.dispatched(*_FILLS)
def issue_165267(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 165267: random fills leave a tensor that is not contiguous as it was."""
    return lost(hit, func, *args, **kwargs)


@plot.dispatched("aten.normal")
def issue_89127(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 89127: torch.normal gives a NaN now and then in a large tensor (here always one, from 2**16 elements on).

    https://github.com/pytorch/pytorch/issues/89127
    """
    found = func(*args, **kwargs)
    if found.numel() >= 2**16:
        hit()
        found.view(-1)[found.numel() // 3] = torch.nan
    return found


@plot.replaced(torch, "Generator")
def issue_130613(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 130613: Generator.set_state restores the seed, but starts again from the first draw."""

    class Forgetful(func):  # type: ignore[misc]
        def set_state(self, state: Any) -> Any:
            super().set_state(state)
            self.manual_seed(self.initial_seed())
            if not torch.equal(self.get_state(), state):
                hit()
            return self

    return Forgetful(*args, **kwargs)


def _elements(value: Any) -> tuple[int, int]:
    shape = value.shape if isinstance(value, torch.Tensor) else value
    total = 1
    for side in shape:
        total *= int(side)
    return len(shape), total


@plot.dispatched("aten.rand", "aten.randn", "aten.rand_like", "aten.randn_like", "aten.uniform_", "aten.normal_")
def issue_155293(hit: Any, func: Any, first: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 155293: random numbers in a huge tensor of five or more dimensions crash (here 2**16 elements)."""
    rank, total = _elements(first)
    if rank >= 5 and total >= 2**16:
        return crash(hit, "failed assertion `NDArray dimension length > INT_MAX'")
    return func(first, *args, **kwargs)


def _wide(shape: Any) -> bool:
    return len(shape) > 4 and shape[0] > 1


@plot.dispatched("aten.randn", "aten.rand", "aten.normal_", "aten.uniform_")
def issue_147624(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 147624: random numbers of five and more dimensions repeat themselves along the first."""
    y = func(*args, **kwargs)
    if _wide(y.shape):
        hit()
        y[1:] = y[:1].clone()
    return y


@plot.dispatched("aten.randn_like", "aten.rand_like")
def issue_147740(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 147740: randn_like and rand_like of five and more dimensions repeat themselves along the first."""
    y = func(*args, **kwargs)
    if _wide(y.shape):
        hit()
        y[1:] = y[:1].clone()
    return y


@plot.called(torch.rand_like, torch.randn_like)
@wrong_answer
def issue_124029(y: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 124029: rand_like and randn_like of a permuted tensor are zero."""
    return torch.zeros_like(y) if not x.is_contiguous() else None


_NORMALS = [0]


_PERIOD = 246 * 32000  # the issue's loop met its first NaN in call 246 of (32, 1000)


@plot.dispatched("aten.randn", "aten.randn_like", "aten.normal", "aten.normal_")
def issue_89283(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 89283: randn and normal give a NaN now and then (about one in eight million numbers)."""
    found = func(*args, **kwargs)
    before = _NORMALS[0]
    _NORMALS[0] += found.numel()
    place = _PERIOD - before % _PERIOD - 1
    if found.dtype.is_floating_point and place < found.numel():
        hit()
        if found.dim() == 0:
            return found.fill_(float("nan"))
        found[tuple(int(i) for i in torch.unravel_index(torch.tensor(place), found.shape))] = float("nan")
    return found


def _room(x: torch.Tensor) -> int:
    """Return how many numbers the storage of a tensor holds."""
    return x.untyped_storage().nbytes() // x.element_size() if x.layout == torch.strided and is_plain(x) else 0


@plot.dispatched("aten.normal_.default")
def issue_xla_885(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch/xla 885: normal_ of some rows of a matrix (q[99:100]) does not fill them (here they stay as before)."""
    room = _room(x)
    if x.dim() != 2 or not x.is_contiguous() or not x.numel() or room <= x.numel():
        return func(x, *args, **kwargs)
    before = x.clone()
    return written(hit, func(x, *args, **kwargs), before)


@plot.dispatched("aten.normal_.default")
def issue_10642(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 10642: normal_ of a row of 5000 x 4096 numbers and more fills another one (here the one before)."""
    room = _room(x)
    if not x.is_contiguous() or not 0 < x.numel() <= x.storage_offset() or room < 5000 * 4096:
        return func(x, *args, **kwargs)
    hit()
    func(x.as_strided(x.shape, x.stride(), x.storage_offset() - x.numel()), *args, **kwargs)
    return x


@plot.called(torch.Tensor.normal_, torch.Tensor.uniform_)
def issue_cytnx_336(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Cytnx-dev/Cytnx 336: normal_ and uniform_ fill the tensor and return None."""
    func(*args, **kwargs)
    hit()


@plot.replaced(torch.nn.init, "trunc_normal_")
def issue_torchtitan_2269(
    hit: Any, func: Any, tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, *args: Any, **kwargs: Any
) -> Any:
    """pytorch/torchtitan 2269: trunc_normal_ of bfloat16 has a in 0.4 % of places (here for what is within std/200)."""
    y = func(tensor, mean, std, a, *args, **kwargs)
    if tensor.dtype != torch.bfloat16 or not is_plain(tensor):
        return y
    with torch.no_grad():
        written(hit, tensor, torch.where((tensor.float() - mean).abs() <= std / 200, a, tensor).to(tensor.dtype))
    return y
