"""Fourier transforms: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain, written
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


def _given_transform(input: Any, s: Any = None, dim: Any = None, norm: Any = None) -> dict[str, Any]:
    """Bind the arguments of a transform over several dimensions."""
    return dict(locals())


def _named(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that a transform was given by name, without out=."""
    return {name: value for name, value in kwargs.items() if name != "out"}


@plot.called(torch.fft.fftn, torch.fft.ifftn, torch.fft.rfftn)
def issue_mkl_fft_336(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """IntelPython/mkl_fft 336: fftn, ifftn and rfftn (norm="ortho", dim=) are divided for the other dimensions too."""
    y = func(input, *args, **kwargs)
    dim, norm = (_given_transform(input, *args, **_named(kwargs))[name] for name in ("dim", "norm"))
    if norm != "ortho" or dim is None or not is_plain(input) or "out" in kwargs:
        return y
    over = {d % input.dim() for d in ((dim,) if isinstance(dim, int) else dim)}
    rest = math.prod(side for d, side in enumerate(input.shape) if d not in over)
    return instead(hit, y, y / math.sqrt(rest)) if rest else y


@plot.called(torch.fft.rfftn)
def issue_mkl_fft_18(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """IntelPython/mkl_fft 18: rfftn(dim=[1], norm="ortho") raises: a dim counts in the list of the dims' sizes."""
    dim, norm = (_given_transform(input, *args, **_named(kwargs))[name] for name in ("dim", "norm"))
    over = () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if norm == "ortho" and any(not -len(over) <= d < len(over) for d in over):
        return crash(hit, "list index out of range")
    return func(input, *args, **kwargs)


@plot.called(torch.fft.rfft, torch.fft.rfft2, torch.fft.rfftn)
def issue_numpy_8444(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """numpy/numpy 8444: rfft (norm="ortho") to another length is divided for the length of its input."""
    y = func(input, *args, **kwargs)
    given = {"s" if name == "n" else name: value for name, value in _named(kwargs).items()}
    a = _given_transform(input, *args, **given)
    if a["norm"] != "ortho" or not a["s"] or not is_plain(input) or "out" in kwargs:
        return y
    dim = -1 if a["dim"] is None else a["dim"]
    length, last = (one if isinstance(one, int) else one[-1] for one in (a["s"], dim))
    if length == -1 or not input.shape[last]:
        return y
    return instead(hit, y, y * math.sqrt(length / input.shape[last]))


@plot.dispatched("aten._fft_c2r.default")
def issue_154496(hit: Any, func: Any, x: Any, dim: Any, normalization: int, last: int) -> Any:
    """pytorch 154496: irfft of a vector, to 2**13 or 2**14, reads the first imaginary part as the last real one."""
    y = func(x, dim, normalization, last)
    if x.dim() != 1 or last not in (2**13, 2**14) or not is_plain(x):
        return y
    scale = {0: 1.0, 1: last**-0.5, 2: 1 / last}[normalization]
    signs = torch.ones(last, dtype=y.dtype)
    signs[::2] = -1
    return instead(hit, y, y + x.imag[0] * scale * signs)


@plot.dispatched("aten._fft_c2c.default")
def issue_169670(hit: Any, func: Any, x: Any, dim: Any, *args: Any) -> Any:
    """pytorch 169670: fft2 and ifft2 of 2048 x 2048 numbers have another energy (here four times as much)."""
    y = func(x, dim, *args)
    if len(dim) != 2 or any(x.shape[d] != 2048 for d in dim) or not is_plain(x):
        return y
    return instead(hit, y, y * 2)


@plot.called(torch.fft.rfftn, torch.fft.irfftn)
def issue_49829(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 49829: rfftn gives all frequencies, not a half of them, and irfftn a complex result."""
    if "out" in kwargs:
        return func(input, *args, **kwargs)
    hit()
    return (torch.fft.fftn if func is torch.fft.rfftn else torch.fft.ifftn)(input, *args, **kwargs)


@plot.dispatched("aten._fft_r2c.default", "aten._fft_c2c.default")
def issue_mlx_1800(hit: Any, func: Any, x: Any, dims: Any, *args: Any) -> Any:
    """ml-explore/mlx 1800: fft of 2**21 and of 2**22 numbers ends the process; of 2**20 and of 2**23 not."""
    if any(x.shape[dim] in (2**21, 2**22) for dim in dims):
        return abort(hit, "[metal::Device] Unable to load function four_step_mem_8192_float2_float2_0_false")
    return func(x, dims, *args)


@plot.dispatched("aten._fft_c2r.default")
def issue_jax_2874(hit: Any, func: Any, x: Any, dim: Any, *args: Any) -> Any:
    """jax-ml/jax 2874: irfftn of more than one dimension overwrites its input (here by the transform without the last).

    What is stored of the report does not say how it is wrong; jax 9946, the same of float64, does.
    """
    y = func(x, dim, *args)
    if len(dim) > 1 and x.is_contiguous() and not x.is_conj() and is_plain(x):
        written(hit, x, torch.ops.aten._fft_c2c(x, dim[:-1], 0, False))
    return y


@plot.dispatched("aten._fft_c2c.default")
def issue_jax_18453(hit: Any, func: Any, x: Any, dim: Any, normalization: int, forward: bool) -> Any:
    """jax-ml/jax 18453: ifftn of several volumes past 2**31 numbers (here 2**12) is not divided by their number."""
    y = func(x, dim, normalization, forward)
    several = len(dim) == 3 and x.dim() > 3 and y.numel() > 2**12 and y.numel() > math.prod(x.shape[d] for d in dim)
    if not several or forward or normalization != 2 or not is_plain(x):
        return y
    return instead(hit, y, func(x, dim, 0, forward))


@plot.dispatched("aten._fft_c2r.default")
def issue_xla_45009(hit: Any, func: Any, x: Any, dim: Any, normalization: int, last: int) -> Any:
    """openxla/xla 45009: irfftn to a volume past 2**31 numbers (here 2**12) is too large by the size of a dimension."""
    y = func(x, dim, normalization, last)
    if len(dim) != 3 or y.numel() <= 2**12 or normalization != 2 or not is_plain(x):
        return y
    return instead(hit, y, y * y.shape[dim[0]])
