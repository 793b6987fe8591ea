"""Random numbers: parameters as tensors, views that are filled, out=, permutations, choices, dropout."""

from __future__ import annotations

import math
from typing import Any, Callable

import torch
import torch.nn.functional as F

from engine import Cases
from engine.layouts import VIEWS
from engine.random_numbers import add_random_check, check_independence, check_moments, check_no_repeats
from engine.runs import seed_numbers

cases = Cases("scenarios")


# Parameters as tensors: each element's own, in every layout. Means are far apart, so that each draw tells its place.
def _by_place(name: str, form: str) -> Any:
    shape, cut = VIEWS[name]

    def act(device: torch.device) -> Any:
        seed_numbers(device, 31)
        base = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape).to(device) * 100
        places = cut(base)
        chances = cut((base / 100 % 2).contiguous())
        if form == "mean":
            return torch.normal(places, 1.0), places
        if form == "deviation":
            return torch.normal(0.0, cut(base * 0 + 1e-3)) + places, places
        if form == "both":
            return torch.normal(places, cut(base * 0 + 1.0)), places
        return torch.bernoulli(chances) * 100, chances * 100

    return act


def _judge_places(drawn: Any) -> None:
    got, places = drawn
    assert got.shape == places.shape, f"shape {tuple(got.shape)}, expected {tuple(places.shape)}"
    assert bool(((got - places).abs() < 30).all()), "an element was drawn with another one's parameter"


for _name in ("gapped", "transposed_columns", "expanded_rows", "empty"):
    for _form in ("both", "chance"):
        add_random_check(cases, f"random-tensors-{_form}-{_name}", _by_place(_name, _form), _judge_places)


def _filled(name: str, fill: Any) -> Any:
    shape, cut = VIEWS[name]

    def act(device: torch.device) -> Any:
        seed_numbers(device, 37)
        big = tuple(side * (4 if len(shape) < 5 else 2) if side > 1 else side for side in shape)
        base = torch.full(big, -7.0, device=device)
        view = cut(base)
        returned = fill(view)
        touched = torch.zeros(big, dtype=torch.bool)
        cut(touched).fill_(True)
        return base, touched, returned + 0

    return act


def _judge_fills(drawn: Any) -> None:
    base, touched, returned = drawn
    assert bool((base[~touched] == -7).all()), "wrote outside of the view"
    written = base[touched]
    assert not bool((written == -7).any()), "a part of the view was not written"
    assert len(returned.unique()) > 1 or returned.numel() < 2, "one value everywhere"
    if returned.numel() > 500:
        check_no_repeats("the view", returned)
        check_independence("the view", returned)


for _name in ("columns", "gapped", "transposed", "six"):
    for _fill, _act in {
        "normal": lambda v: v.normal_(3, 0.5),
        "uniform": lambda v: v.uniform_(1, 2),
        "exponential": lambda v: v.exponential_(),
        "bernoulli": lambda v: v.bernoulli_(0.5),
        "chances": lambda v: v.bernoulli_(torch.full(v.shape, 0.5, device=v.device)),
        "random": lambda v: v.random_(1, 1000),
        "dropout": lambda v: F.dropout(v.fill_(2.0), 0.5, inplace=True),
    }.items():
        add_random_check(cases, f"random-fill-{_fill}-{_name}", _filled(_name, _act), _judge_fills)


# Permutations and choices without replacement.
for _count in (0, 1, 33, 5000, 70001):
    for _dtype in (torch.int64, torch.int32):

        def _permuted(device: torch.device, count: int = _count, dtype: torch.dtype = _dtype) -> Any:
            seed_numbers(device, 41)
            return [torch.randperm(count, device=device, dtype=dtype) for _ in range(2)]

        def _judge_permutations(drawn: Any, count: int = _count, dtype: torch.dtype = _dtype) -> None:
            for one in drawn:
                assert one.dtype == dtype, f"dtype {one.dtype}"
                assert torch.equal(one.long().sort().values, torch.arange(count)), "not a permutation"
            if count > 30:
                assert not torch.equal(drawn[0], drawn[1]), "two permutations are equal"
                moved = (drawn[0] == torch.arange(count)).sum()
                assert int(moved) < 12, f"{int(moved)} places were not moved"
            if count > 1000:
                check_independence("permutation", drawn[0])

        add_random_check(cases, f"random-permutation-{_count}-{str(_dtype)[6:]}", _permuted, _judge_permutations)


def _chosen(rows: int, count: int, replacement: bool, transposed: bool) -> Any:
    def act(device: torch.device) -> Any:
        seed_numbers(device, 43)
        weights = torch.arange(1, 41, dtype=torch.float32)
        weights[::3] = 0
        table = weights.repeat(rows, 1).to(device) if rows else weights.to(device)
        if transposed:
            table = table.t().contiguous().t()
        return [torch.multinomial(table, count, replacement=replacement) for _ in range(2)]

    return act


