"""Rule 3: below, at and above the sizes at which MPS takes another kernel, in each dtype that has one.

Where each number is read: names of kernels in the official wheel of 2.15.0 (`sdpa_vector_T_96_96`,
`prefill_attention_*_bd72`, `sort_block_T_tptg1024`, `radix_*_u16`, `conv3d_mpp_*_k133_s122_*_c16`,
`cumsum_strided_block_*_32`) and PyTorch's host code: Attention.mm (8 queries, 1,024 and 4,096 keys, parts of 3,068
queries in half precision) and GemmHeuristics.cpp (rows and inner sizes of a product with a vector). An inner size of
2**15: https://github.com/pytorch/pytorch/issues/195163.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import uneven
from device_suite.answers import attempt

cases = Cases("conditions")
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_ONCE = ("fresh",)


def _short(dtype: torch.dtype) -> str:
    return str(dtype)[6:]


# Heads: sizes that a kernel is made for, and beside them. Queries: 8 is the most of the kernels for few. Keys: 1,024.
_HEADS = (31, 32, 63, 64, 65, 72, 80, 96, 97, 127, 128, 129, 256, 257)
_LENGTHS = ((1, 1023), (8, 1024), (9, 33), (1, 1025), (8, 40), (33, 31), (9, 1024), (65, 65))
_MASKS = ("none", "bool", "float", "causal")


def _attention(q: Any, k: Any, v: Any, allowed: Any, kind: str) -> Any:
    options: dict[str, Any] = {"is_causal": kind == "causal"}
    if kind in ("bool", "float"):
        options["attn_mask"] = allowed if kind == "bool" else torch.where(allowed, 0.5, -2.0).to(q.dtype)
    dense = F.scaled_dot_product_attention(q, k, v, **options)
    other = [one.transpose(1, 2).contiguous().transpose(1, 2) for one in (q, k, v)]
    return dense, F.scaled_dot_product_attention(*other, **options)


def _attention_bases(d: Any, head: int, lengths: Any, dtype: torch.dtype) -> Any:
    queries, keys = lengths
    draw = lambda *shape: d.normal(*shape, dtype=dtype)  # noqa: E731
    q, k, v = draw(1, 2, queries, head), draw(1, 2, keys, head), draw(1, 2, keys, head)
    allowed = d.bools(1, 1, queries, keys)
    allowed[..., 0] = True  # of no row everything is masked
    return q, k, v, allowed


for _number, _head in enumerate(_HEADS):
    for _turn, _dtype in enumerate(_FLOATS):
        _pairs = [
            (_LENGTHS[(_number * 3 + _turn + step * 3) % len(_LENGTHS)], _MASKS[(_number + _turn + step) % 4])
            for step in range(3)
        ]
        cases.add(
            f"threshold-attention-{_head}-{_short(_dtype)}",
            lambda *bases, pairs=_pairs: [_attention(*each, kind) for each, (_, kind) in zip(bases, pairs)],
            make=lambda d, head=_head, pairs=_pairs, dtype=_dtype: tuple(
                _attention_bases(d, head, lengths, dtype) for lengths, _ in pairs
            ),
            terms=1024 if _dtype == torch.float32 else 16,
            states=_ONCE,
            since="2.1",
        )
# Keys and values that queries share, at the lengths of the second kernel; parts of 3,068 queries.
for _dtype in _FLOATS:
    cases.add(
        f"threshold-attention-grouped-{_short(_dtype)}",
        lambda *bases: [F.scaled_dot_product_attention(q, k, v, enable_gqa=True) for q, k, v in bases],
        make=lambda d, dtype=_dtype: tuple(
            (d.normal(1, 4, 3, 64, dtype=dtype), *(d.normal(1, 2, keys, 64, dtype=dtype) for _ in range(2)))
            for keys in (1023, 1024, 4095, 4096, 4097)
        ),
        terms=4096 if _dtype == torch.float32 else 16,
        states=_ONCE,
        since="2.5",
    )
for _dtype in (torch.float16, torch.bfloat16):
    cases.add(
        f"threshold-attention-parts-{_short(_dtype)}",
        lambda *bases: [F.scaled_dot_product_attention(q, k, v) for q, k, v in bases],
        make=lambda d, dtype=_dtype: tuple(
            (
                d.normal(1, 1, queries, 24, dtype=dtype),
                d.normal(1, 1, 7, 24, dtype=dtype),
                d.normal(1, 1, 7, 24, dtype=dtype),
            )
            for queries in (3067, 3068, 3069, 6137)
        ),
        terms=16,
        states=_ONCE,
        since="2.1",
    )

# Lines: blocks of 32 to 1,024 threads with a few numbers each, indices of 16 bits.
_LINES = tuple(n + step for n in (32, 128, 256, 512, 1024, 2048, 4096, 8192) for step in (-1, 0, 1))
_LONG = (16385, 65535, 65536, 65537)
_WHOLE = {
    "sorted": lambda x, dim: [*x.sort(dim), *x.sort(dim, descending=True), torch.argsort(x, dim=dim, stable=True)],
    "chosen": lambda x, dim: [*x.topk(7, dim), *x.topk(7, dim, largest=False), *x.kthvalue(5, dim), *x.median(dim)],
    "ends": lambda x, dim: [x.argmax(dim), x.argmin(dim), x.amax(dim), x.amin(dim), *x.max(dim), *x.min(dim)],
    "scanned": lambda x, dim: [x.cumsum(dim), *x.cummax(dim), *x.cummin(dim)],
    "reduced": lambda x, dim: [x.sum(dim), (x > 3).any(dim), (x > -1e9).all(dim), x.count_nonzero(dim)],
}
_TERMS = 64  # in half precision


def _weighed(x: torch.Tensor, dim: int) -> list[torch.Tensor]:
    return [x.softmax(dim), x.log_softmax(dim), (x / 64).cumprod(dim)]


def _weighed_in_halves(x: torch.Tensor, dim: int) -> list[torch.Tensor]:
    """Add running sums of exponentials, which are rounded at each step, as far as the bound of so many terms holds.

    After more, what a back end loses follows from where it cuts the line; the case of float32 has the long lines.
    """
    return [*_weighed(x, dim), *([x.logcumsumexp(dim)] if x.shape[dim] <= _TERMS else [])]


_FRACTIONS = {
    "normed": lambda x, dim: [x.norm(p, dim) for p in (0, 1, 2, 3, float("inf"))],
    "averaged": lambda x, dim: [x.mean(dim), x.var(dim), x.std(dim), x.nansum(dim), x.logsumexp(dim)],
    "weighed": lambda x, dim: [*_weighed(x, dim), x.logcumsumexp(dim)],
    "layered": lambda x, dim: [F.layer_norm(x, x.shape[-1:]), F.rms_norm(x, x.shape[-1:]), F.normalize(x, dim=dim)],
}


def _ended(x: torch.Tensor) -> torch.Tensor:
    """Return a line with its largest at the end, and one with its least there: an element that is lost shows."""
    for line, largest in zip(x, (True, False)):
        order = line.argsort(descending=not largest)
        line[[int(order[-1]), -1]] = line[[-1, int(order[-1])]]
    return x


def _both_ways(form: Any, x: torch.Tensor) -> Any:
    return [attempt(lambda: form(x, 1)), attempt(lambda: form(x.t().contiguous(), 0))]


def _lines(form: Any, *bases: Any) -> Any:
    return [_both_ways(form, x) for x in bases]


for _dtype in (torch.float32, torch.int32, torch.int64):
    for _name, _form in _WHOLE.items():
        cases.add(
            f"threshold-line-{_name}-{_short(_dtype)}",
            lambda *bases, form=_form: _lines(form, *bases),
            make=lambda d, dtype=_dtype: tuple(
                _ended(d.distinct(2, n) / 64 if dtype.is_floating_point else d.distinct(2, n)).to(dtype)
                for n in (*_LINES, *(_LONG if dtype == torch.float32 else ()))
            ),
            terms=4096,
            floor=1.0,
            states=_ONCE,
        )
for _dtype in _FLOATS:
    _weighs = _FRACTIONS["weighed"] if _dtype == torch.float32 else _weighed_in_halves
    for _name, _form in {**_FRACTIONS, "weighed": _weighs}.items():
        cases.add(
            f"threshold-line-{_name}-{_short(_dtype)}",
            lambda *bases, form=_form: _lines(form, *bases),
            make=lambda d, dtype=_dtype: tuple(d.normal(2, n, dtype=dtype) + 0.25 for n in (*_LINES, 16385)),
            terms=4096 if _dtype == torch.float32 else _TERMS,
            floor=1.0,
            states=_ONCE,
        )

# Vectors by themselves: a kernel for one line is another than that for several.
_ALONE: dict[str, Any] = {
    "sort": lambda x: [x.sort()[0], x.sort(descending=True)[0], *x.sort(stable=True)],
    "argsort": lambda x: x.argsort(stable=True, descending=True),
    "unique": lambda x: x.unique(return_inverse=True, return_counts=True),
    "ends": lambda x: [x.amax(0), x.amin(0), x.any(), x.all(), x.flip(0), x.nonzero()],
    "scanned": lambda x: [x.cumsum(0, dtype=torch.int64), x.count_nonzero()],
    "topk": lambda x: [x.topk(9)[0], x.topk(300, largest=False)[0], x.kthvalue(7)[0]],
}


def _alone(x: torch.Tensor) -> Any:
    return [attempt(lambda form=form: form(x)) for form in _ALONE.values()]


for _dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int64):
    cases.add(
        f"threshold-alone-{_short(_dtype)}",
        lambda *bases: [_alone(x) for x in bases],
        make=lambda d, dtype=_dtype: tuple(
            d.integers(*((0, 2) if dtype == torch.bool else (0, 120)), n).to(dtype)
            for n in (513, 1025, 2049, 4099, 8193, 32_769)
        ),
        states=_ONCE,
        may_be_missing=True,
    )

# A matrix and a vector: rows and inner sizes at which the number of threads changes; the matrix in both orders.
_VECTORS = (
    *(
        (511, 512),
        (512, 512),
        (513, 511),
        (64, 2047),
        (64, 2049),
        (1024, 256),
        (1025, 257),
        (33, 3584),
        (24, 8191),
        (24, 8193),
    ),
    *((9, 16384), (4096, 32), (4097, 33), (24577, 8), (65537, 5), (5, 32767), (5, 32768), (5, 32769), (3, 65537)),
)
for _dtype in _FLOATS:
    cases.add(
        f"threshold-vector-{_short(_dtype)}",
        lambda *bases: [[a @ x, F.linear(x[None], a, a[:, 0]), x @ a.t().contiguous()] for a, x in bases],
        make=lambda d, dtype=_dtype: tuple(
            (d.normal(rows, inner, dtype=dtype) / 8, d.normal(inner, dtype=dtype) / 8) for rows, inner in _VECTORS
        ),
        terms=4096 if _dtype == torch.float32 else 64,
        floor=1.0,
        states=_ONCE,
        limit_seconds=120.0,
    )
    cases.add(
        f"threshold-inner-{_short(_dtype)}",
        lambda *bases: [
            [
                a @ b,
                torch.bmm(a[None].expand(2, -1, -1), b[None].expand(2, -1, -1)),
                F.linear(a, b.t()),
                torch.addmm(b[:3], a, b),
            ]
            for a, b in bases
        ],
        make=lambda d, dtype=_dtype: tuple(
            (d.normal(3, inner, dtype=dtype) / 8, d.normal(inner, 5, dtype=dtype) / 8)
            for inner in (32767, 32768, 32769, 65537)
        ),
        terms=4096 if _dtype == torch.float32 else 64,
        floor=1.0,
        states=_ONCE,
    )

# Kernels of convolutions by (kernel, stride, channels), as their names have them, and one beside each.
_CUBES = (
    *(((1, 3, 3), (1, 1, 1), 16), ((1, 3, 3), (1, 2, 2), 16), ((3, 1, 1), (1, 1, 1), 3), ((3, 1, 1), (1, 1, 1), 16)),
    *(((1, 2, 2), (1, 2, 2), 36), ((1, 2, 2), (1, 2, 2), 1), ((2, 1, 1), (2, 1, 1), 1), ((1, 1, 2), (1, 1, 2), 1)),
    *(((3, 3, 3), (1, 1, 1), 17), ((1, 2, 1), (1, 2, 1), 1), ((3, 3, 3), (2, 2, 2), 3)),
)


def _cubes(*bases: Any) -> Any:
    answers = []
    for (x, w, b), (_, stride, _) in zip(bases, _CUBES):
        answers.append([F.conv3d(x, w, bias, stride=stride, padding=1) for bias in (b, None)])
        answers.append(
            F.conv3d(x[:, :1].expand(-1, w.shape[0], -1, -1, -1), w[:, :1], b, stride=stride, groups=w.shape[0])
        )
    return answers


def _rows(*bases: Any) -> Any:
    """Return convolutions of lines: each channel by itself, all together; channels last too; with a gradient."""
    answers = []
    for x, w, alone in bases:
        laid = x.transpose(1, 2).contiguous().transpose(1, 2)
        for each in (x, laid):
            answers += [F.conv1d(each, w, padding=1), F.conv1d(each, w, stride=2), F.conv1d(each, w, dilation=2)]
            answers += [F.conv1d(each, alone, groups=x.shape[1]), F.conv1d(each, alone, padding=2, groups=x.shape[1])]
        start, weight = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = F.conv1d(start, weight, padding=1)
        y.backward(uneven(y))
        answers += [start.grad, weight.grad]
    return answers


for _dtype in _FLOATS:
    cases.add(
        f"threshold-conv3d-{_short(_dtype)}",
        _cubes,
        make=lambda d, dtype=_dtype: tuple(
            (
                d.normal(2, channels, 4, 5, 6, dtype=dtype),
                d.normal(5, channels, *kernel, dtype=dtype) / 8,
                d.normal(5, dtype=dtype),
            )
            for kernel, _, channels in _CUBES
        ),
        terms=512 if _dtype == torch.float32 else 16,
        floor=1.0,
        states=_ONCE,
    )
    cases.add(
        f"threshold-conv1d-{_short(_dtype)}",
        _rows,
        make=lambda d, dtype=_dtype: tuple(
            (
                d.normal(2, channels, length, dtype=dtype),
                d.normal(out, channels, 3, dtype=dtype) / 8,
                d.normal(channels, 1, 3, dtype=dtype) / 8,
            )
            for channels, out, length in ((15, 16, 33), (17, 33, 31), (32, 65, 64))
        ),
        terms=512 if _dtype == torch.float32 else 16,
        floor=1.0,
        states=_ONCE,
    )
