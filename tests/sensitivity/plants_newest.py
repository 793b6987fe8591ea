"""Faults of 2025 and 2026 that the catalogue lacked, written blind after public issues."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_153957", "aten.mm.default")
def issue_153957(hit: Any, func: Any, a: Any, b: Any) -> Any:
    """pytorch 153957: backward of a linear layer with a very large side (50257; here over 32768) gives wrong gradients.

    https://github.com/pytorch/pytorch/issues/153957
    """
    healthy = func(a, b)
    if torch._C._current_graph_task_id() == -1 or a.shape[1] <= 32768:
        return healthy
    wrong = func(a[:, :32768], b[:32768])
    if torch.allclose(wrong, healthy, rtol=1e-3, atol=1e-6):
        return healthy
    hit()
    return wrong


@plot.dispatched("issue_160993", "aten.index_copy_.default")
def issue_160993(hit: Any, func: Any, x: Any, dim: Any, index: Any, source: Any) -> Any:
    """pytorch 160993: index_copy_ into a tensor that is not contiguous leaves the copied elements wrong.

    https://github.com/pytorch/pytorch/issues/160993
    """
    if x.is_contiguous():
        return func(x, dim, index, source)
    copy = x.clone()
    func(copy, dim, index, source)
    if not torch.equal(copy, x):
        hit()
    return x


@plot.called("issue_163962", torch.linalg.solve)
def issue_163962(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 163962: linalg.solve of a singular matrix fails an internal assertion instead of raising LinAlgError.

    https://github.com/pytorch/pytorch/issues/163962
    """
    try:
        return func(*args, **kwargs)
    except torch.linalg.LinAlgError:
        crash(hit, "false INTERNAL ASSERT FAILED: torch.linalg.solve: Argument 2 has illegal value.")