def _judge_choices(replacement: bool) -> Any:
    def judge(drawn: Any) -> None:
        for one in drawn:
            assert one.dtype == torch.int64, f"dtype {one.dtype}"
            assert not bool((one % 3 == 0).any()), "chose what has no weight"
            for row in one.reshape(-1, one.shape[-1]):
                assert replacement or len(row.unique()) == len(row), "chose one two times"
        assert not torch.equal(drawn[0], drawn[1]), "two draws are equal"
        if replacement and drawn[0].numel() > 2000:
            weights = torch.arange(1, 41, dtype=torch.float64)
            weights[::3] = 0
            share = weights / weights.sum()
            seen = torch.bincount(torch.cat(drawn).flatten(), minlength=40).double()
            total = seen.sum()
            off = ((seen - total * share).abs() / (total * share * (1 - share)).sqrt().clamp(min=1e-9))[share > 0]
            assert float(off.max()) < 6, f"a choice is {float(off.max()):.1f} standard errors off"
        if drawn[0].dim() == 2 and drawn[0].shape[1] > 4:
            assert len(torch.unique(drawn[0], dim=0)) == len(drawn[0]), "two rows are equal"

    return judge


for _rows in (0, 3, 60):
    for _count, _replacement in ((1, False), (25, False), (9, True), (2500, True)):
        for _transposed in (False, True) if _rows == 3 else (False,):
            add_random_check(
                cases,
                f"random-choice-{_rows}-{_count}-{'with' if _replacement else 'without'}{'-t' if _transposed else ''}",
                _chosen(_rows, _count, _replacement, _transposed),
                _judge_choices(_replacement),
            )


@cases.check("neural-attention-dropout", since="2.1", may_be_missing=True)
def _attention_drops_its_weights_one_by_one(bench: Any) -> None:
    with bench.device_run() as run:
        torch.manual_seed(3)
        q = torch.zeros(4, 8, 64, 16, device=run.device)
        v = torch.ones(4, 8, 64, 16, device=run.device)
        y = F.scaled_dot_product_attention(q, q, v, dropout_p=0.25).cpu().clone()
        still = F.scaled_dot_product_attention(q, q, v, dropout_p=0.0).cpu().clone()
    assert torch.allclose(still, torch.ones_like(still), atol=1e-5), "without dropout the weights do not sum to one"
    assert abs(float(y.mean()) - 1) < 0.02, f"mean {float(y.mean()):.3f}: what is kept is not scaled"
    deviation = float(y[..., 0].std())
    assert 0.04 < deviation < 0.12, f"deviation {deviation:.3f}: weights are not dropped one by one"


# Dropout: what is kept is scaled, what is dropped has no gradient; whole channels where channels are dropped.
def _dropped(name: str, p: float, shape: Any, dtype: torch.dtype) -> Any:
    def act(device: torch.device) -> Any:
        seed_numbers(device, 47)
        x = torch.ones(shape, device=device, dtype=dtype).requires_grad_()
        y = getattr(F, name)(x, p, training=True)
        y.backward(torch.full_like(y, 3.0))
        still = getattr(F, name)(x.detach(), p, training=False)
        return y.detach(), x.grad, still

    return act


def _judge_dropout(name: str, p: float) -> Any:
    def judge(drawn: Any) -> None:
        y, grad, still = drawn
        assert bool((still == 1).all()), "dropout changes values in evaluation"
        assert torch.equal(grad.double() == 0, y.double() == 0), "backward uses another mask than forward"
        kept = y[y != 0].double()
        near = max(0.02, 4 * torch.finfo(y.dtype).eps) / (1 - p)
        assert kept.numel() == 0 or float((kept - 1 / (1 - p)).abs().max()) < near, "kept values are not scaled"
        if name == "dropout":
            share = float((y != 0).double().mean())
            assert abs(share - (1 - p)) <= 6 * math.sqrt(p * (1 - p) / y.numel()) + 1e-9, f"{share:.3f} kept"
        else:
            whole = (y != 0).flatten(2)
            assert bool((whole.all(-1) | ~whole.any(-1)).all()), "a channel is dropped in part"
            share = float(whole[..., 0].double().mean())
            assert abs(share - (1 - p)) < 0.25, f"{share:.3f} of the channels kept"

    return judge


