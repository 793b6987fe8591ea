"""Regressions in reductions: integers, indices, long rows, many calls in a row."""

from __future__ import annotations

from typing import Any

import torch

from engine import Cases

cases = Cases("regressions")
INTEGERS = (torch.int64, torch.uint8)


# https://github.com/pytorch/pytorch/issues/178497: sum/mean/nansum/trace/count_nonzero sporadically wrong in rapid
# succession
@cases.check("issue-178497", issue="178497", limit_seconds=120)
def _two_thousand_calls_agree(bench: Any) -> None:
    draw = bench.draw("issue-178497")
    host = draw.normal(16, 21, 8)
    host[host.abs() < 0.3] = 0
    square = draw.normal(16, 16)
    calls = {
        "sum": (lambda: torch.sum, lambda x, s: x),
        "mean": (lambda: torch.mean, lambda x, s: x),
        "nansum": (lambda: torch.nansum, lambda x, s: x),
        "count_nonzero": (lambda: torch.count_nonzero, lambda x, s: x),
        "trace": (lambda: torch.trace, lambda x, s: s),
    }
    want = {name: float(function()(given(host.double(), square.double()))) for name, (function, given) in calls.items()}
    with bench.device_run() as run:
        x, s = run.bring(host.clone()), run.bring(square.clone())
        for name, (function, given) in calls.items():
            answers = torch.stack([function()(given(x, s)) for _ in range(2000)]).cpu()
            same = bool((answers == answers[0]).all())
            assert same, f"{name}: {int((answers != answers[0]).sum())} of 2000 calls differ from the first"
            off = abs(float(answers[0]) - want[name])
            assert off <= 1e-4 * max(1.0, abs(want[name])), (
                f"{name}: {float(answers[0])}, the reference has {want[name]}"
            )


@cases.case(
    "issue-178497-reported",
    issue="178497",
    make=lambda d: d.normal(16, 2100, 256),
    full=True,
    memory_bytes=1 << 30,
    terms=8_601_600,
)
def _the_reported_size(x: Any) -> Any:
    return [x.sum() for _ in range(20)], torch.count_nonzero(x), x.mean()


def _extremes(x: Any) -> Any:
    answers = [x.max(), x.min(), x.amax(), x.amin(), x.argmax(), x.argmin(), torch.amax(x, 0), torch.amin(x, (0, 1))]
    answers += [x.max(dim=dim) for dim in (0, 1)] + [x.min(dim=dim) for dim in (0, -1)]
    answers += [
        torch.aminmax(x),
        x.sort(dim=-1)[0],
        x.topk(2)[0],
        torch.maximum(x, x.flip(0)),
        torch.minimum(x, x.flip(1)),
    ]
    return [tuple(answer) if isinstance(answer, tuple) else answer for answer in answers]


# https://github.com/pytorch/pytorch/issues/90273: max/min of int64 returns first value (also 87753)
cases.add(
    "issue-90273-int64",
    _extremes,
    issue="90273",
    make=lambda d: d.distinct(5, 7 + d.k, dtype=torch.int64) + 40,
)
cases.add(
    "issue-90273-arange",
    lambda x: (x.max(), x.min(), x.argmax(), torch.max(x), torch.min(x)),
    issue="90273",
    make=lambda d: torch.arange(5 + d.k),
)
cases.add(
    "issue-90273-wide",
    lambda x: (x.max(), x.min(), x.argmax(), x.sum(), torch.amax(x)),
    issue="90273",
    make=lambda d: d.permutation(9 + d.k) + (1 << 40),
)
cases.add(
    "issue-90273-bool",
    lambda x: (x.max(), x.min(), x.amax(0), x.amin(1), x.any(), x.all(), x.any(0), x.all(1), x.sum()),
    issue="90273",
    make=lambda d: d.bools(5, 7 + d.k),
)


def _places_of_extremes(x: Any) -> Any:
    answers = [x.argmax(), x.argmin()]
    for dim in range(x.dim()):
        answers += [x.argmax(dim), x.argmin(dim), torch.argmax(x, dim, keepdim=True), x.max(dim)[1], x.min(dim)[1]]
    return answers, x.t().argmax(1), x[:, 1].argmax(), x[3:].argmax(0)


