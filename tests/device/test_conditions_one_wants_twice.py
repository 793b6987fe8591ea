"""Rule 6: gradients of gradients where one operand alone wants one, or two of them; hooks on the way that change them.

A second derivative of the loss with a sum was wrong, https://github.com/pytorch/pytorch/issues/59477; prelu's backward
ended the process where its input wants none, https://github.com/pytorch/pytorch/issues/10723
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf, uneven
from device_suite.limits import add_table

cases = Cases("conditions")
Form = Callable[..., Any]

# x: (2, 4, 3); w and b: four numbers above 0; how many of the three are read.
_FORMS: dict[str, tuple[int, Form]] = {
    **{
        name: (1, lambda x, w, b, name=name: getattr(F, name)(x))
        for name in "gelu silu mish softplus elu selu celu leaky_relu hardswish logsigmoid hardtanh relu6".split()
    },
    **{
        name: (1, lambda x, w, b, name=name: getattr(torch, name)(x))
        for name in "sigmoid tanh exp sin atan square relu".split()
    },
    "gelu-tanh": (1, lambda x, w, b: F.gelu(x, approximate="tanh")),
    "rrelu": (1, lambda x, w, b: F.rrelu(x, 0.25, 0.75)),
    "rrelu-drawn": (1, lambda x, w, b: F.rrelu(x, 0.25, 0.25, training=True)),
    "prelu": (2, lambda x, w, b: F.prelu(x, w)),
    "prelu-one": (2, lambda x, w, b: F.prelu(x, w[:1])),
    "softmax": (1, lambda x, w, b: x.softmax(1)),
    "log_softmax": (1, lambda x, w, b: x.log_softmax(-1)),
    "logsumexp": (1, lambda x, w, b: x.logsumexp(1)),
    "batch_norm": (3, lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True)),
    "batch_norm-asked": (3, lambda x, w, b: F.batch_norm(x, w.detach(), b.detach(), w, b)),
    "batch_norm-bare": (1, lambda x, w, b: F.batch_norm(x, None, None, training=True)),
    "instance_norm": (3, lambda x, w, b: F.instance_norm(x, weight=w, bias=b)),
    "group_norm": (3, lambda x, w, b: F.group_norm(x, 2, w, b)),
    "layer_norm": (3, lambda x, w, b: F.layer_norm(x.mT, (4,), w, b)),
    "rms_norm": (2, lambda x, w, b: F.rms_norm(x.mT, (4,), w)),
    "linear": (3, lambda x, w, b: F.linear(x, w[:3].expand(4, 3), b)),
    "conv1d": (3, lambda x, w, b: F.conv1d(x, w.view(1, 4, 1).expand(4, 4, 2), b)),
    "conv_transpose1d": (3, lambda x, w, b: F.conv_transpose1d(x, w.view(4, 1, 1).expand(4, 4, 2), b, 2)),
    "matmul": (2, lambda x, w, b: w @ x),
    "mul": (2, lambda x, w, b: x * w[:, None]),
    "div": (2, lambda x, w, b: x / w[:, None]),
    "pow": (2, lambda x, w, b: x.square() ** w[:, None]),
    "addcdiv": (3, lambda x, w, b: torch.addcdiv(x, w[:, None], b[:, None], value=0.5)),
    "lerp": (3, lambda x, w, b: torch.lerp(x, w[:, None], b[:, None])),
    "mse": (2, lambda x, w, b: F.mse_loss(x, w[:, None].expand(2, 4, 3))),
    "huber": (2, lambda x, w, b: F.huber_loss(x, w[:, None].expand(2, 4, 3), delta=0.3, reduction="none")),
    "logits": (1, lambda x, w, b: F.binary_cross_entropy_with_logits(x, b[:, None].expand(2, 4, 3), w[:, None])),
    "logits-target": (2, lambda x, w, b: F.binary_cross_entropy_with_logits(x, w[:, None].expand(2, 4, 3))),
    "bce": (1, lambda x, w, b: F.binary_cross_entropy(x.sigmoid(), b[:, None].expand(2, 4, 3), reduction="sum")),
    "kl": (2, lambda x, w, b: F.kl_div(x, w[:, None].expand(2, 4, 3), log_target=True, reduction="batchmean")),
    "shares": (2, lambda x, w, b: F.cross_entropy(x, w[:, None].expand(2, 4, 3))),
    "cosine": (2, lambda x, w, b: F.cosine_similarity(x, w[:, None], 1)),
    "attention": (1, lambda x, w, b: (x @ x.mT).softmax(-1) @ x),
    "normalize": (1, lambda x, w, b: F.normalize(x, dim=1)),
    "cumsum": (1, lambda x, w, b: x.cumsum(1) * x),
    "glu": (1, lambda x, w, b: F.glu(x, 1)),
    "pooled": (1, lambda x, w, b: F.avg_pool1d(x, 2).square()),
    "where": (2, lambda x, w, b: torch.where(x.detach() > 0, x.exp(), w[:, None])),
}


def _twice(form: Form, inner: int, outer: int, *operands: torch.Tensor) -> Any:
    """Derive by one operand, and that by another, or by the gradient (3): no other wants one."""
    given = [one.clone().requires_grad_(place in (inner, outer)) for place, one in enumerate(operands)]
    y = form(*given)
    weight = uneven(y) + 0.5
    weight.requires_grad_(outer == 3)
    (first,) = torch.autograd.grad(y, given[inner], weight, create_graph=True)
    wanted = weight if outer == 3 else given[outer]
    second = None  # a fused gradient may say that nothing is to be derived, where another derives zeros
    if first.requires_grad:
        (second,) = torch.autograd.grad(first, wanted, uneven(first) + 0.25, allow_unused=True)
    return [first.detach(), torch.zeros_like(wanted) if second is None else second]


_HOOKED: dict[str, Form] = {
    "gradient": lambda y: [y.register_hook(lambda g: g * 2), y][1],
    "none": lambda y: [y.register_hook(lambda g: None), y][1],
    "many": lambda y: [y.register_hook(lambda g: g + 1), y.register_hook(lambda g: g * 3), y][2],
    "kept": lambda y: [y.retain_grad(), y.register_hook(lambda g: g.clamp(-0.25, 0.25)), y][2],
    "before": lambda y: [y.grad_fn.register_prehook(lambda g: (g[0] * 0.5,)), y][1],
    "after": lambda y: [
        y.grad_fn.register_hook(lambda g, out: tuple(None if one is None else one * 2 for one in g)),
        y,
    ][1],
    "turned": lambda y: [y.register_hook(lambda g: g.flip(0).transpose(0, 1).contiguous().transpose(0, 1)), y][1],
}


def _hooked(form: Form, hook: Form, *operands: torch.Tensor) -> Any:
    given = [leaf(one) for one in operands]
    seen: list[torch.Tensor] = []
    given[0].register_post_accumulate_grad_hook(lambda one: seen.append(one.grad.clone()))
    y = hook(form(given[0] * 1, *given[1:]))
    z = (y * 2).square()
    z.backward(uneven(z))
    return [seen, [one.grad for one in given], y.grad if y.retains_grad else None]


_TABLE: dict[str, Form] = {
    f"{name}-{inner}-{outer}": lambda *operands, form=form, pair=(inner, outer): _twice(form, *pair, *operands)
    for name, (count, form) in _FORMS.items()
    for inner, outer in itertools.product(range(count), (*range(count), 3))
}
_TABLE |= {
    f"{name}-hook-{kind}": lambda *operands, form=_FORMS[name][1], hook=hook: _hooked(form, hook, *operands)
    for name in ("prelu", "linear", "log_softmax")
    for kind, hook in _HOOKED.items()
}
add_table(
    cases,
    "one-wants-twice",
    _TABLE,
    lambda d: (d.distinct(2, 4, 3) / 8 + 0.046875, d.distinct(4) / 8 + 0.625, d.distinct(4) / 16 + 0.53125),
    factor=64.0,
    deterministic=False,
)
