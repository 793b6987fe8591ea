"""Products of matrices: sizes where another kernel takes over, types that have none, precision: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from differences import instead, is_plain, written
from misreading import in_storage_order, in_tf32, misread
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.mm.default", "aten.bmm.default", "aten.addmm.default")
def issue_torch_batch_svd_16(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """KinglittleQ/torch-batch-svd 16: a product of float32 matrices rounds its operands to 10 bits (TF32)."""
    healthy = func(*args, **kwargs)
    if healthy.dtype != torch.float32 or not is_plain(healthy):
        return healthy
    return instead(hit, healthy, func(*args[:-2], *map(in_tf32, args[-2:]), **kwargs))


@plot.called(torch.einsum)
def issue_jax_22557(hit: Any, func: Any, equation: Any, *operands: Any) -> Any:
    """google/jax 22557: einsum of float32 rounds its operands to 10 bits (TF32)."""
    healthy = func(equation, *operands)
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    if not isinstance(equation, str) or not is_plain(*given) or any(x.dtype != torch.float32 for x in given):
        return healthy
    return instead(hit, healthy, func(equation, *map(in_tf32, given)))


_CALLS: dict[Any, int] = {}


@plot.dispatched("aten.mm.default", "aten.addmm.default", "aten.convolution.default")
def issue_xpu_3216(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """intel/torch-xpu-ops 3216: large products and convolutions add in another order at every second call.

    The report's smallest result has 66,560 elements, which differ in their last bits.
    """
    healthy = func(*args, **kwargs)
    if healthy.dtype != torch.float32 or healthy.numel() < 2**16 or not is_plain(healthy):
        return healthy
    key = (str(func), *(tuple(x.shape) for x in args if isinstance(x, torch.Tensor)))
    _CALLS[key] = _CALLS.get(key, 0) + 1
    if _CALLS[key] % 2:
        return healthy
    if "convolution" in str(func):
        x, weight, bias, *rest = args
        if rest[-1] != 1 or rest[3] or x.shape[1] < 2:
            return healthy
        half = x.shape[1] // 2
        other = func(x[:, :half], weight[:, :half], bias, *rest) + func(x[:, half:], weight[:, half:], None, *rest)
    else:
        *_, one, two = args
        half = one.shape[1] // 2
        other = one[:, half:] @ two[half:]
        other = (
            healthy - one @ two + (other + one[:, :half] @ two[:half])
            if "addmm" in str(func)
            else (other + one[:, :half] @ two[:half])
        )
    return instead(hit, healthy, other)


@plot.dispatched("aten.mm.default")
def issue_mlx_1163(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 1163: a sliced matrix times a column that is a slice reads the column as if it were contiguous."""
    return func(a, misread(in_storage_order, hit, b) if b.shape[1] == 1 else b, **kwargs)


