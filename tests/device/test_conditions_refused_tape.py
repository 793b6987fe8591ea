"""What backward() cannot answer is refused: a freed graph, what was overwritten since, a gradient that does not fit.

A result of sigmoid that is written to before backward() must raise: https://github.com/pytorch/pytorch/issues/9391
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[[torch.Tensor], torch.Tensor]


def _operands(d: Any) -> Any:
    return (d.uniform(0.2, 0.8, 4, 6),)


# What keeps its result, and what keeps what it was given.
_KEEPS_RESULT: dict[str, Form] = {
    **{
        name: lambda x, name=name: getattr(torch, name)(x)
        for name in ("exp sigmoid tanh sqrt rsqrt reciprocal expm1 exp2 tan").split()
    },
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(0),
    "elu": lambda x: F.elu(x, inplace=True),
    "relu": lambda x: F.relu(x),
    "cumprod": lambda x: x[0].cumprod(0),
    "norm": lambda x: x.norm(dim=1),
    "logsumexp": lambda x: x.logsumexp(1),
    "prod": lambda x: x.prod(1),
    "inverse": lambda x: torch.linalg.inv(x[:, :4] + 2 * torch.eye(4, device=x.device)),
    "cholesky": lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(4, device=x.device)),
}
_KEEPS_OPERAND: dict[str, Form] = {
    **{
        name: lambda x, name=name: getattr(torch, name)(x)
        for name in ("log sin cos abs square asin atan log1p erf lgamma sinc digamma cosh").split()
    },
    "mul": lambda x: x * x,
    "div": lambda x: 1.5 / x,
    "pow": lambda x: x**3,
    "mm": lambda x: x @ x.mT,
    "linear": lambda x: F.linear(x, x),
    "bmm": lambda x: torch.bmm(x[None], x.mT[None]),
    "hypot": lambda x: torch.hypot(x, x.flip(0)),
    "gelu": lambda x: F.gelu(x),
    "silu": lambda x: F.silu(x),
    "softplus": lambda x: F.softplus(x),
    "conv": lambda x: F.conv1d(x[None], x[None, :, :3]),
    "layer_norm": lambda x: F.layer_norm(x, (6,)),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "max_pool": lambda x: F.max_pool2d(x[None], 2),
    "mse": lambda x: F.mse_loss(x, x.flip(0), reduction="none"),
    "bce": lambda x: F.binary_cross_entropy(x, x.detach().flip(0), reduction="none"),
    "logits": lambda x: F.binary_cross_entropy_with_logits(x, x.detach().flip(0)),
    "atan2": lambda x: torch.atan2(x, x.flip(1)),
    "prod-row": lambda x: x.prod(0),
    "dist": lambda x: torch.cdist(x, x[:2]),
}
_CHANGES: dict[str, Callable[[torch.Tensor], Any]] = {
    "added": lambda y: y.add_(1),
    "row": lambda y: y[:1].zero_(),
    "cut": lambda y: y.detach().mul_(2),
}


def _through(form: Form, change: Callable[[torch.Tensor], Any], result: bool, x: torch.Tensor) -> Any:
    """Change what was saved, an operand or the result, and derive; the last step keeps nothing."""
    start = leaf(x)
    middle = start * 1
    y = form(middle)
    z = (y * 2).sum()
    change(y if result else middle)
    z.backward()
    return start.grad


def _again(form: Form, x: torch.Tensor) -> Any:
    start = leaf(x)
    y = form(start * 1).sum()
    y.backward()
    y.backward()
    return start.grad


for _result, _forms in ((True, _KEEPS_RESULT), (False, _KEEPS_OPERAND)):
    _kind = "result" if _result else "operand"
    add_refused(
        cases,
        f"tape-{_kind}",
        _operands,
        {
            f"{name}-{way}": lambda x, form=form, change=change, result=_result: _through(form, change, result, x)
            for name, form in _forms.items()
            for way, change in _CHANGES.items()
        },
    )
    add_refused(
        cases,
        f"tape-{_kind}-again",
        _operands,
        {name: lambda x, form=form: _again(form, x) for name, form in _forms.items()},
    )


def _given(gradient: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
    def act(x: torch.Tensor) -> Any:
        start = leaf(x)
        (start * 2).backward(gradient(x))
        return start.grad

    return act


def _freed(x: torch.Tensor) -> Any:
    start = leaf(x)
    y = start.exp()
    y.sum().backward()
    return torch.autograd.grad(y.sin().sum(), start)


def _unlinked(x: torch.Tensor) -> Any:
    """A gradient that was computed without its own graph has none."""
    start = leaf(x)
    (first,) = torch.autograd.grad(start.pow(3).sum(), start)
    return torch.autograd.grad(first.sum(), start)


def _unwanted(x: torch.Tensor) -> Any:
    with torch.no_grad():
        y = leaf(x) * 2
    return y.sum().backward()


add_refused(
    cases,
    "tape-gradients",
    _operands,
    {
        "many": lambda x: leaf(x).exp().backward(),
        "many-one-row": lambda x: leaf(x).sum(0, keepdim=True).backward(),
        "complex": lambda x: torch.complex(leaf(x), x).sum().backward(),
        "complex-many": lambda x: torch.complex(leaf(x), x).backward(),
        "shape": _given(lambda x: x[:2]),
        "shape-turned": _given(lambda x: x.mT),
        "shape-flat": _given(lambda x: x.flatten()),
        "shape-none": _given(lambda x: x.sum()),
        "kind-complex": _given(lambda x: torch.complex(x, x)),
        "kind-number": _given(lambda x: 1.0),
        "kind-list": _given(lambda x: [x]),
        "grad-shape": lambda x: torch.autograd.grad(leaf(x) * 2, leaf(x), x[:2]),
        "grad-count": lambda x: torch.autograd.grad((y := leaf(x)) * 2, y, (x, x)),
        "unwanted": lambda x: x.sum().backward(),
        "unwanted-no-grad": _unwanted,
        "unwanted-detached": lambda x: leaf(x).detach().sum().backward(),
        "unwanted-count": lambda x: (leaf(x) > 0.5).sum().backward(),
        "unwanted-whole": lambda x: leaf(x).long().sum().backward(),
        "freed": _freed,
        "unlinked": _unlinked,
        "leaf-added": lambda x: leaf(x).add_(1),
        "leaf-view": lambda x: leaf(x)[:1].zero_(),
        "leaf-filled": lambda x: leaf(x).fill_(2.0),
        "leaf-copied": lambda x: leaf(x).copy_(x * 2),
        "leaf-masked": lambda x: leaf(x).masked_fill_(x > 0.5, 0.0),
        "leaf-random": lambda x: leaf(x).uniform_(),
        "leaf-out": lambda x: torch.exp(x, out=leaf(x.clone())),
        "out": lambda x: torch.mm(leaf(x), x.mT, out=x.new_empty(4, 4)),
        "numpy": lambda x: leaf(x).numpy(),
        "wanted-whole": lambda x: x.long().requires_grad_(),
        "wanted-bools": lambda x: (x > 0.5).requires_grad_(),
    },
)