# https://github.com/pytorch/pytorch/issues/92311: argmax returns -9223372036854775808 (also 98191, 98919, 109067)
for _dtype in (torch.float32, torch.int64):
    cases.add(
        f"issue-92311-{str(_dtype)[6:]}",
        _places_of_extremes,
        issue="92311",
        make=lambda d, dtype=_dtype: d.distinct(10, 2 + d.k, dtype=dtype),
    )


@cases.case(
    "issue-92311-accuracy", issue="92311", make=lambda d: (d.distinct(64, 5 + d.k) / 9, d.integers(0, 5, 64)), terms=64
)
def _accuracy_is_counted(run: Any, logits: Any, labels: Any) -> Any:
    predicted = logits.argmax(-1)
    hits = predicted == labels
    true_positive = ((predicted == 1) & (labels == 1)).sum()
    return (
        predicted,
        hits.sum(),
        hits.to(run.cast(torch.float32)).mean(),
        true_positive,
        predicted.eq(labels).sum().item(),
    )


def _sums(x: Any) -> Any:
    answers = [torch.cumsum(x, dim) for dim in (0, 1, -1)]
    answers += [
        x.cumsum(-1),
        torch.cumprod(x.clamp(-1, 2) if x.dtype != torch.bool else x, -1),
        x.sum(),
        x.sum(0),
        x.t().cumsum(0),
    ]
    return answers


# https://github.com/pytorch/pytorch/issues/90635: cumsum wrong for int64/int16/int8 (position ids!)
for _dtype in (torch.int64, torch.bool):
    cases.add(
        f"issue-90635-{str(_dtype)[6:]}", _sums, issue="90635", make=lambda d, dtype=_dtype: d.of(dtype, 4, 6 + d.k)
    )


@cases.case("issue-90635-positions", issue="90635", make=lambda d: d.uniform(0, 1, 3, 9 + d.k) > 0.3)
def _position_ids_of_a_mask(mask: Any) -> Any:
    counted = mask.long()
    return (
        torch.cumsum(counted, dim=-1) * counted + 1,
        torch.ones_like(counted).cumsum(-1),
        mask.cumsum(-1),
        counted.int().cumsum(1),
    )


@cases.case(
    "reduction-wide-integers", make=lambda d: (d.integers(1 << 24, 1 << 26, 5, 300 + d.k), d.bools(2, 300 + d.k))
)
def _integers_past_what_floats_hold(x: Any, mask: Any) -> Any:
    return (
        x.sum(),
        x.cumsum(1),
        (x + 1) - x,
        x.max(1)[0],
        mask.sum(1),
        x * 1000 + 1,
        x.float().sum() > 0,
        torch.sort(x, 1)[0],
    )


@cases.case("reduction-long-rows", make=lambda d: (d.normal(3, 1030 + d.k), d.normal(70001 + d.k)), terms=70001)
def _rows_longer_than_a_thread_group(x: Any, long: Any) -> Any:
    return (
        x.softmax(-1),
        x.log_softmax(-1),
        x.logsumexp(-1),
        x.sum(-1),
        x.var(-1),
        x.std(0),
        x.norm(dim=-1),
        x.cumsum(-1),
        x.prod(0),
        long.sum(),
        long.mean(),
        long.max(),
        long.argmin(),
        long.sort()[0][-5:],
        torch.var_mean(x, 1),
    )


# CUDA scans a long row in the order in which its blocks come (torch.use_deterministic_algorithms lists it).
@cases.case("reduction-long-scan", make=lambda d: d.normal(70001 + d.k), terms=70001, deterministic=False)
def _a_row_is_scanned_by_many_thread_groups(long: Any) -> Any:
    return long.abs().cumsum(0)[-1]


@cases.case("reduction-nan", make=lambda d: (d.normal(4, 5 + d.k), d.bools(4, 5 + d.k)))
def _nan_is_passed_on(x: Any, mask: Any) -> Any:
    given = x.masked_fill(mask, float("nan"))
    return (
        given.sum(0),
        given.max(),
        given.min(1),
        given.mean(),
        torch.nansum(given),
        torch.nanmean(given),
        given.isnan().sum(),
        given.amax(0),
        torch.maximum(given, x),
        torch.fmax(given, x),
        torch.nan_to_num(given),
        torch.clamp(given, -1, 1),
        torch.relu(given),
        given == given,
    )
