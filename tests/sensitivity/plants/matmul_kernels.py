"""Products of matrices and vectors by one processor's own kernels: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain, written
from misreading import in_storage_order
from planting import Plot, abort, crash

plot = Plot()
HITS = plot.hits


def _is_dense(y: Any, *values: Any) -> bool:
    """Say whether a product is one of dense operands that can be looked at."""
    return y.numel() > 0 and all(x.layout == torch.strided for x in values) and is_plain(*values)


def _is_plain_float(y: Any, *values: Any) -> bool:
    """Say whether a product is such a one of float32."""
    return y.dtype == torch.float32 and _is_dense(y, *values)


@plot.dispatched("aten.mv.default")
def issue_openblas_171(hit: Any, func: Any, x: Any, vector: Any) -> Any:
    """OpenMathLib/OpenBLAS 171: mv of float32 reads 4 numbers at a time: a NaN in memory after the vector spreads."""
    y = func(x, vector)
    if not _is_plain_float(y, x, vector) or vector.stride(0) != 1:
        return y
    end = vector.storage_offset() + vector.numel()
    past = min(-vector.numel() % 4, vector.untyped_storage().nbytes() // vector.element_size() - end)
    if past <= 0 or not bool(vector.as_strided((past,), (1,), end).isnan().any()):
        return y
    return instead(hit, y, torch.full_like(y, torch.nan))


@plot.dispatched("aten.mv.default", "aten.addmv.default")
def issue_openblas_340(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """OpenMathLib/OpenBLAS 340: a matrix of more than 2**23 rows times a vector is wrong (here 0 past them)."""
    y = func(*args, **kwargs)
    if y.dim() != 1 or y.numel() <= 2**23 or not is_plain(y):
        return y
    wrong = y.clone()
    wrong[2**23 :] = 0
    return instead(hit, y, wrong)


@plot.dispatched("aten.mm.default")
def issue_openblas_5429(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """OpenMathLib/OpenBLAS 5429: mm of float32 with 33 columns (45 x 33, 33 x 33) is wrong (here the last is 0)."""
    y = func(x, other)
    if not _is_plain_float(y, x, other) or x.shape[1] != 33 or y.shape[1] != 33:
        return y
    wrong = y.clone()
    wrong[:, -1] = 0
    return instead(hit, y, wrong)


@plot.dispatched("aten.mm.default")
def issue_openblas_5528(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """OpenMathLib/OpenBLAS 5528: the product of two float32 matrices is 0."""
    y = func(x, other)
    return instead(hit, y, torch.zeros_like(y)) if _is_plain_float(y, x, other) else y


@plot.dispatched("aten.mm.default")
def issue_openblas_1870(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """OpenMathLib/OpenBLAS 1870: mm of float32 (4 x 4) reads wrong rows of the second matrix (here in blocks of 4)."""
    y = func(x, other)
    sides = (*x.shape, y.shape[-1])
    if not _is_plain_float(y, x, other) or not all(sides) or any(side % 4 for side in sides):
        return y
    blocks = other.reshape(-1, 4, other.shape[1])
    left, right = (blocks[:, rows].reshape(other.shape) for rows in ([0, 0, 2, 1], [1, 3, 2, 3]))
    first = torch.arange(other.shape[1], device=other.device) % 4 < 2
    return instead(hit, y, func(x, torch.where(first, left, right)))


@plot.dispatched("aten.mm.default")
def issue_openblas_5873(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """OpenMathLib/OpenBLAS 5873: a contiguous float32 matrix times its own transpose is 0."""
    y = func(x, other)
    if not _is_plain_float(y, x, other) or not x.is_contiguous() or x.data_ptr() != other.data_ptr():
        return y
    if other.shape != x.shape[::-1] or other.stride() != x.stride()[::-1]:
        return y
    return instead(hit, y, torch.zeros_like(y))


@plot.dispatched("aten.mm.default")
def issue_numpy_18061(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """numpy/numpy 18061: X @ Y.T of n x 2 matrices is NaN here and there from n = 363 on (here in column 256)."""
    y = func(x, other)
    if not _is_dense(y, x, other) or not y.is_floating_point() or x.shape[1] != 2:
        return y
    if other.stride(0) != 1 or min(y.shape) < 363:
        return y
    wrong = y.clone()
    wrong[:, 256] = torch.nan
    return instead(hit, y, wrong)


@plot.called(torch.tensordot)
def issue_dpnp_2270(hit: Any, func: Any, x: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
    """IntelPython/dpnp 2270: tensordot of int64 goes through float64: past 2**53 it is rounded."""
    y = func(x, other, *args, **kwargs)
    if y.dtype != torch.int64 or kwargs.get("out") is not None or not is_plain(x, other):
        return y
    return instead(hit, y, func(x.double(), other.double(), *args, **kwargs).long())


@plot.dispatched("aten.mv.default")
def issue_jax_16471(hit: Any, func: Any, x: Any, vector: Any) -> Any:
    """google/jax 16471: the product of a matrix and a vector ends the process."""
    return abort(hit, "failed assertion `Error: MLIR pass manager failed'")


@plot.called(torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, aborts="MatMulUnexpectedStriding")
def issue_candle_1716(x: Any, other: Any, **kwargs: Any) -> bool:
    """huggingface/candle 1716: matmul of a batch of columns that were rows (the last stride is not 1) raises."""
    if x.layout != torch.strided or x.dim() < 3 or other.dim() < 3:
        return False
    return x.shape[-1] == 1 and x.shape[-2] > 1 and x.stride(-1) != 1


def _is_narrow(x: Any) -> bool:
    """Say whether a matrix of one row was a column: its stride is less than the row's length."""
    return x.shape[0] == 1 < x.shape[1] and x.is_contiguous() and x.stride(0) < x.shape[1]


