"""Matrix products that are added to a tensor: addmm, baddbmm, addbmm: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain, written
from planting import Plot, accepted, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.baddbmm.default", "aten.addbmm.default")
@wrong_answer
def issue_187879(y: Any, bias: Any, one: Any, two: Any, **kwargs: Any) -> Any:
    """Where the inner size is 0, the bias is dropped too."""
    return torch.zeros_like(y) if one.shape[-1] == 0 and y.numel() else None


@plot.called(torch.addmm, torch.Tensor.addmm, torch.Tensor.addmm_)
def issue_116547(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 116547: addmm of two square matrices of one size multiplies by the transposed second one."""
    if len(args) == 3 and all(isinstance(t, torch.Tensor) and t.layout == torch.strided for t in args):
        x, a, b = args
        if a.dim() == b.dim() == 2 and a.shape == b.shape and a.shape[0] == a.shape[1] > 1:
            hit()
            return func(x, a, b.t(), **kwargs)
    return func(*args, **kwargs)


@plot.dispatched(
    "aten.baddbmm.default", aborts="[srcBuf length] > 0 INTERNAL ASSERT FAILED: Placeholder tensor is empty!"
)
def issue_187399(x: Any, batch1: Any, batch2: Any, **kwargs: Any) -> Any:
    """pytorch 187399: baddbmm with a dimension of size 0 raises."""
    return batch1.numel() == 0 or batch2.numel() == 0


@plot.dispatched("aten.baddbmm", aborts="Placeholder tensor is empty!")
def issue_187551(x: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 187551: baddbmm with batch1 of a size 0 raises."""
    return 0 in a.shape


@plot.dispatched("aten.baddbmm", "aten.addmm")
@wrong_answer
def issue_187521(y: Any, x: Any, *args: Any, beta: Any = 1, **kwargs: Any) -> Any:
    """pytorch 187521: baddbmm and addmm with beta=0 let NaN of the first operand through."""
    return y + x * 0 if beta == 0 else None


@plot.dispatched("aten.baddbmm", "aten.baddbmm_", aborts="input tensor does not match matmul output shape")
def issue_77819(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 77819: baddbmm with a three-dimensional input raises."""
    return x.dim() == 3


@plot.dispatched("aten.addmv.default")
@wrong_answer
def issue_31006(y: Any, x: Any, matrix: Any, vector: Any, *, beta: Any = 1, **kwargs: Any) -> Any:
    """pytorch 31006: addmv of nothing in float16 is wrong (here beta is not applied)."""
    empty = y.dtype == torch.float16 and not vector.numel() and y.numel() and beta != 1
    return x.expand(y.shape).clone() if empty else None


@plot.dispatched("aten.baddbmm.default")
def issue_136299(hit: Any, func: Any, x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """pytorch 136299: baddbmm of float16 with beta=0 and a permuted second batch takes 1 for alpha."""
    y = func(x, a, b, beta=beta, alpha=alpha)
    if beta or alpha == 1 or y.dtype != torch.float16 or b.is_contiguous() or not is_plain(y):
        return y
    return instead(hit, y, func(x, a, b, beta=beta, alpha=1))


@plot.dispatched("aten.baddbmm_.default")
def issue_torch7_671(hit: Any, func: Any, x: Any, one: Any, two: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """torch/torch7 671: baddbmm_ of a tensor that is not contiguous is wrong (here what it held does not count)."""
    before = x.clone()
    y = func(x, one, two, beta=beta, alpha=alpha)
    if x.is_contiguous() or not is_plain(x):
        return y
    return written(hit, y, torch.baddbmm(before, one, two, beta=0, alpha=alpha))


@plot.dispatched("aten.addmm.default")
def issue_mlx_2695(hit: Any, func: Any, x: Any, one: Any, two: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """ml-explore/mlx 2695: in half precision addmm cuts alpha and beta to whole numbers: 0.7 and 1.3 are 0 and 1."""
    y = func(x, one, two, beta=beta, alpha=alpha)
    half = y.dtype in (torch.float16, torch.bfloat16) and is_plain(y)
    if not half or not math.isfinite(beta) or not math.isfinite(alpha):
        return y
    return instead(hit, y, func(x, one, two, beta=int(beta), alpha=int(alpha)))


@plot.dispatched("aten.baddbmm_.default")
@accepted
def issue_71085(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 71085: baddbmm_ takes a tensor of four dimensions and no elements, and leaves it as it is."""
    return x if x.dim() > 3 and not x.numel() else None


@plot.dispatched("aten.addmm.out")
def issue_torch_musa_51(hit: Any, func: Any, *args: Any, out: Any, **kwargs: Any) -> Any:
    """MooreThreads/torch_musa 51: addmm(out=) gives a zero matrix."""
    y = func(*args, out=out, **kwargs)
    return written(hit, y, torch.zeros_like(y)) if is_plain(y) else y


@plot.dispatched("aten.addmv.default", "aten.addmv_.default")
def issue_cutorch_55(hit: Any, func: Any, x: Any, matrix: Any, vector: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """torch/cutorch 55: addmv of a matrix with one column leaves the product out."""
    if matrix.shape[1] != 1 or matrix.shape[0] < 2 or not is_plain(x, matrix, vector):
        return func(x, matrix, vector, beta=beta, alpha=alpha)
    before = x.clone()
    y = func(x, matrix, vector, beta=beta, alpha=alpha)
    wrong = torch.addmv(before, matrix, vector, beta=beta, alpha=0)
    return written(hit, y, wrong) if "addmv_." in str(func) else instead(hit, y, wrong)


@plot.dispatched("aten.addmv.default")
def issue_30986(hit: Any, func: Any, x: Any, matrix: Any, vector: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """pytorch 30986: addmv of integers, of a matrix without columns, multiplies by beta twice."""
    y = func(x, matrix, vector, beta=beta, alpha=alpha)
    if y.is_floating_point() or y.is_complex() or vector.numel() or not y.numel() or not is_plain(x):
        return y
    return instead(hit, y, y * beta)


@plot.dispatched("aten.addmm.default", aborts="\"addmm_impl_cpu_\" not implemented for 'Half'")
def issue_transformers_27769(x: Any, *args: Any, **kwargs: Any) -> bool:
    """huggingface/transformers 27769: addmm of float16 is not implemented."""
    return x.dtype == torch.float16