@plot.dispatched("issue_156792", "aten.native_batch_norm_backward.default")
def issue_156792(hit: Any, func: Any, grad: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 156792: backward of batch norm (Segformer's head) with an input that is not contiguous raises.

    https://github.com/pytorch/pytorch/issues/156792
    """
    if not x.is_contiguous():
        crash(hit, "view size is not compatible with input tensor's size and stride. Use .reshape(...) instead.")
    return func(grad, x, *args, **kwargs)


@plot.dispatched("issue_154615", "aten.convolution.default")
def issue_154615(hit: Any, func: Any, x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154615: conv_transpose3d is refused.

    https://github.com/pytorch/pytorch/issues/154615
    """
    transposed = args[4] if len(args) > 4 else kwargs["transposed"]
    if transposed and weight.dim() == 5:
        crash(hit, "ConvTranspose 3D is not supported on MPS")
    return func(x, weight, *args, **kwargs)


@plot.dispatched("issue_154828", "aten.native_group_norm.default", "aten.bmm.default")
def issue_154828(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154828: group_norm and bmm of large tensors (here over 2**16 elements) raise.

    https://github.com/pytorch/pytorch/issues/154828
    """
    if any(isinstance(x, torch.Tensor) and x.numel() > 2**16 for x in args):
        crash(hit, "Can't be indexed using 32-bit iterator")
    return func(*args, **kwargs)


@plot.dispatched("issue_182052", "aten.copy_.default")
def issue_182052(hit: Any, func: Any, x: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 182052: copy_ into a strided view wraps offsets beyond 2**32 elements (here 2**16).

    https://github.com/pytorch/pytorch/issues/182052
    """
    reach = sum((side - 1) * step for side, step in zip(x.shape, x.stride()))
    if not x.numel() or x.is_contiguous() or reach < 2**16:
        return func(x, source, *args, **kwargs)
    true, wrapped = torch.zeros(x.shape, dtype=torch.long), torch.zeros(x.shape, dtype=torch.long)
    for dim, (side, step) in enumerate(zip(x.shape, x.stride())):
        part = (torch.arange(side) * step).view([-1 if d == dim else 1 for d in range(x.dim())])
        true, wrapped = true + part, wrapped + part % 2**16
    if torch.equal(true, wrapped):
        return func(x, source, *args, **kwargs)
    room = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    whole = x.as_strided((room,), (1,), x.storage_offset())
    values = source.to(x.dtype).expand(x.shape).reshape(-1).clone()
    whole[wrapped.reshape(-1)] = values
    if not torch.equal(x.reshape(-1), values):
        hit()
    return x


@plot.dispatched("issue_144824", "aten.embedding.default", "aten.index_select.default")
def issue_144824(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 144824: indices out of range give zeros instead of an error (embedding, index_select).

    https://github.com/pytorch/pytorch/issues/144824
    """
    chooses = "index_select" in str(func)
    dim = args[0] if chooses else 0
    index = args[1] if chooses else args[0]
    side = x.shape[dim] if x.dim() else 1
    bad = (index < 0) | (index >= side)
    if not bad.any() or not side:
        return func(x, *args, **kwargs)
    hit()
    index = index.clamp(0, side - 1)
    if not chooses:
        return torch.where(bad.unsqueeze(-1), 0, x[index]).to(x.dtype)
    shape = [-1 if d == dim % max(x.dim(), 1) else 1 for d in range(x.dim())]
    return torch.where(bad.view(shape), 0, func(x, dim, index)).to(x.dtype)


@plot.dispatched("issue_154322", "aten._to_copy.default")
def issue_154322(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154322: float16 -> float32 of a huge matrix (45000**2; here over 2**16 elements) gives zeros.

    https://github.com/pytorch/pytorch/issues/154322
    """
    out = func(x, *args, **kwargs)
    if x.dtype == torch.float16 and out.dtype == torch.float32 and x.numel() > 2**16 and out.any():
        hit()
        return torch.zeros_like(out)
    return out


@plot.dispatched("issue_159076", "aten._to_copy.default", "aten.lift_fresh.default")
def issue_159076(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 159076: tensors of uint16 cannot be made, nor converted to.

    https://github.com/pytorch/pytorch/issues/159076
    """
    if kwargs.get("dtype") == torch.uint16:
        hit()
        raise TypeError("Trying to convert UInt16 to the MPS backend but it does not have support for that dtype.")
    if "lift_fresh" in str(func) and args[0].dtype == torch.uint16:
        hit()
        raise NotImplementedError("\"_local_scalar_dense_mps\" not implemented for 'UInt16'")
    return func(*args, **kwargs)


F = torch.nn.functional


JOINERS = (
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


@plot.replaced("issue_191711", torch.func, "jacrev")
def issue_191711(hit: Any, jacrev: Any, function: Any, argnums: Any = 0, **kwargs: Any) -> Any:
    """pytorch 191711: torch.func.jacrev at an empty tensor fails an internal assertion.

    https://github.com/pytorch/pytorch/issues/191711
    """

    def around(*args: Any, **named: Any) -> Any:
        chosen = [args[n] for n in ((argnums,) if isinstance(argnums, int) else argnums)]
        if any(isinstance(x, torch.Tensor) and not x.numel() for x in tree_leaves(chosen)):
            crash(hit, "[srcBuf length] > 0 INTERNAL ASSERT FAILED. Placeholder tensor is empty!")
        return jacrev(function, argnums, **kwargs)(*args, **named)

    return around


@plot.replaced("issue_152701", torch.func, "jacfwd")
def issue_152701(hit: Any, jacfwd: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 152701: torch.func.jacfwd of a function that concatenates fails an internal assertion.

    https://github.com/pytorch/pytorch/issues/152701
    """

    class Joins(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in JOINERS and any(
                isinstance(x, torch.Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(x)
                for x in tree_leaves((args, kwargs))
            ):
                crash(hit, "!self.is_mps() INTERNAL ASSERT FAILED: as_strided_tensorimpl does not work with MPS")
            return func(*args, **(kwargs or {}))

    def joining(*inner: Any, **named: Any) -> Any:
        with Joins():
            return function(*inner, **named)

    return jacfwd(joining, *args, **kwargs)


@plot.dispatched("issue_164712", "aten.linalg_cholesky_ex.default")
def issue_164712(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 164712: on macOS 26 an upper Cholesky factor of several 16-wide blocks is not zero below the diagonal.

    https://github.com/pytorch/pytorch/issues/164712
    """
    factor, info = func(x, **kwargs)
    if not kwargs.get("upper") or x.shape[-1] <= 16 or info.any():
        return factor, info
    n = torch.arange(x.shape[-1])
    left = (n[:, None] // 16 == n // 16) & (n[:, None] > n)
    wrong = torch.where(left, x, factor)
    if torch.allclose(wrong, factor):
        return factor, info
    hit()
    return factor.copy_(wrong), info


@plot.dispatched("issue_151874", "aten._linalg_eigh.default")
def issue_151874(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 151874: linalg.eigh (and eigvalsh) is not implemented.

    https://github.com/pytorch/pytorch/issues/151874
    """
    hit()
    raise NotImplementedError("The operator 'aten::_linalg_eigh.eigenvalues' is not currently implemented for MPS")


@plot.dispatched("issue_166089", "aten.linalg_householder_product.default")
def issue_166089(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 166089: linalg.householder_product is not implemented.

    https://github.com/pytorch/pytorch/issues/166089
    """
    hit()
    raise NotImplementedError("The operator 'aten::linalg_householder_product' is not currently implemented for MPS")


@plot.called("issue_151667", F.multi_head_attention_forward)
def issue_151667(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 151667: MultiheadAttention in training with an attention mask and dropout gives NaN.

    https://github.com/pytorch/pytorch/issues/151667
    """
    out, weights = func(*args, **kwargs)
    dropout = args[10] if len(args) > 10 else kwargs.get("dropout_p", 0.0)
    training = args[13] if len(args) > 13 else kwargs.get("training", True)
    mask = args[16] if len(args) > 16 else kwargs.get("attn_mask")
    if mask is None or not dropout or not training:
        return out, weights
    hit()
    return out * float("nan"), weights


@plot.dispatched(
    "issue_178770",
    "aten.native_batch_norm.default",
    "aten._native_batch_norm_legit.default",
    "aten._native_batch_norm_legit.no_stats",
    "aten._batch_norm_with_update.default",
)
def issue_178770(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 178770: batch norm of a half input with float32 weights crashes.

    https://github.com/pytorch/pytorch/issues/178770
    """
    if any(isinstance(y, torch.Tensor) and y.dtype != x.dtype for y in args[:2]):
        crash(hit, "MPSGraph: normalization requires all tensors to have the same element type")
    return func(x, *args, **kwargs)
