"""Rule 2: infinite, NaN and zero parts of complex numbers have one answer at each place of a tensor, whatever it is.

C leaves open what many of them are, so nothing is compared with the CPU: a value alone, and in groups of 3, 8, 16 and
17, has the same answer and the same gradient. What C defines by another function agrees with that.
Vectors and single elements: https://github.com/pytorch/pytorch/issues/41246; tan: 41244 there.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import derived
from device_suite.answers import says_missing
from device_suite.limits import ONCE
from device_suite.states import Refused

cases = Cases("conditions")
Form = Callable[[torch.Tensor], torch.Tensor]
_PARTS = (0.0, -0.0, 0.75, -1.5, math.inf, -math.inf, math.nan)
# Each value with a part that is no number of the usual: what is finite is compared by other rules.
_VALUES = torch.tensor([complex(a, b) for a in _PARTS for b in _PARTS if not (math.isfinite(a) and math.isfinite(b))])
_GROUPS = (3, 8, 16, 17)
_FEW = (8, 17)  # for gradients
_NAMES = (
    *("abs", "angle", "sgn", "neg", "conj_physical", "square", "reciprocal", "sqrt", "rsqrt", "exp", "expm1", "exp2"),
    *("log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh"),
    *("acosh", "atanh", "sigmoid", "isnan", "isinf", "isfinite", "isreal", "nan_to_num"),
)
_FORMS: dict[str, Form] = {
    **{name: lambda x, name=name: getattr(torch, name)(x) for name in _NAMES},
    "silu": torch.nn.functional.silu,
    "logsigmoid": lambda x: x.sigmoid().log(),
    **{f"pow-{power}": lambda x, power=power: x**power for power in (2, 3, 0.5, -1, -2, 1.5)},
    "pow-itself": lambda x: x**x,
    "pow-of-number": lambda x: torch.pow(-2.0, x),
    "mul": lambda x: x * x.flip(0).flip(0),
    "mul-number": lambda x: x * complex(0.5, 2),
    "div": lambda x: x / torch.full_like(x, complex(0.5, 2)),
    "divided": lambda x: torch.full_like(x, complex(0.5, 2)) / x,
    "add": lambda x: x + x,
    "polar": lambda x: torch.polar(x.real.abs(), x.imag),
    "eq": lambda x: x == x,
}
# By the C standard, annex G: f(z) = -i g(iz).
_TURNED = {"sin": "sinh", "tan": "tanh", "asin": "asinh", "atan": "atanh"}


def _in_groups(form: Callable[..., Any], x: torch.Tensor, groups: Any) -> list[torch.Tensor]:
    """Return the answers to each value: alone, then at each place of groups of it, then beside all the others."""
    together = [torch.cat([form(one) for one in x[:, None]])]
    for size in groups:
        together += list(torch.stack([form(one) for one in x[:, None].expand(-1, size).contiguous()]).t())
    spread = torch.cat([x, x[:3]])
    return [*together, form(x), form(spread)[: len(x)], form(spread.flip(0)).flip(0)[: len(x)]]


def _gradient(form: Form, x: torch.Tensor) -> torch.Tensor:
    start = x.detach().requires_grad_()
    y = form(start)
    if not y.requires_grad:
        return torch.zeros_like(x)
    y.backward(torch.full_like(y, 2))
    return start.grad if start.grad is not None else torch.zeros_like(x)


def _differs(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Say where two answers differ by more than their rounding; NaN is NaN, and an infinity is that one alone."""
    if one.dtype == torch.bool:
        return one != other
    parts = [torch.view_as_real(x) if x.is_complex() else x[:, None] for x in (one, other)]
    return ~torch.isclose(*parts, rtol=2e-3, atol=1e-5, equal_nan=True).all(-1)


def _uneven(form: Callable[..., Any], run: Any) -> torch.Tensor:
    """Return, for each place, which values have another answer there than alone."""
    with run:
        (x,) = run.bring(run.copy((_VALUES,)))
        answers = [one.cpu() for one in _in_groups(form, x, _FEW if isinstance(form, partial) else _GROUPS)]
    return torch.stack([_differs(answers[0], one) for one in answers[1:]])


def _turned_apart(names: tuple[str, str], run: Any) -> torch.Tensor:
    """Return which values have an f(z) that is not -i g(iz); C leaves the sign of an infinity beside NaN open."""
    with run:
        (x,) = run.bring(run.copy((_VALUES,)))
        plain = getattr(torch, names[0])(x).cpu()
        turned = getattr(torch, names[1])(torch.complex(-x.imag, x.real)).cpu()
    return _differs(*map(_unsigned, (plain, torch.complex(turned.imag, -turned.real))))


def _unsigned(x: torch.Tensor) -> torch.Tensor:
    parts = torch.view_as_real(x)
    is_open = parts.isnan().any(-1, keepdim=True) & parts.isinf()
    return torch.view_as_complex(torch.where(is_open, parts.abs(), parts))


def _ask(what: Any, found: Callable[[Any, Any], torch.Tensor], bench: Any) -> None:
    """Demand that no value has two answers, but where this torch's CPU has two.

    Raises:
        Refused: the device has no such operator.
    """
    try:
        uneven = found(what, bench.device_run())
    except Exception as raised:
        if says_missing(raised) or bench.device.type == "cpu":
            raise Refused(f"not here: {raised}") from raised
        raise
    if bool(uneven.any()) and (found is _turned_apart or bench.device.type == "cpu"):
        uneven &= ~found(what, bench.same())
    wrong = [str(complex(one)) for one in _VALUES[uneven.view(-1, len(_VALUES)).any(0)]]
    assert not wrong, f"several answers to {', '.join(wrong[:5])} ({len(wrong)} values)"


for _name, _form in _FORMS.items():
    cases.add(
        f"alike-{_name}",
        lambda bench, form=_form: _ask(form, _uneven, bench),
        check=True,
        may_be_missing=True,
    )
    if not _name.startswith("is") and _name not in ("eq", "nan_to_num", "silu"):  # without a complex gradient
        cases.add(
            f"alike-{_name}-gradient",
            lambda bench, form=_form: _ask(partial(_gradient, form), _uneven, bench),
            check=True,
            may_be_missing=True,
        )
for _name, _other in _TURNED.items():
    cases.add(
        f"alike-{_name}-{_other}",
        lambda bench, names=(_name, _other): _ask(names, _turned_apart, bench),
        check=True,
        may_be_missing=True,
    )

# Real bases, negative ones too, of complex exponents, and complex bases of real ones: each with its gradients.
_POWERS: dict[str, Callable[..., Any]] = {
    "pow": torch.pow,
    "method": lambda x, y: x.pow(y),
    "operator": lambda x, y: x**y,
    "float_power": torch.float_power,
    "other-way": lambda x, y: torch.pow(y, x),
    "of-number": lambda x, y: torch.pow(-1.5, y) * x,
    "number": lambda x, y: torch.pow(y, -1.5) * x,
    "log": lambda x, y: y * torch.log(torch.complex(x, torch.zeros_like(x))),
}
for _name, _form in _POWERS.items():
    cases.add(
        f"derived-powers-{_name}",
        lambda x, y, form=_form: [derived(form, x, y), derived(form, x[:1], y), derived(form, x, y[:1])],
        make=lambda d: (
            torch.tensor([-2.0, -1.0, -0.5, 0.5, 1.0, 3.0, -1.25]),
            torch.complex(d.uniform(0.25, 1.5, 7), d.uniform(-1, 1, 7)),
        ),
        terms=64,
        floor=1.0,
        states=ONCE,
        may_be_missing=True,
    )