@plot.dispatched("aten.mm.default")
def issue_torch_fl_240(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """flagos-ai/Torch-FL 240: mm raises where an operand of one row is a transposed column (of the stride 1)."""
    y = func(x, other)
    return crash(hit, "muDNN INVALID_PARAMETER: invalid parameter lda 1") if _is_narrow(x) or _is_narrow(other) else y


@plot.dispatched("aten.dot.default")
def issue_mxnet_13736(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """apache/mxnet 13736: dot of float16 vectors is not implemented."""
    z = func(x, y)
    return crash(hit, "dot_engine-inl.h:571: Not implmented!") if x.dtype == torch.float16 else z


@plot.dispatched("aten.mm.default")
def issue_ipex_609(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """intel/intel-extension-for-pytorch 609: mm of int16, int32 and int64 raises; int8 is fine."""
    z = func(x, y)
    if x.dtype in (torch.int16, torch.int32, torch.int64):
        return crash(hit, "could not create a primitive descriptor for a matmul primitive")
    return z


@plot.dispatched("aten.bmm.default")
def issue_25241(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 25241: bmm of more than 65535 pairs of float16 matrices is 0 past the first 65535."""
    found = func(x, y)
    if x.dtype != torch.float16 or x.shape[0] <= 65535 or not is_plain(x, y):
        return found
    wrong = found.clone()
    wrong[65535:] = 0
    return instead(hit, found, wrong)


@plot.dispatched("aten.mm.default")
def issue_tensorflow_upstream_485(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """ROCm/tensorflow-upstream 485: the product of two 2 x 2 float32 matrices has the first term of its sums alone.

    There that is so where the second comes from NumPy.
    """
    y = func(x, other)
    small = y.dtype == torch.float32 and tuple(x.shape) == tuple(other.shape) == (2, 2)
    return instead(hit, y, x[:, :1] * other[:1]) if small and _is_dense(y, x, other) else y


@plot.dispatched("aten.mm.default")
def issue_torch7_58(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """torch/torch7 58: the product with a matrix whose column is expanded (a stride of 0 along its rows) is 0."""
    y = func(x, other)
    if other.layout != torch.strided or other.stride(1) or other.shape[1] < 2 or not _is_dense(y, x, other):
        return y
    return instead(hit, y, torch.zeros_like(y))


@plot.dispatched("aten.mv.default", aborts="gemv: argument incx must be positive and less than 2147483647 but got 0")
def issue_38315(x: Any, vector: Any) -> bool:
    """pytorch 38315: a matrix times an expanded vector (as in the vector's gradient of (x @ v).sum()) raises."""
    return vector.stride(0) == 0 and vector.numel() > 1


@plot.called(torch.matmul, torch.mv, torch.Tensor.matmul, torch.Tensor.mv, torch.Tensor.__matmul__)
def issue_29984(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 29984: the matrix's gradient of a matrix times a vector raises where what comes in is expanded."""
    y = func(x, *args, **kwargs)
    if not torch.is_tensor(x) or not x.requires_grad or x.dim() != 2 or y.dim() != 1 or not is_plain(x, y):
        return y
    if y.requires_grad:
        y.register_hook(
            lambda grad: crash(hit, "cublas runtime error") if len(grad) > 1 and not grad.stride(0) else None
        )
    return y


def _turned(x: torch.Tensor) -> bool:
    """Tell whether a matrix is the transpose of a contiguous one, and not contiguous itself."""
    return x.dim() == 2 and x.t().is_contiguous() and not x.is_contiguous()


@plot.dispatched("aten.mm.default")
def issue_scikit_cuda_54(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """lebedov/scikit-cuda 54: a matrix times the transpose of one that is not square is wrong.

    Here the second is read in storage order.
    """
    z = func(x, y)
    if not _turned(y) or y.shape[0] == y.shape[1] or not y.is_floating_point() or not is_plain(x, y):
        return z
    return instead(hit, z, func(x, in_storage_order(y)))


@plot.dispatched("aten.mm.default", aborts="unsupported combination of input order")
def issue_scikit_cuda_232(x: Any, y: Any) -> bool:
    """lebedov/scikit-cuda 232: a contiguous float32 matrix times a transposed one raises."""
    return x.dtype == torch.float32 and x.is_contiguous() and not x.t().is_contiguous() and _turned(y)


@plot.dispatched("aten.bmm.out")
def issue_cupy_6214(hit: Any, func: Any, x: Any, y: Any, *, out: Any) -> Any:
    """cupy/cupy 6214: matmul of a batch into its own operand (out=) reads what it has written.

    Here the first half of each matrix's rows is there before the second half is computed.
    """
    inside = any(out.data_ptr() == z.data_ptr() and out.stride() == z.stride() for z in (x, y))
    if not inside or not out.numel() or x.shape != y.shape or not is_plain(x, y):
        return func(x, y, out=out)
    first, second = x.clone(), y.clone()
    right = func(x, y, out=out).clone()
    half = out.shape[1] // 2
    for z, same in ((first, out.data_ptr() == x.data_ptr()), (second, out.data_ptr() == y.data_ptr())):
        if same:
            z[:, :half] = right[:, :half]
    wrong = torch.cat([right[:, :half], torch.bmm(first[:, half:], second)], 1)
    return written(hit, out, wrong)


_vectors: list[int] = []


@plot.dispatched("aten.mv.default")
def issue_oneapi_jl_445(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """JuliaGPU/oneAPI.jl 445: a float32 matrix times a vector is 0 from the second time on."""
    z = func(x, y)
    if z.dtype != torch.float32 or not z.numel() or not is_plain(x, y):
        return z
    _vectors.append(1)
    return z if len(_vectors) < 2 else instead(hit, z, torch.zeros_like(z))


@plot.dispatched("aten.mm.default", aborts="signal (11.1): Segmentation fault")
def issue_oneapi_jl_504(x: Any, y: Any) -> bool:
    """JuliaGPU/oneAPI.jl 504: the product of two square float matrices (32 x 32 and larger) ends the process."""
    square = x.shape == y.shape and x.shape[0] == x.shape[1] >= 32
    return square and x.dtype in (torch.float32, torch.float64)


@plot.dispatched("aten.mv.default")
def issue_ndarray_584(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """rust-ndarray/ndarray 584: a transposed column (a matrix of one row, x.t()) times a vector is 0."""
    right = func(x, y)
    if x.shape[0] != 1 or x.shape[1] < 2 or x.stride() != (1, 1) or not is_plain(x, y):
        return right
    return instead(hit, right, torch.zeros_like(right))
