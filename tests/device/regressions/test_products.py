"""Products: linear layers and matrix products, by rank, layout, size, and what ran before."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import backward, leaf

cases = Cases("regressions")


def _make(shape: tuple[int, ...], out: int, dtype: torch.dtype = torch.float32) -> Any:
    def make(d: Any) -> Any:
        first = shape[0] + d.k
        width = shape[-1]
        return (
            d.normal(first, *shape[1:], dtype=dtype),
            d.normal(out, width, dtype=dtype, scale=width**-0.5),
            d.normal(out, dtype=dtype),
        )

    return make


def _linear(x: Any, w: Any, b: Any) -> Any:
    return F.linear(x, w, b), F.linear(x, w), torch.matmul(x, w.t()) + b


def _layer(run: Any, x: Any, w: Any, b: Any) -> Any:
    layer = torch.nn.Linear(w.shape[1], w.shape[0]).to(run.device, run.cast(w.dtype))
    with torch.no_grad():
        layer.weight.copy_(w)
        layer.bias.copy_(b)
    return layer(x), F.linear(x, w)


# https://github.com/pytorch/pytorch/issues/188438: nn.Linear with bias wrong on 3-D input on M1 / macOS 26 (GitHub
# macos-26 runner)
for _shape, _out in (((80, 1, 2), 192), ((80, 1, 4), 192), ((80, 1, 2), 768)):
    cases.add(f"issue-188438-{_shape[-1]}to{_out}", _layer, issue="188438", make=_make(_shape, _out), terms=_shape[-1])
# https://github.com/pytorch/pytorch/issues/192934: F.linear on 3-D input corrupted on "Apple M1 (Virtual)" (GitHub
# VirtualMac2,1)
cases.add("issue-192934", _linear, issue="192934", make=_make((2, 64, 128), 384), terms=128)
cases.add("issue-runner-images-14380", _linear, issue="runner-images-14380", make=_make((3, 64, 128), 96), terms=128)

# https://github.com/pytorch/pytorch/issues/180776: F.linear without bias, >2-D, bf16/fp16: consecutive calls differ
for _shape, _out in (((2, 13, 1024), 256), ((6, 6, 634), 634), ((1, 3, 28, 315), 315)):
    for _dtype in (torch.bfloat16, torch.float16):
        cases.add(
            f"issue-180776-{_shape[-1]}-{str(_dtype)[6:]}",
            lambda x, w, b: (F.linear(x, w), F.linear(x, w)),
            issue="180776",
            make=_make(_shape, _out, _dtype),
            terms=_shape[-1],
        )

# The reported size is 130 GFLOP; the smaller one keeps batch, rows over 129 and width over 64.
# https://github.com/pytorch/pytorch/issues/97239: nn.Linear wrong for large (B,S,768)
cases.add("issue-97239", _linear, issue="97239", make=_make((9, 144, 768), 96), terms=768)
cases.add(
    "issue-97239-reported",
    _linear,
    issue="97239",
    make=_make((253, 144, 768), 2304),
    terms=768,
    full=True,
    memory_bytes=7 << 30,
    states=("fresh",),
    limit_seconds=600,
)
# https://github.com/pytorch/pytorch/issues/95188: nn.Linear wrong for SD sizes on macOS 13.2.1
cases.add("issue-95188", _linear, issue="95188", make=_make((2, 4096, 320), 32), terms=320, states=("fresh", "again"))
cases.add(
    "issue-95188-reported",
    _linear,
    issue="95188",
    make=_make((2, 20736, 320), 320),
    terms=320,
    full=True,
    memory_bytes=2 << 30,
    states=("fresh",),
    limit_seconds=300,
)
# https://github.com/pytorch/pytorch/issues/122045: F.linear wrong when in_features=1 and output is large (GPT-2
# lm_head)
cases.add("issue-122045", lambda x, w, b: F.linear(x, w), issue="122045", make=_make((9, 4, 1), 50304))
cases.add(
    "issue-122045-reported",
    lambda x, w, b: F.linear(x, w)[:, ::61],
    issue="122045",
    make=_make((9, 1024, 1), 50304),
    full=True,
    memory_bytes=8 << 30,
    states=("fresh",),
    limit_seconds=300,
)
# https://github.com/pytorch/pytorch/issues/109457: training worse than cpu/cuda (Informer; traced to lm_head-sized
# Linear)
cases.add(
    "issue-109457",
    lambda x, w, b: F.linear(x, w)[:, ::61],
    issue="109457",
    make=_make((9, 1024, 768), 50304),
    terms=768,
    full=True,
    memory_bytes=8 << 30,
    states=("fresh",),
    limit_seconds=900,
)
# Rows over 2**16: in float32 with a bias, on the leading dimension.
# https://github.com/pytorch/pytorch/issues/189495: F.linear with bias on 3-D input wraps rows at 2**16
cases.add(
    "issue-189495-shrunk",
    lambda x, w, b: F.linear(x, w, b),
    issue="189495",
    make=_make((65537, 1, 4), 3),
    terms=4,
    states=("fresh", "again"),
)
cases.add(
    "issue-189495-reported",
    lambda x, w, b: F.linear(x, w, b),
    issue="189495",
    make=_make((65537, 11, 128), 512),
    terms=128,
    full=True,
    memory_bytes=18 << 30,
    states=("fresh",),
    limit_seconds=600,
)


# https://github.com/pytorch/pytorch/issues/189565: F.linear backward aborts with 1-D weight; grad_input zeros past
# first 16 KB page
@cases.case("issue-189565-vector", issue="189565", make=lambda d: (d.normal(3840 + d.k, 33), d.normal(33)), terms=33)
def _weight_vector(x: Any, w: Any) -> Any:
    given, weight = leaf(x), leaf(w)
    return backward(F.linear(given, weight), given, weight)


@cases.case("issue-189565-row", issue="189565", make=lambda d: (d.normal(3840 + d.k, 33), d.normal(1, 33)), terms=3840)
def _weight_row(x: Any, w: Any) -> Any:
    given, weight = leaf(x), leaf(w)
    return backward(F.linear(given, weight), given, weight)


def _five_dimensions(dtype: torch.dtype) -> Any:
    return lambda d: (d.of(dtype, 2 + d.k, 1, 2, 1, 2), d.of(dtype, 3, 2), d.of(dtype, 3))


def _trained(x: Any, w: Any, b: Any) -> Any:
    given, weight, bias = leaf(x), leaf(w), leaf(b)
    y = F.linear(given, weight, bias)
    return backward(y, given, weight, bias, grad=torch.ones_like(y))


# https://github.com/pytorch/pytorch/issues/114942: Linear crashes on 5-D input
cases.add("issue-114942", _trained, issue="114942", make=_five_dimensions(torch.float32), terms=8)
cases.add(
    "issue-114942-complex", _trained, issue="114942", make=_five_dimensions(torch.complex64), terms=8, since="2.1"
)


def _transposed(dtype: torch.dtype) -> Any:
    return lambda d: (d.normal(3 + d.k, 5, 8, dtype=dtype), d.normal(8, 6, dtype=dtype), d.normal(6, dtype=dtype))


def _transposed_weight(x: Any, w: Any, b: Any) -> Any:
    given, weight, bias = leaf(x), leaf(w), leaf(b)
    return (
        backward(F.linear(given, weight.t(), bias), given, weight, bias),
        F.linear(x[0], w.t(), b),
        F.linear(x, w.t()),
        F.linear(x, w[:, ::2].t(), b[::2]),
    )


# https://github.com/pytorch/pytorch/issues/162730: F.linear with non-contiguous weight wrong in 2.8.0 fast path
for _dtype in (torch.float32, torch.float16):
    cases.add(f"issue-162730-{str(_dtype)[6:]}", _transposed_weight, issue="162730", make=_transposed(_dtype), terms=24)


# https://github.com/pytorch/pytorch/issues/167154: F.linear with a stride-0 (expanded/as_strided) input aborts:
# buffer not large enough
@cases.case("issue-167154", issue="167154", make=_make((1, 49, 768), 5), terms=768)
def _expanded_input(x: Any, w: Any, b: Any) -> Any:
    wide = x[0:1].expand(5, -1, -1)
    return F.linear(wide, w, b), F.linear(wide, w), F.linear(x.as_strided((5, 7, 768), (0, 768, 1)), w, b)


# https://github.com/pytorch/pytorch/issues/78511: attention-score matmul wrong when K is permute()d then transpose()d
@cases.case(
    "issue-78511", issue="78511", make=lambda d: (d.normal(8 + d.k, 20, 768), d.normal(8 + d.k, 20, 768)), terms=64
)
def _scores_of_permuted_keys(q: Any, k: Any) -> Any:
    heads = (q.shape[0], 20, 12, 64)
    query, key = (x.view(heads).permute(0, 2, 1, 3) for x in (q, k))
    return torch.matmul(query, key.transpose(-1, -2)), torch.matmul(query, key.transpose(-1, -2).contiguous())


def _columns(rows: int) -> Any:
    return lambda d: (d.normal(rows + d.k, 1), d.normal(1, 32769))


# https://github.com/pytorch/pytorch/issues/116769: matmul wrong beyond 32768 columns (int16 in Metal shader)
cases.add("issue-116769", lambda a, b: (a @ b, torch.mm(a, b)), issue="116769", make=_columns(17))
cases.add(
    "issue-116769-reported",
    lambda a, b: torch.mm(a, b),
    issue="116769",
    make=_columns(1025),
    full=True,
    memory_bytes=2 << 30,
    states=("fresh", "again"),
)


def _zeros_by_ones(batch: int) -> Any:
    return lambda d: (torch.zeros(batch + d.k, 9, 1), torch.ones(1, 32769))


# https://github.com/pytorch/pytorch/issues/111634: batched matmul wrong at (911,9,1)@(1,32769)
cases.add("issue-111634", lambda a, b: torch.matmul(a, b), issue="111634", make=_zeros_by_ones(5))
cases.add(
    "issue-111634-reported",
    lambda a, b: torch.matmul(a, b),
    issue="111634",
    make=_zeros_by_ones(911),
    full=True,
    memory_bytes=12 << 30,
    states=("fresh",),
    limit_seconds=300,
)


def _deep(depth: int) -> Any:
    return lambda d: (
        d.normal(2, 16 + d.k, depth, scale=0.1),
        d.normal(2, depth, 16, scale=0.1),
        d.normal(2, 16 + d.k, 16),
    )


def _deep_products(a: Any, b: Any, c: Any) -> Any:
    return (
        torch.bmm(a, b),
        torch.baddbmm(c, a, b),
        torch.addbmm(c[0], a, b),
        torch.matmul(a, b),
        torch.einsum("bij,bjk->bik", a, b),
        torch.mm(a[0], b[0]),
    )


# https://github.com/pytorch/pytorch/issues/195163: bmm/baddbmm/addbmm read past operands for K >= 32767 on M1/M2
for _depth in (32767, 32768, 32769):
    cases.add(
        f"issue-195163-{_depth}",
        _deep_products,
        issue="195163",
        make=_deep(_depth),
        terms=2 * _depth,
        states=("fresh", "other"),
    )


# https://github.com/pytorch/pytorch/issues/193487: allocator-state dependent wrong matmul (10-30% of scale)
@cases.case(
    "issue-193487",
    issue="193487",
    make=lambda d: tuple((d.normal(n + d.k, 25), d.normal(n + d.k, 25)) for n in (7, 31, 50, 101)),
    terms=101,
)
def _products_after_other_allocations(run: Any, *pairs: Any) -> Any:
    answers = []
    for x, y in pairs:
        blocks = [torch.full((size,), 1e3, device=run.device) for size in (625, 1251, 17)]
        del blocks
        answers.append((torch.mm(x.t(), y), x.T @ y, torch.matmul(x.t(), y.clone())))
    return answers


# https://github.com/pytorch/pytorch/issues/197636: bmm wrong (and its grads) when output > 2**32 elements with
# strided input
@cases.case(
    "issue-197636",
    issue="197636",
    make=lambda d: (d.normal(65537, 64, 256), d.normal(65537, 64, 256)),
    terms=64,
    full=True,
    memory_bytes=90 << 30,
    states=("fresh",),
    limit_seconds=900,
)
def _batches_past_two_to_the_sixteen(a: Any, b: Any) -> Any:
    y = torch.bmm(a.transpose(1, 2), b)
    return y[0], y[-1], y[65535]


# https://github.com/pytorch/pytorch/issues/141909: matmul output > 2**32 elements
@cases.case(
    "issue-141909",
    issue="141909",
    make=lambda d: (d.normal(1, 72250, 1), d.normal(1, 1, 72250)),
    full=True,
    memory_bytes=80 << 30,
    states=("fresh",),
    limit_seconds=900,
)
def _output_past_two_to_the_thirty_two(a: Any, b: Any) -> Any:
    y = torch.bmm(a, b)
    return y[0, :3], y[0, -3:]


# https://github.com/pytorch/pytorch/issues/196190: The product of two sparse tensors says that it is coalesced
# and is not in order
@cases.case(
    "issue-196190",
    issue="196190",
    make=lambda d: (d.normal(5), d.normal(4)),
    terms=64,
    since="2.8",
    may_be_missing=True,
)
def _products_of_sparse_tensors_are_in_order(first: Any, second: Any) -> Any:
    s = torch.sparse_coo_tensor(torch.tensor([[3, 0, 3, 1, 0], [5, 2, 1, 4, 2]], device=first.device), first, (4, 6))
    t = torch.sparse_coo_tensor(torch.tensor([[1, 3, 0, 2], [4, 1, 2, 5]], device=first.device), second, (4, 6))
    answers = []
    for product in (s.coalesce() * t.coalesce(), torch.sparse.mm(s.coalesce(), t.t().coalesce())):
        rows, columns = product._indices()
        places = rows * 6 + columns
        answers += [product.to_dense(), not product.is_coalesced() or bool((places[1:] > places[:-1]).all())]
    return answers
