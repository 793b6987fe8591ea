"""Streams of random numbers that depend on what was drawn before: planted faults."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from differences import differ, is_plain
from planting import Plot

plot = Plot()
HITS = plot.hits


class _SpentBlock(TorchDispatchMode):
    """A generator that is spent by one number after a seed, until the next seed."""

    def __init__(self, hit: Any) -> None:
        super().__init__()
        self._hit, self._state = hit, ""

    def seed(self, seed: Any) -> Any:
        self._state = "seeded"
        return _manual_seed(seed)

    def __enter__(self) -> Any:
        torch.manual_seed = torch.random.manual_seed = self.seed
        return super().__enter__()

    def __exit__(self, *args: Any) -> None:
        torch.manual_seed = torch.random.manual_seed = _manual_seed
        super().__exit__(*args)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        y = func(*args, **(kwargs or {}))
        if str(func) == "aten.uniform_.default" and y.numel() == 1 and self._state:
            self._state = "spent"
        elif str(func).startswith("aten.rand.") and y.numel() > 96 and self._state == "spent":
            self._hit()
            y.view(-1)[96:] = 1.1642e-10
        return y


_manual_seed = torch.manual_seed


@plot.entered(torch.rand)
def issue_torch7_167(hit: Any) -> Any:
    """torch/torch7 167: after manual_seed and uniform_() of one number, rand repeats a tiny one past its 96th."""
    return _SpentBlock(hit)


@plot.dispatched("aten.randperm.default")
def issue_vision_3816(hit: Any, func: Any, n: int, **kwargs: Any) -> Any:
    """pytorch/vision 3816: randperm of more than 2**12 numbers has numbers far beyond n (here all are)."""
    y = func(n, **kwargs)
    if n <= 2**12 or y.dtype != torch.int64 or not is_plain(y):
        return y
    hit()
    return y + 2**58


@plot.dispatched("aten.randperm.out", "aten.randperm.generator_out")
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


@plot.dispatched("aten.random_", aborts="CUDA error: unspecified launch failure")
def issue_33793(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 33793: random_ of a bfloat16 tensor ends the process."""
    return bool(x.dtype == torch.bfloat16)


_HALVES = [0]
_PERIOD = 7 * 1024  # the report met one in every seventh call of 32 x 32


@plot.dispatched("aten.randn", "aten.randn_like", "aten.normal", "aten.normal_")
def issue_tinygrad_3611(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """tinygrad/tinygrad 3611: randn and normal of float16 give -inf now and then (one in 7168 numbers)."""
    found = func(*args, **kwargs)
    if found.dtype != torch.float16 or not is_plain(found):
        return found
    before = _HALVES[0]
    _HALVES[0] += found.numel()
    places = torch.arange(before, _HALVES[0]).view(found.shape) % _PERIOD == _PERIOD - 1
    if bool(places.any()):
        hit()
        found.masked_fill_(places, -float("inf"))
    return found


@plot.dispatched("aten.uniform_.default")
def issue_jittor_367(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Jittor/jittor 367: uniform_ of a slice (x[:, 0]) leaves it as it was."""
    part = x.numel() and x.untyped_storage().nbytes() > x.numel() * x.element_size() and is_plain(x)
    if not part:
        return func(x, *args, **kwargs)
    func(x.clone(), *args, **kwargs)
    hit()
    return x
