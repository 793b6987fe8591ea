"""Rule 3: rows as wide as models have them, between powers of two: 3,200, 8,960, 11,008 and 50,257 numbers.

A kernel that reads a row in blocks, or keeps it in one thread group's memory, is wrong at some widths alone: a mean
of 3,200, https://github.com/tenstorrent/tt-mlir/issues/869; rows of 8,960,
https://github.com/tenstorrent/tt-metal/issues/44500
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table, each_shown, shown

cases = Cases("conditions")
Form = Callable[..., Any]

_WIDTHS = (1536, 3200, 3584, 4608, 6656, 8960, 11_008, 18_944, 50_257)
_ROWS, _WIDEST = 3, max(_WIDTHS)
_WIDEST_OF_HALVES = 9000  # of a wider row the shares are subnormal in float16
_CHOSEN = ("ordered", "ends", "scanned", "picked", "written", "entropy", "embedded")  # ties, in half precision

# x: (3, n), positive, and y, the same in another order; w: n numbers.
_SUMS: dict[str, Form] = {
    "sum": lambda x, y, w: [x.sum(-1), x.mean(-1), x.norm(dim=-1), x.logsumexp(-1), x.sum(), x.mean()],
    "spread": lambda x, y, w: [*torch.var_mean(x, -1), x.std(-1)],
    "ends": lambda x, y, w: [x.amax(-1), *x.max(-1), x.amin(-1), x.argmin(-1), x.argmax(), *x.aminmax(dim=-1)],
    "columns": lambda x, y, w: [x.T.contiguous().sum(0), x.T.contiguous().mean(0), x.T.contiguous().amax(0)],
    "products": lambda x, y, w: [F.linear(x, y), x @ w, (x * y).sum(-1), torch.einsum("in,jn->ij", x, y)],
    "counted": lambda x, y, w: [(x > y).sum(-1), (x > 1).any(-1), x.count_nonzero(-1), (x > 0).all(-1)],
    "compared": lambda x, y, w: [F.mse_loss(x, y), F.l1_loss(x, y), F.cosine_similarity(x, y)],
    "distances": lambda x, y, w: [torch.cdist(x, y), F.pairwise_distance(x, y)],
}
_ROWS_OF: dict[str, Form] = {
    "layer_norm": lambda x, y, w: F.layer_norm(x, w.shape, w, w),
    "rms_norm": lambda x, y, w: (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt() * x * w,
    "group_norm": lambda x, y, w: F.group_norm(x[:, None], 1),
    "normalized": lambda x, y, w: F.normalize(x, dim=-1),
    "softmax": lambda x, y, w: [x.softmax(-1) * len(w), x.log_softmax(-1)],
    "scanned": lambda x, y, w: [x.cummax(-1)[0], x.cummin(-1)[1], (x > y).cumsum(-1)],
    "ordered": lambda x, y, w: [*x.sort(-1), *x.topk(50, -1), *x.kthvalue(77, -1), *x.median(-1)],
    "gated": lambda x, y, w: [F.silu(x) * y, F.glu(x[:, : len(w) // 2 * 2]), F.gelu(x, approximate="tanh")],
    "turned": lambda x, y, w: [torch.cat([-x[:, len(w) // 2 :], x[:, : len(w) // 2]], -1), x.roll(3, -1), x.flip(-1)],
    "moved": lambda x, y, w: [x.T.contiguous(), x.repeat_interleave(2, -1), torch.cat([x, y], -1), x[:, ::2] + 1],
    "picked": lambda x, y, w: [x.gather(-1, y.argsort(-1)), x[:, w > 0], x.masked_fill(x > y, 0), x.where(x > y, y)],
    "written": lambda x, y, w: [x.scatter(-1, y.argsort(-1), y), x.index_copy(0, y[:, 0].argsort(), y)],
}
_DERIVED: dict[str, Form] = {
    "layer_norm": lambda x, y, w: derived(lambda a, b: F.layer_norm(a, b.shape, b, b), x, w),
    "softmax": lambda x, y, w: derived(lambda a: (a * 3).softmax(-1) * len(w), x),
    "linear": lambda x, y, w: derived(lambda a, b: F.linear(a, b), x, y),
    "mean": lambda x, y, w: derived(lambda a: a.mean(-1), x),
    "entropy": lambda x, y, w: derived(lambda a: F.cross_entropy(a, y.argmax(-1)), x),
    "embedded": lambda x, y, w: derived(lambda a: F.embedding(y[:, :9].argsort(-1)[:, :2].clamp(max=2), a), x),
}


# What a mask of words leaves: rows past 2**16, and their gradients.
_FAR = 70_001
_SHARES: dict[str, Form] = {
    "softmax": lambda x: derived(lambda a: a.softmax(-1), x),
    "log_softmax": lambda x: derived(lambda a: a.log_softmax(-1) / 8, x),
    "entropy": lambda x: derived(lambda a: F.cross_entropy(a, torch.arange(2, device=x.device) * 69_000) * 512, x),
    "columns": lambda x: derived(lambda a: a.mT.contiguous().log_softmax(0) / 8, x),
}


def _rows(form: Form, n: int, x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> Any:
    return each_shown(form(x[: _ROWS * n].view(_ROWS, n), y[: _ROWS * n].view(_ROWS, n), w[:n]))


def _operands(dtype: torch.dtype) -> Any:
    """Return numbers near one, so that no mean is near zero: each once in float32."""
    count = _ROWS * _WIDEST
    return lambda d: (
        *((d.permutation(count) / count + 0.5).to(dtype) for _ in range(2)),
        (d.permutation(_WIDEST) / _WIDEST - 0.3).to(dtype),
    )


# Sums are rounded once, at the end.
for _dtype in (torch.float32, *HALVES):
    _half = _dtype in HALVES
    for _name, _forms, _terms in (
        ("summed", _SUMS, 1 if _half else _WIDEST),
        ("each", _ROWS_OF, 4 if _half else 64),
        ("derived", _DERIVED, 4 if _half else 64),
    ):
        add_table(
            cases,
            f"widths-{_name}-{str(_dtype)[6:]}",
            {
                f"{form}-{n}": lambda x, y, w, act=_forms[form], n=n: _rows(act, n, x, y, w)
                for form in _forms
                for n in _WIDTHS
                if not (_half and (form in _CHOSEN or (form == "softmax" and n > _WIDEST_OF_HALVES)))
            },
            _operands(_dtype),
            terms=_terms,
            deterministic=False,
        )


_MILLION = 1 << 20
add_table(
    cases,
    "widths-million",
    {
        **{
            f"{name}-{more}": lambda x, act=act, more=more: each_shown(
                act(x.repeat(-(-(_MILLION + more) // len(x)))[: _MILLION + more])
            )
            for name, act in {
                "softmax": lambda y: derived(lambda a: a.softmax(0) * _MILLION, y),
                "log_softmax": lambda y: derived(lambda a: a.log_softmax(0), y),
                "found": lambda y: [(y > 0.75).nonzero(), y[y > 0.9], torch.where(y > 0.95)[0]],
                "column": lambda y: derived(lambda a: a[:, None].log_softmax(1) + a[:, None].softmax(0), y),
                "halves": lambda y: [
                    y.half()[:, None].log_softmax(1),
                    y.half()[:, None].sum(1),
                    y.half()[None].amax(1),
                ],
            }.items()
            for more in (-1, 7)
        }
    },
    lambda d: (d.permutation(9973) / 9973,),
    terms=_MILLION,
)
for _dtype in (torch.float32, *HALVES):
    add_table(
        cases,
        f"widths-shares-{str(_dtype)[6:]}",
        {name: lambda x, form=form: each_shown(form(x)) for name, form in _SHARES.items()},
        lambda d, dtype=_dtype: ((d.permutation(2 * _FAR) / _FAR).view(2, _FAR).to(dtype),),
        terms=64 if _dtype == torch.float32 else 4,
    )

# Heads and sides exchanged, as attention does it: x of a batch, rows, and 3 x 4 heads of 16.
_HEADS: dict[str, Form] = {
    "heads": lambda x: x.view(2, -1, 3, 4, 16).permute(2, 0, 3, 1, 4).contiguous(),
    "back": lambda x: x.view(2, 4, -1, 48).transpose(1, 2).reshape(2, -1, 192),
    "sides": lambda x: x.view(2, 3, -1, 64).permute(0, 1, 3, 2).contiguous(),
    "turned": lambda x: x.view(1, 2, -1, 192).permute(0, 1, 3, 2) + 0,
    "last": lambda x: x.view(2, -1, 12, 16).permute(0, 3, 1, 2).contiguous(),
    "first": lambda x: x.view(2, -1, 192).permute(2, 1, 0).contiguous(),
    "matrix": lambda x: x.view(-1, 64).t().contiguous(),
}
for _dtype in (torch.float32, *HALVES, torch.int64, torch.uint8):
    add_table(
        cases,
        f"widths-exchanged-{str(_dtype)[6:]}",
        {
            f"{name}-{rows}": lambda x, form=form, rows=rows: shown(form(x[: 2 * rows * 192]), 97)
            for name, form in _HEADS.items()
            for rows in (77, 197, 500)
        },
        lambda d, dtype=_dtype: (d.integers(0, 251, 2 * 500 * 192).to(dtype),),
    )


# The activations of a whole batch, 2**24 numbers: the CPU's own answers, of which every so many rows are compared.
_BATCH: dict[str, Form] = {
    "layer_norm": lambda x, w: F.layer_norm(x, w.shape, w, w),
    "softmax": lambda x, w: x.softmax(-1) * 512,
    "mean": lambda x, w: [x.mean(-1), x.mean(0), x.amax(-1)],
    "gated": lambda x, w: F.silu(x) * w,
}


def _whole_batch(bench: Any) -> None:
    d = bench.draw("widths-batch")
    x, w = d.uniform(0.5, 1.5, 3584, 4608, dtype=torch.bfloat16), d.uniform(0.5, 1.5, 4608, dtype=torch.bfloat16)
    answers = []
    for run in (bench.device_run(), bench.same()):
        with run:
            here = run.bring((x, w))
            answers.append({name: _lines(act(*here)) for name, act in _BATCH.items()})
    for name, wanted in answers[1].items():
        found = answers[0][name]
        assert len(found) == len(wanted), f"{name}: {len(found)} answers, the CPU gives {len(wanted)}"
        for got, want in zip(found, wanted):
            assert got.shape == want.shape, f"{name}: shape {tuple(got.shape)}, the CPU has {tuple(want.shape)}"
            wrong = int((~torch.isclose(got, want, rtol=2.0**-6, atol=2.0**-6)).sum())
            assert wrong == 0, f"{name}: {wrong} of {want.numel()} numbers differ"


def _lines(answer: Any) -> list[torch.Tensor]:
    return [one[::73].float().cpu() for one in (answer if isinstance(answer, list) else [answer])]


cases.add("condition-limit-widths-batch", _whole_batch, check=True, may_be_missing=True)
