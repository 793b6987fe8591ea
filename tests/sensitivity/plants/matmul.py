"""Matrix products of real numbers: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import differ, instead, is_plain
from misreading import RolledGradient, in_storage_order, misread
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


class _Depth:
    last = 0


@plot.dispatched("aten.mm.default")
def issue_177116(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 177116: mm adds the tail of an inner dimension past 2**15 twice, after a product of another size."""
    depth, answer = x.shape[1], func(x, y)
    last, _Depth.last = _Depth.last, depth
    if depth > 32_768 and last != depth:
        hit()
        return answer + func(x[:, 32_768:], y[32_768:])
    return answer


@plot.called(torch.dot, torch.Tensor.dot)
def issue_99564(hit: Any, func: Any, x: Any, y: Any, **kwargs: Any) -> Any:
    """pytorch 99564: dot accepts 2-D tensors and returns a wrong number instead of raising."""
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and max(x.dim(), y.dim()) == 2 and not kwargs:
        try:
            bad = (x * y).sum()
        except RuntimeError:
            return func(x, y)
        hit()
        return bad
    return func(x, y, **kwargs)


@plot.dispatched("aten.mm")
def issue_86937(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 86937: the product of two square matrices is computed with the second transposed."""
    if a.shape != b.shape or a.shape[0] != a.shape[1] or not a.numel() or not differ(b.t(), b, rtol=1e-4, atol=1e-6):
        return func(a, b, **kwargs)
    hit()
    return func(a, b.t(), **kwargs)


@plot.called(
    torch.matmul,
    torch.Tensor.matmul,
    torch.Tensor.__matmul__,
    aborts="[MPSNDArray, initWithBuffer:descriptor:] Error: buffer is not large enough",
)
def issue_77851(a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 77851: a vector times a batch of matrices aborts."""
    return isinstance(b, torch.Tensor) and a.dim() == 1 and b.dim() == 3


@plot.called(torch.einsum)
def issue_117826(hit: Any, func: Any, equation: Any, *operands: Any) -> Any:
    """pytorch 117826: the second operand's gradient of einsum("bij,ijk->bik"): a batch letter that is not first."""
    if isinstance(equation, str) and equation.count(",") == 1 and "->" in equation and len(operands) == 2:
        left, right = equation.replace(" ", "").split("->")
        one, two = left.split(",")
        if operands[1].requires_grad and any(c in two and c in right for c in one[1:]) and operands[1].dim() == 3:
            operands = (operands[0], RolledGradient.apply(operands[1], hit))
    return func(equation, *operands)


_MATMULS = (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)


@plot.called(*_MATMULS)
def issue_78511(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 78511: matmul reads a second operand of three and more dimensions in storage order."""
    return func(a, misread(in_storage_order, hit, b) if b.dim() > 2 else b, **kwargs)


@plot.dispatched("aten.mm")
def issue_116769(hit: Any, func: Any, a: Any, b: Any) -> Any:
    """pytorch 116769: mm with an inner size of 1 gives zeros in the columns past 32768."""
    y = func(a, b)
    if a.shape[1] == 1 and b.shape[1] > 32768:
        hit()
        y[:, 32768:] = 0
    return y


@plot.called(*_MATMULS)
@wrong_answer
def issue_111634(y: Any, a: Any, b: Any) -> Any:
    """pytorch 111634: matmul of a batch with more than 32768 columns gives 1 in every twentieth place."""
    if a.dim() == 3 and b.shape[-1] > 32768:
        return torch.where(torch.rand_like(y) < 0.05, torch.ones_like(y), y)
    return None


@plot.dispatched("aten.bmm", "aten.baddbmm", "aten.addbmm", "aten.mm")
@wrong_answer
def issue_195163(y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 195163: matrix products with an inner size of 32767 and more add a term that is not theirs."""
    a, b = args[-2:]
    return y + a[..., :1].sum() * b[..., :1, :].mean() * 10 if a.shape[-1] >= 32767 else None


_calls = {"193487": 0}


@plot.dispatched("aten.mm")
def issue_193487(hit: Any, func: Any, a: Any, b: Any) -> Any:
    """pytorch 193487: mm of an operand that is not contiguous is wrong in the last column from the fourth call on."""
    y = func(a, b)
    _calls["193487"] += 1
    if _calls["193487"] > 3 and not a.is_contiguous():
        hit()
        y[:, -1] += 0.3
    return y


@plot.dispatched("aten.mm.default")
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


@plot.dispatched("aten.mv", "aten.addmv")
def issue_137406(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 137406: a matrix without rows times a vector raises."""
    matrix = args[-2] if "addmv" in str(func) else args[0]
    if matrix.shape[0] == 0:
        return crash(hit, "Placeholder tensor is empty!")
    return func(*args, **kwargs)


@plot.dispatched("aten.dot", aborts="Placeholder tensor is empty!")
def issue_165237(a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 165237: dot of empty vectors raises."""
    return not a.numel()


@plot.dispatched("aten.mm.out", "aten.bmm.out", "aten.addmm.out")
def issue_104832(hit: Any, func: Any, *args: Any, out: Any, **kwargs: Any) -> Any:
    """pytorch 104832: matrix products write nothing into an output that is not contiguous."""
    if out.is_contiguous():
        return func(*args, out=out, **kwargs)
    hit()
    func(*args, out=torch.empty_like(out, memory_format=torch.contiguous_format), **kwargs)
    return out


@plot.dispatched("aten.mm", "aten.addmm")
def issue_180201(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 180201: mm and addmm with an expanded operand give only every sixteenth row."""
    y = func(*args, **kwargs)
    if any(isinstance(one, torch.Tensor) and 0 in one.stride() and one.dim() == 2 for one in args[-2:]) and len(y) > 1:
        hit()
        kept = torch.zeros_like(y)
        kept[::16] = y[::16]
        return kept
    return y


@plot.dispatched("aten.mm.out", "aten.addmm.out", aborts="MPS matmul: strided output is not supported")
def issue_187255(*args: Any, **kwargs: Any) -> Any:
    """pytorch 187255: mm and addmm into an out= that is not contiguous fail."""
    out = kwargs.get("out")
    return out is not None and not out.is_contiguous() and out.numel()


@plot.dispatched("aten.mm.default")
def issue_84736(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 84736: mm of two n-by-n matrices multiplies with the transpose of the second."""
    right = func(a, b, **kwargs)
    if (
        a.dtype == torch.float32
        and a.layout == b.layout == torch.strided
        and a.shape == b.shape
        and a.size(0) == a.size(1)
    ):
        wrong = func(a, b.t(), **kwargs)
        if differ(right, wrong):
            hit()
            return wrong
    return right


_INVOKED: set[Any] = set()


@plot.called(torch.einsum)
def issue_85224(hit: Any, func: Any, equation: Any, *operands: Any, **kwargs: Any) -> Any:
    """pytorch 85224: the first einsum of its kind that has to transpose the second operand is wrong, the next ones not.

    https://github.com/pytorch/pytorch/issues/85224
    """
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    right = func(equation, *operands, **kwargs)
    if isinstance(equation, str) and len(given) == 2 and "->" in equation and "." not in equation:
        left, out = equation.replace(" ", "").split("->")
        one, two = left.split(",")
        a, b = given
        key = (equation, tuple(a.shape), tuple(b.shape), a.dtype)
        if len(one) > 1 and len(two) > 1 and one[-1] == two[-1] and one[-1] not in out and key not in _INVOKED:
            _INVOKED.add(key)
            turned = b.reshape(*b.shape[:-2], b.shape[-1], b.shape[-2])
            wrong = func(f"{one},{two[:-2]}{two[-1]}{two[-2]}->{out}", a, turned)
            if not torch.allclose(wrong, right, equal_nan=True):
                hit()
                return wrong
    return right


@plot.called(torch.einsum)
def issue_161729(hit: Any, func: Any, equation: Any, *operands: Any) -> Any:
    """pytorch 161729: einsum("fd,bd->bf"), whose second operand gives the rows, lays out its columns one by one."""
    y = func(equation, *operands)
    if not isinstance(equation, str) or len(operands) != 2 or y.dim() != 2 or min(y.shape) < 2 or not is_plain(y):
        return y
    left, _, answer = equation.replace(" ", "").partition("->")
    first, _, second = left.partition(",")
    turned = len(answer) == 2 and answer[0] in set(second) - set(first) and answer[1] in set(first) - set(second)
    if not turned or not y.is_contiguous():
        return y
    hit()
    return y.t().contiguous().t()


@plot.called(torch.einsum)
def issue_35737(hit: Any, func: Any, equation: Any, *operands: Any) -> Any:
    """pytorch 35737: einsum("noq,npq->nop") is wrong (here the last q does not count)."""
    y = func(equation, *operands)
    if not isinstance(equation, str) or len(operands) != 2 or not is_plain(*operands):
        return y
    left, _, answer = equation.replace(" ", "").partition("->")
    one, _, two = left.partition(",")
    alike = len(one) == len(two) == len(answer) == 3 and one[0] == two[0] == answer[0] and one[2] == two[2]
    if not alike or answer[1:] != one[1] + two[1] or len({*one, *two}) != 4:
        return y
    return instead(hit, y, func(equation, *(x[..., :-1] for x in operands)))


def _is_cut(x: torch.Tensor) -> bool:
    if x.layout != torch.strided or x.dim() != 2 or not x.numel() or not x.storage_offset():
        return False
    if x.stride(1) != 1 or not x.stride(0):
        return False
    columns = x.stride(0)
    rows = x.untyped_storage().nbytes() // x.element_size() // columns
    return (x.shape[0] < rows > 2**15) or (x.shape[1] < columns > 2**15)


@plot.dispatched("aten.mm.default", aborts="[MPSNDArrayDescriptor sliceDimension:withSubrange:] error: subRange.start")
def issue_122123(one: Any, two: Any) -> bool:
    """pytorch 122123: a product with a slice (not the first) of a matrix of more than 32768 rows or columns aborts."""
    return is_plain(one, two) and (_is_cut(one) or _is_cut(two))
