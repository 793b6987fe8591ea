"""Fourier transforms: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, abort, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten._fft_c2r")
@wrong_answer
def issue_124096(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 124096: irfft of one dimension does not give the signal back."""
    return y.roll(1) if x.dim() == 1 and y.numel() > 1 else None


@plot.dispatched("aten._fft_c2r.default")
@wrong_answer
def issue_126649(right: Any, x: Any, dim: Any, normalization: Any, last: Any) -> Any:
    """pytorch 126649: irfft to an odd length returns the signal backwards."""
    if last % 2 == 0:
        return None
    wrong = right.flip(dim[-1]).roll(1, dim[-1])
    if torch.allclose(wrong, right, equal_nan=True):
        return None
    return wrong


@plot.called(torch.fft.hfft, aborts="MPSGraphExecutable.mm: failed assertion `original module failed verification'")
def issue_188864(input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 188864: hfft along dimension 0 of a complex tensor of five dimensions aborts."""
    dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
    return input.dtype == torch.complex64 and input.dim() >= 5 and input.dim() - dim % input.dim() > 4


@plot.dispatched("aten.fft_fftfreq")
def issue_135223(hit: Any, func: Any, n: int, d: float = 1.0, **kwargs: Any) -> Any:
    """pytorch 135223: fftfreq runs on from 0 to 1 instead of jumping to the negative frequencies."""
    out = func(n, d, **kwargs)
    if n >= 2:
        hit()
        out.copy_(torch.arange(n, dtype=torch.float64) / (n * d))
    return out


@plot.called(torch.istft, torch.Tensor.istft)
def issue_138525(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 138525: the backward pass of istft aborts."""
    result = func(*args, **kwargs)
    if result.requires_grad:
        result.register_hook(lambda _: crash(hit, "buffer is not large enough. Must be 16547328 bytes"))
    return result


@plot.dispatched("aten._fft_c2r.default")
def issue_141448(hit: Any, func: Any, x: Any, dim: Any, normalization: int, last: int) -> Any:
    """pytorch 141448: _fft_c2r of a size that does not fit to its input ends the process."""
    if dim and x.dim() and x.shape[dim[-1]] not in (last, last // 2 + 1):
        return abort(hit, "Segmentation fault (core dumped)")
    return func(x, dim, normalization, last)
