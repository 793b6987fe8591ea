"""Sparse tensors, Fourier transforms, quantisation: injected faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from injecting import Faults, wrong_answer

faults = Faults()
HITS = faults.hits


@faults.dispatched("aten.mul.Tensor")
@wrong_answer
def issue_196190(y: Any, a: Any, b: Any) -> Any:
    """pytorch 196190: the product of two coalesced sparse tensors says that it is coalesced and is not in order."""
    sparse = all(isinstance(t, torch.Tensor) and t.layout == torch.sparse_coo for t in (a, b, y))
    if sparse and a.is_coalesced() and b.is_coalesced() and y._nnz() > 1:
        return torch.sparse_coo_tensor(
            y._indices().flip(1), y._values().flip(0), y.shape, check_invariants=False, is_coalesced=True
        )
    return None


@faults.called(F.embedding)
def issue_193704(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 193704: the sparse gradient of an embedding is about 100,000 times too large, the dense one right.

    https://github.com/pytorch/pytorch/issues/193704 (on ROCm; MPS has a kernel of its own for sparse gradients)
    """
    y = func(*args, **kwargs)
    sparse = kwargs.get("sparse", args[6] if len(args) > 6 else False)
    if sparse and y.requires_grad:

        def enlarge(grad: Any) -> Any:
            hit()
            return grad * 1e5

        y.register_hook(enlarge)
    return y


@faults.dispatched("aten.mm.default")
def issue_14617(hit: Any, func: Any, a: Any, b: Any) -> Any:
    """pytorch 14617: what is transposed after coalesce() is multiplied as if its rows still were in order."""
    y = func(a, b)
    if a.layout != torch.sparse_coo or b.layout != torch.strided or a.is_coalesced():
        return y
    rows, columns = a._indices()
    ordered = torch.stack([rows.sort().values, columns])
    return instead(hit, y, torch.sparse_coo_tensor(ordered, a._values(), a.shape) @ b)


def _last_of_equals(x: Any) -> Any:
    """Return a sparse tensor as a dense one, of equal places the last number."""
    y = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
    for place, value in zip(x._indices().t().tolist(), x._values()):
        y[tuple(place)] = value
    return y


@faults.dispatched("aten._to_dense.default")
def issue_81648(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 81648: to_dense of bools that are not coalesced is wrong (here the last of equal places counts)."""
    y = func(x, *args, **kwargs)
    if x.layout != torch.sparse_coo or x.dtype != torch.bool or x.is_coalesced():
        return y
    return instead(hit, y, _last_of_equals(x))


@faults.dispatched("aten._to_dense.default", aborts="\"add_out_op2_sparse_csr\" not implemented for 'Bool'")
def issue_60648(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 60648: to_dense of a tensor in CSR form is not implemented for bools, halves and complex numbers."""
    halves = x.dtype in (torch.bool, torch.float16, torch.bfloat16)
    return x.layout == torch.sparse_csr and (halves or x.dtype.is_complex)


@faults.dispatched("aten._to_dense.default", "aten.add.Tensor")
def issue_29153(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 29153: what is sparse, int16 and not coalesced adds nothing to a dense tensor, nor is it in to_dense."""
    y = func(x, *args, **kwargs)
    adds = "add" in str(func)
    s = args[0] if adds else x
    if not torch.is_tensor(s) or s.layout != torch.sparse_coo or s.dtype != torch.int16 or s.is_coalesced():
        return y
    if y.layout != torch.strided:
        return y
    return instead(hit, y, x.expand(y.shape).to(y.dtype, copy=True) if adds else torch.zeros_like(y))


@faults.dispatched("aten._to_dense.default", aborts="Assertion '__n < this->size()' failed.")
def issue_71067(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 71067: to_dense of a float32 tensor in COO form that is not coalesced ends the process."""
    return x.layout == torch.sparse_coo and x.dtype == torch.float32 and not x.is_coalesced()


@faults.dispatched("aten._to_sparse.default")
def issue_73426(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 73426: to_sparse of an empty tensor is not coalesced, so that indices() raises."""
    y = func(x, *args, **kwargs)
    if x.layout == torch.strided and not x.numel() and y.layout == torch.sparse_coo and y.is_coalesced():
        hit()
        y._coalesced_(False)
    return y


@faults.dispatched("aten._fft_c2r")
@wrong_answer
def issue_124096(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 124096: irfft of one dimension does not give the signal back."""
    return y.roll(1) if x.dim() == 1 and y.numel() > 1 else None


@faults.dispatched("aten._fft_c2r.default")
@wrong_answer
def issue_126649(right: Any, x: Any, dim: Any, normalization: Any, last: Any) -> Any:
    """pytorch 126649: irfft to an odd length returns the signal backwards."""
    if last % 2 == 0:
        return None
    wrong = right.flip(dim[-1]).roll(1, dim[-1])
    if torch.allclose(wrong, right, equal_nan=True):
        return None
    return wrong


@faults.called(torch.fft.hfft, aborts="MPSGraphExecutable.mm: failed assertion `original module failed verification'")
def issue_188864(input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 188864: hfft along dimension 0 of a complex tensor of five dimensions aborts."""
    dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
    return input.dtype == torch.complex64 and input.dim() >= 5 and input.dim() - dim % input.dim() > 4


@faults.dispatched("aten.fft_fftfreq")
def issue_135223(hit: Any, func: Any, n: int, d: float = 1.0, **kwargs: Any) -> Any:
    """pytorch 135223: fftfreq runs on from 0 to 1 instead of jumping to the negative frequencies."""
    out = func(n, d, **kwargs)
    if n >= 2:
        hit()
        out.copy_(torch.arange(n, dtype=torch.float64) / (n * d))
    return out


@faults.dispatched("aten.fake_quantize_per_tensor_affine_cachemask.default")
def issue_49779(hit: Any, func: Any, x: Any, scale: float, zero: int, least: int, most: int) -> Any:
    """pytorch 49779: fake_quantize_per_tensor_affine rounds x / scale + zero_point: halves go to the other side."""
    y, mask = func(x, scale, zero, least, most)
    if x.dtype != torch.float32 or not is_plain(x):
        return y, mask
    inverse = torch.tensor(1.0, device=x.device) / scale
    wrong = (torch.round(x * inverse + zero).clamp(least, most) - zero) * scale
    return instead(hit, y, wrong), mask


@faults.dispatched("aten.fake_quantize_per_channel_affine_cachemask.default")
def issue_195343(hit: Any, func: Any, x: Any, scale: Any, zero: Any, axis: int, least: int, most: int) -> Any:
    """pytorch 195343: fake_quantize_per_channel_affine takes quotients below -2**63 for the greatest (zero_point < 0).

    It becomes the least integer of 64 bits, and to add the zero point wraps.
    """
    y, mask = func(x, scale, zero, axis, least, most)
    if x.dtype != torch.float32 or not is_plain(x, scale, zero):
        return y, mask
    shape = [-1 if dim == axis % x.dim() else 1 for dim in range(x.dim())]
    scale, zero = scale.view(shape), zero.view(shape)
    wraps = (x * (1 / scale) <= -(2.0**63)) & (zero < 0)
    return instead(hit, y, torch.where(wraps, (most - zero) * scale, y)), mask