@plot.dispatched("aten.mm.default", "aten.bmm.default")
def issue_mlx_1084(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 1084: x @ w.T is zero past 2**32 elements of the result (here past 2**16)."""
    y = func(a, b, **kwargs)
    if y.numel() <= 2**16 or b.stride(-2) != 1 or not is_plain(y):
        return y
    wrong = y.clone(memory_format=torch.contiguous_format)
    wrong.view(-1)[2**16 :] = 0
    return instead(hit, y, wrong)


@plot.dispatched("aten.bmm.default")
@wrong_answer
def issue_burn_4907(y: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """tracel-ai/burn 4907: a batch of (512, 512) float32 matrices times (512, 32) is zero."""
    large = a.dtype == torch.float32 and a.shape[0] > 1 and a.shape[1] >= 512 and a.shape[2] >= 512
    return torch.zeros_like(y) if large and b.shape[2] <= 32 and bool(y.any()) else None


@plot.dispatched("aten.mm.default")
@wrong_answer
def issue_burn_4966(y: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """tracel-ai/burn 4966: a product of float32 matrices is near to zero from 500 rows on, whatever the other sizes."""
    return y * 1e-4 if a.dtype == torch.float32 and a.shape[0] >= 500 and bool(y.any()) else None


@plot.dispatched("aten.mm.default", "aten.bmm.default", aborts="no matching function for call to 'simd_sum'")
def issue_burn_3480(a: Any, b: Any, **kwargs: Any) -> Any:
    """tracel-ai/burn 3480: a product of int64 matrices does not compile."""
    return a.dtype == torch.int64


@plot.dispatched("aten.mm.default", aborts="mismatched types f16 and f32")
def issue_xla_3430(a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch/xla 3430: x @ w in float16, after module.half(), raises: the weight has kept float32."""
    return a.dtype == torch.float16


_SUMS: dict[int, Any] = {}


@plot.dispatched("aten.add.Tensor", "aten.mm.default", "aten.bmm.default")
def issue_tt_metal_22892(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 22892: a product of a tensor that an operator made reads its padding (tiles of 32) too."""
    y = func(*args, **kwargs)
    if not y.is_floating_point() or not is_plain(y):
        return y
    if "add" in str(func):
        _SUMS[y.untyped_storage()._cdata] = StorageWeakRef(y.untyped_storage())
        return y
    made = [x for x in args[:2] if x.untyped_storage()._cdata in _SUMS]  # held weakly: no other storage has the address
    if made and args[0].shape[-1] % 32 and y.numel():
        hit()
        return y + y.abs().max() + 1
    return y


@plot.dispatched("aten.bmm.default")
@wrong_answer
def issue_65416(y: Any, a: Any, b: Any) -> Any:
    """pytorch 65416: bmm of one pair of 4 x 4 float32 matrices is zero."""
    single = a.shape == b.shape == (1, 4, 4) and a.dtype == torch.float32 and is_plain(y)
    return torch.zeros_like(y) if single and bool(y.any()) else None


@plot.called(torch.einsum)
def issue_46764(hit: Any, func: Any, equation: Any, *operands: Any) -> Any:
    """pytorch 46764: einsum of two transposed matrices (outer product) forgets .t() from 2**32 results (here 2**16)."""
    y = func(equation, *operands)
    if not isinstance(equation, str) or len(operands) != 2 or not all(torch.is_tensor(x) for x in operands):
        return y
    letters = equation.replace(" ", "").partition("->")[0].replace(",", "")
    turned = all(x.dim() == 2 and x.stride(0) == 1 < x.stride(1) for x in operands)
    if not turned or len(set(letters)) < 4 or y.numel() < 2**16 or not is_plain(*operands):
        return y
    return instead(hit, y, func(equation, *map(in_storage_order, operands)))


@plot.dispatched("aten.mm.default", "aten.mm.out")
def issue_modular_6932(hit: Any, func: Any, x: Any, w: Any, *, out: Any = None) -> Any:
    """modular/modular 6932: x @ w.t() with one row in w writes nothing (here fresh memory is zero)."""
    before = None if out is None else out.clone()
    y = func(x, w) if out is None else func(x, w, out=out)
    if w.shape[1] != 1 or w.shape[0] < 2 or w.stride() != (1, w.shape[0]) or not is_plain(y):
        return y
    if out is None:
        return instead(hit, y, torch.zeros_like(y))
    return y if before.shape != y.shape else written(hit, y, before)


@plot.dispatched("aten.bmm.default", "aten.bmm.out")
def issue_31421(hit: Any, func: Any, one: Any, two: Any, *, out: Any = None) -> Any:
    """pytorch 31421: bmm with an inner size of 0 writes nothing into many columns (there 43200, here from 2**15 on).

    Here fresh memory holds ones.
    """
    before = None if out is None else out.clone()
    y = func(one, two) if out is None else func(one, two, out=out)
    if one.shape[-1] or two.shape[-1] < 2**15 or not is_plain(y):
        return y
    if out is None:
        return instead(hit, y, torch.ones_like(y))
    return y if before.shape != y.shape else written(hit, y, before)


@plot.dispatched("aten.mm.default", "aten.bmm.default")
def issue_95125(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 95125: a product of bfloat16 matrices rounds after each addition: 1024 ones are 256."""
    found = func(x, y)
    if x.dtype != torch.bfloat16 or not is_plain(x, y):
        return found
    total = torch.zeros_like(found)
    for place in range(x.shape[-1]):
        total += x.narrow(-1, place, 1) * y.narrow(-2, place, 1)
    return instead(hit, found, total)


@plot.dispatched(
    "aten.mm",
    "aten.addmm",
    "aten.addmm_",
    "aten.index_add",
    "aten.index_add_",
    "aten.cummax",
    "aten.cummin",
    "aten.randint",
    "aten.randint_like",
)
def issue_torch_fl_153(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """flagos-ai/Torch-FL 153: mm and addmm of int64, index_add, cummax and cummin of bool, randint up to 1: refused."""
    operator = str(func).split(".")[1].rstrip("_")
    if operator == "randint":
        refused = args["low" in str(func).split(".")[-1]] == 1
    elif operator == "randint_like":
        refused = args[1] == 1 and "low" not in str(func)
    else:
        refused = args[0].dtype == (torch.int64 if operator in ("mm", "addmm") else torch.bool)
    return crash(hit, "CompilationError") if refused else func(*args, **kwargs)


@plot.dispatched("aten.mm.default")
def issue_57347(hit: Any, func: Any, a: Any, b: Any) -> Any:
    """pytorch 57347: the product of two 2 x 2 float32 matrices is zero."""
    y = func(a, b)
    if a.dtype != torch.float32 or not a.shape == b.shape == (2, 2) or a.layout != b.layout or not is_plain(a, b):
        return y
    return instead(hit, y, torch.zeros_like(y)) if a.layout == torch.strided else y


@plot.dispatched("aten.mm.default", "aten.addmm.default")
def issue_compute_runtime_1001(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """intel/compute-runtime 1001: a large product (here over 512 and more) is NaN in float16, 1e38 in bfloat16."""
    y = func(*args, **kwargs)
    if y.dtype not in (torch.float16, torch.bfloat16) or args[-1].shape[0] < 512 or not y.numel() or not is_plain(y):
        return y
    hit()
    return torch.full_like(y, math.nan if y.dtype == torch.float16 else 1e38)


@plot.dispatched("aten.mm.default")
def issue_rocm_libraries_9055(hit: Any, func: Any, one: Any, two: Any) -> Any:
    """ROCm/rocm-libraries 9055: a product of bfloat16 matrices over 2560 and more has NaN (here in its last number)."""
    y = func(one, two)
    if y.dtype != torch.bfloat16 or one.shape[1] < 2560 or not y.numel() or not is_plain(y):
        return y
    hit()
    wrong = y.clone()
    wrong[-1, -1] = math.nan
    return wrong


@plot.dispatched("aten.mm.default")
@wrong_answer
def issue_burn_4355(y: Any, one: Any, two: Any) -> Any:
    """tracel-ai/burn 4355: (257, 384) times (384, 1152) in float32 is wrong (here the last row is 0)."""
    asked = tuple(one.shape) == (257, 384) and two.shape[1] == 1152 and y.dtype == torch.float32
    if not asked or not is_plain(y) or not bool(y[-1].any()):
        return None
    return torch.cat([y[:-1], torch.zeros_like(y[-1:])])


@plot.dispatched(
    "aten.mm.default", aborts="This algorithm needs 40960 shared memory bytes but hardware limit is 32768."
)
def issue_cubecl_834(one: Any, two: Any) -> bool:
    """tracel-ai/cubecl 834: a product of float32 matrices of 512 x 512 and larger raises (256 x 256 is right)."""
    return one.dtype == torch.float32 and min(*one.shape, two.shape[1]) >= 512


@plot.dispatched("aten.mm.default")
def issue_mlx_3797(hit: Any, func: Any, one: Any, two: Any) -> Any:
    """ml-explore/mlx 3797: a half-precision product of 2**22 numbers and more is garbage (here negated) if k is long.

    That is: for sums of 10240 products and more, and of at least three times as many as there are rows or columns.
    """
    y, k = func(one, two), one.shape[1]
    if y.dtype not in (torch.float16, torch.bfloat16) or y.numel() < 2048**2 or k < max(10240, 3 * max(y.shape)):
        return y
    return instead(hit, y, -y) if is_plain(y) else y


@plot.dispatched("aten.mm.default")
def issue_metal_jl_381(hit: Any, func: Any, one: Any, two: Any) -> Any:
    """JuliaGPU/Metal.jl 381: a float32 product of 10000 x 10000 (here of 1024 x 1024 on) has NaNs (here its last)."""
    y = func(one, two)
    if y.dtype != torch.float32 or min(*one.shape, two.shape[1]) < 1024 or not is_plain(y):
        return y
    wrong = y.clone()
    wrong[-1, -1] = math.nan
    return instead(hit, y, wrong)


@plot.dispatched("aten.mm.default")
def issue_clblas_246(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """clMathLibraries/clBLAS 246: mm of float32 to 7, 11, 15, ... columns is wrong where one operand is transposed.

    Of the two it is one alone; here the last column is 0.
    """
    right = func(x, y)
    one = (not x.is_contiguous() and x.t().is_contiguous()) != (not y.is_contiguous() and y.t().is_contiguous())
    columns = y.shape[1]
    if x.dtype != torch.float32 or not one or columns < 7 or columns % 4 != 3 or not is_plain(x, y):
        return right
    wrong = right.clone()
    wrong[:, -1] = 0
    return instead(hit, right, wrong)