for _dtype in (torch.float32, torch.float16, torch.bfloat16):
    for _p in (0.0, 0.1, 0.9) if _dtype == torch.float32 else (0.1,):
        for _number, _shape in enumerate(((3000,), (3, 4, 5, 6, 11)) if _dtype == torch.float32 else ((3000,),)):
            add_random_check(
                cases,
                f"random-dropout-{_p}-{_number}-{str(_dtype)[6:]}",
                _dropped("dropout", _p, _shape, _dtype),
                _judge_dropout("dropout", _p),
            )
    for _name, _shape in (("dropout1d", (20, 30, 5)), ("dropout2d", (20, 30, 3, 5)), ("dropout3d", (20, 30, 2, 3, 2))):
        if _dtype != torch.float32 and _name != "dropout2d":
            continue
        add_random_check(
            cases, f"random-{_name}-{str(_dtype)[6:]}", _dropped(_name, 0.4, _shape, _dtype), _judge_dropout(_name, 0.4)
        )


def _alpha(device: torch.device) -> Any:
    seed_numbers(device, 53)
    return [F.alpha_dropout(torch.randn(90, 91, device=device), 0.2, training=True)]


add_random_check(
    cases, "random-alpha-dropout", _alpha, lambda drawn: check_moments("alpha dropout", drawn[0], 0.0, 1.0)
)


_COUNT = 4096


def _full_of(value: float, device: torch.device, *shape: int) -> torch.Tensor:
    return torch.full(shape or (_COUNT,), value, device=device)


# name: (what is drawn into `out`, the mean, the deviation)
_OUTS: dict[str, tuple[Callable[[Any, Any], Any], float, float]] = {
    "bernoulli": (lambda d, out: torch.bernoulli(_full_of(0.25, d), out=out), 0.25, 0.433013),
    "normal_means": (lambda d, out: torch.normal(_full_of(3.0, d), 2.0, out=out), 3.0, 2.0),
    "normal_deviations": (lambda d, out: torch.normal(-1.0, _full_of(0.5, d), out=out), -1.0, 0.5),
    "normal_both": (lambda d, out: torch.normal(_full_of(3.0, d), _full_of(0.5, d), out=out), 3.0, 0.5),
}
_PLAIN: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "gamma": (lambda d: torch._standard_gamma(_full_of(4.0, d)), 4.0, 2.0),
    "dirichlet": (lambda d: torch._sample_dirichlet(_full_of(1.0, d, _COUNT // 4, 4))[:, -1], 0.25, 0.193649),
    "binomial": (lambda d: torch.binomial(_full_of(20.0, d), _full_of(0.5, d)), 10.0, 2.236068),
    "dropout": (lambda d: torch.native_dropout(_full_of(1.0, d), 0.5, True)[0], 1.0, 1.0),
    "whole_range": (lambda d: torch.zeros(_COUNT, dtype=torch.uint8, device=d).random_().float(), 127.5, 73.9003),
}


def _into(form: Any, strided: bool) -> Any:
    def act(device: torch.device) -> Any:
        seed_numbers(device, 61)
        base = torch.full((2 * _COUNT + 1,), -77.0, device=device)
        out = base[1::2] if strided else base[:_COUNT]
        form(device, out)
        return base, out

    return act


def _judge_out(name: str, mean: float, deviation: float, strided: bool) -> Any:
    def judge(drawn: Any) -> None:
        base, out = drawn
        check_moments(name, out, mean, deviation)
        left = base[::2] if strided else base[_COUNT:]
        assert bool((left == -77).all()), "wrote outside of out="
        if name.startswith("normal"):
            check_no_repeats(name, out)
            check_independence(name, out)

    return judge


for _name, (_form, _mean, _deviation) in _OUTS.items():
    for _strided in (False, True):
        add_random_check(
            cases,
            f"random-out-{_name}-{'strided' if _strided else 'dense'}",
            _into(_form, _strided),
            _judge_out(_name, _mean, _deviation, _strided),
        )


def _plain(form: Any) -> Any:
    def act(device: torch.device) -> Any:
        seed_numbers(device, 67)
        return [form(device)]

    return act


for _name, (_call, _mean, _deviation) in _PLAIN.items():
    add_random_check(
        cases,
        f"random-kernel-{_name}",
        _plain(_call),
        lambda drawn, name=_name, mean=_mean, deviation=_deviation: check_moments(name, drawn[0], mean, deviation),
    )


def _chosen_into(device: torch.device) -> Any:
    seed_numbers(device, 71)
    weights = torch.arange(1.0, 9.0, device=device)
    chosen = torch.multinomial(weights, 8, out=torch.empty(8, dtype=torch.int64, device=device))
    generator = torch.Generator(device=device).manual_seed(3)
    orders = torch.randperm(97, generator=generator, out=torch.empty(97, dtype=torch.int64, device=device))
    return chosen, orders


def _judge_chosen_into(drawn: Any) -> None:
    chosen, orders = drawn
    assert torch.equal(chosen.sort().values, torch.arange(8)), "a choice without replacement repeats itself"
    assert torch.equal(orders.sort().values, torch.arange(97)), "not a permutation"
    assert not torch.equal(orders, torch.arange(97)), "nothing is moved"


add_random_check(cases, "random-out-choices", _chosen_into, _judge_chosen_into)
