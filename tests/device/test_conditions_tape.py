"""Autograd's public ways: what keeps a gradient, hooks, gradients of gradients, several passes, what is cut off."""

from __future__ import annotations

import warnings
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from device_suite import Cases
from device_suite.acts import leaf, uneven

cases = Cases("conditions")


def _net(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return what has products, a bend and a norm: each has a second derivative."""
    return F.softmax(torch.tanh(x @ w) * x.sum(1, keepdim=True), 1).square() + (x @ w).sigmoid()


def _started(x: torch.Tensor, w: torch.Tensor) -> Any:
    return leaf(x.clone()), leaf(w.clone())


def _kept(x: torch.Tensor, w: torch.Tensor) -> Any:
    """A leaf and what is computed of it are told to keep their gradients, some of them twice."""
    x, w = _started(x, w)
    x.retain_grad()
    middle = x @ w
    middle.retain_grad()
    middle.retain_grad()
    top = middle.sin()
    top.retain_grad()
    (top * uneven(top)).sum().backward()
    return [x.grad, w.grad, middle.grad, top.grad, str((x.retains_grad, middle.retains_grad, top.is_leaf))]


def _kept_in_place(x: torch.Tensor, w: torch.Tensor) -> Any:
    x, w = _started(x, w)
    middle = x @ w
    middle.retain_grad()
    middle.mul_(2).add_(1)
    middle.retain_grad()
    (middle * uneven(middle)).sum().backward()
    return [x.grad, middle.grad]


def _hooked(x: torch.Tensor, w: torch.Tensor) -> Any:
    """Hooks change a gradient, see it, are taken away, and are called in the order in which they came."""
    x, w = _started(x, w)
    seen: list[torch.Tensor] = []
    x.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: seen.append(g.clone()))
    taken = x.register_hook(lambda g: g * 100)
    taken.remove()
    middle = x @ w
    middle.register_hook(lambda g: g.flip(0))
    middle.register_hook(lambda g: seen.append(g.clone()))
    (middle * uneven(middle)).sum().backward()
    return [x.grad, w.grad, *seen]


def _hooked_after(x: torch.Tensor, w: torch.Tensor) -> Any:
    x, w = _started(x, w)
    seen: list[torch.Tensor] = []

    def stepped(one: torch.Tensor) -> None:
        seen.append(one.grad.clone())  # type: ignore[union-attr]
        with torch.no_grad():
            one.sub_(one.grad, alpha=0.5)  # type: ignore[arg-type]
        one.grad = None

    for one in (x, w):
        one.register_post_accumulate_grad_hook(stepped)
    for _ in range(3):
        y = x @ w
        (y * uneven(y)).sum().backward()
    return [x.detach(), w.detach(), *seen, str((x.grad, w.grad))]


def _hooked_nodes(x: torch.Tensor, w: torch.Tensor) -> Any:
    x, w = _started(x, w)
    seen: list[Any] = []
    y = (x @ w).exp()
    y.grad_fn.register_hook(lambda given, got: seen.append([*given, *got]))  # type: ignore[union-attr]
    y.grad_fn.register_prehook(lambda got: tuple(one * 3 for one in got))  # type: ignore[union-attr]
    (y * uneven(y)).sum().backward()
    return [x.grad, seen]


def _accumulated(x: torch.Tensor, w: torch.Tensor) -> Any:
    """Three passes add up; None and zeros between them start anew; the gradient's own tensor stays or not."""
    found = []
    for between in ("nothing", "none", "zero", "own"):
        x1, w1 = _started(x, w)
        if between == "own":
            x1.grad = torch.ones_like(x1).mT.contiguous().mT
        for turn in range(3):
            y = _net(x1, w1) * (turn + 1)
            (y * uneven(y)).sum().backward()
            if between == "none" and turn == 1:
                x1.grad = w1.grad = None
            elif between == "zero" and turn == 1:
                x1.grad.zero_()
                w1.grad = torch.zeros_like(w1)
        found += [x1.grad, w1.grad]
    return found


def _twice(x: torch.Tensor, w: torch.Tensor) -> Any:
    x, w = _started(x, w)
    y = _net(x, w)
    y.backward(uneven(y), retain_graph=True)
    first = x.grad.clone()
    y.backward(uneven(y) * 2)
    return [first, x.grad, w.grad]


def _parts(x: torch.Tensor, w: torch.Tensor) -> Any:
    """Gradients of some inputs alone, of several outputs, and of what is not used."""
    x, w = _started(x, w)
    other = leaf(x.detach() * 2)
    y, z = _net(x, w), (w * 2).cos()
    grads: list[Any] = [torch.autograd.grad(y, x, uneven(y), retain_graph=True)]
    grads.append(torch.autograd.grad((y, z), (x, w), (uneven(y), uneven(z)), retain_graph=True))
    unused = torch.autograd.grad(y, (x, other), uneven(y), retain_graph=True, allow_unused=True)
    grads.append([unused[0], str(unused[1])])
    y.backward(uneven(y), inputs=[w], retain_graph=True)
    grads.append([w.grad, str(x.grad)])
    torch.autograd.backward((y, z), (uneven(y), uneven(z)))
    return [grads, x.grad, w.grad]


def _filled(x: torch.Tensor, w: torch.Tensor) -> Any:
    x, w = _started(x, w)
    y = _net(x, w)
    return torch.autograd.grad(y, (x, leaf(w)), uneven(y), materialize_grads=True)


def _many_at_once(x: torch.Tensor, w: torch.Tensor) -> Any:
    x, w = _started(x, w)
    y = x @ w
    units = torch.eye(3, y.numel(), device=x.device, dtype=x.dtype).view(3, *y.shape)
    return torch.autograd.grad(y, (x, w), units, is_grads_batched=True)


def _deeper(x: torch.Tensor, w: torch.Tensor) -> Any:
    """A gradient of a gradient, and of that; a penalty on its norm."""
    x, w = _started(x, w)
    (first,) = torch.autograd.grad(_net(x, w).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first * uneven(first)).sum(), x, create_graph=True)
    (third,) = torch.autograd.grad((second * uneven(second)).sum(), w, retain_graph=True)
    (first.norm() - 1).square().backward()
    return [first.detach(), second.detach(), third, x.grad, w.grad]


def _checkpointed(x: torch.Tensor, w: torch.Tensor) -> Any:
    found = []
    for again in (False, True):
        x1, w1 = _started(x, w)
        y = checkpoint(_net, checkpoint(torch.matmul, x1, w1, use_reentrant=again) @ w1.mT, w1, use_reentrant=again)
        (y * uneven(y)).sum().backward()
        found += [y.detach(), x1.grad, w1.grad]
    return found


def _detached(x: torch.Tensor, w: torch.Tensor) -> Any:
    """What is cut from the tape, in place too, and what is written where there is no tape."""
    x, w = _started(x, w)
    y = x @ w
    cut = y.sin().detach_()
    part = (x * 1)[1:3]
    still = part.detach() * part
    with torch.no_grad():
        w.add_(1)
        x[0] = 2.0
        flat = x * w.sum()
    with torch.enable_grad(), torch.set_grad_enabled(False):
        off = x * 2
    z = (cut * x.sum()) + (x.requires_grad_() * 3).sum()
    z.sum().backward(retain_graph=True)
    still.sum().backward()
    return [
        x.grad,
        str(w.grad),
        str((cut.requires_grad, flat.requires_grad, off.requires_grad)),
        x.detach(),
        w.detach(),
    ]


def _frozen(x: torch.Tensor, w: torch.Tensor) -> Any:
    """Counts, comparisons and places of what wants a gradient: they have none."""
    x, w = _started(x, w)
    y = x * 2
    none = [
        *(y.count_nonzero(), y.count_nonzero(1), y.argmax(), y.argmax(0), y.argsort(1), y > 1, y == x, y.isnan()),
        *(y.nonzero(), y.sign().bool(), y.any(), y.all(0), y.long(), y.topk(2)[1], y.max(0)[1], torch.isclose(y, x)),
        *(torch.bucketize(y, w.detach()[0].sort()[0]), torch.unique(y.round()), torch.histc(y.detach(), 4, -2, 2)),
    ]
    rest = [y.round(), y.floor(), y.sign(), y.trunc(), y.ceil(), y.median(), y.max()]
    sum(one.sum() for one in rest).backward()
    return [none, rest, x.grad, str([one.requires_grad for one in none])]


def _shared(x: torch.Tensor, w: torch.Tensor) -> Any:
    """One tensor many times, views of one leaf, and in-place work on views."""
    x, w = _started(x, w)
    y = x * 1
    y[1].mul_(2)
    y[:, 0] = w[0, : y.shape[0]]
    y[:, ::2].add_(1)
    rows = y.unbind(0)
    z = rows[0] * rows[1] + y.mT.contiguous()[:, 2] + (x + x)[3] * x[3]
    (z * uneven(z)).sum().backward()
    return [z.detach(), x.grad, w.grad]


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> Any:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor, (x > 0)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor, unused: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * ctx.factor + x * 0.5, None


def _own_function(x: torch.Tensor, w: torch.Tensor) -> Any:
    x, w = _started(x, w)
    y, flags = _Doubled.apply(x @ w, 3.0)
    (y * uneven(y)).sum().backward()
    return [y.detach(), flags, x.grad, w.grad, str(flags.requires_grad)]


def _saved(x: torch.Tensor, w: torch.Tensor) -> Any:
    """What is saved is packed in another form, on the host and in half the bytes."""
    found = []
    for pack, unpack in (
        (lambda one: one.clone(), lambda one: one * 1),
        (lambda one: (one.device, one.cpu()), lambda kept: kept[1].to(kept[0])),
    ):
        x1, w1 = _started(x, w)
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = _net(x1, w1)
        (y * uneven(y)).sum().backward()
        found += [x1.grad, w1.grad]
    x1, w1 = _started(x, w)
    with torch.autograd.graph.save_on_cpu():
        y = _net(x1, w1)
    y.backward(uneven(y))
    return [found, x1.grad, w1.grad]


_WAYS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "kept": _kept,
    "kept-in-place": _kept_in_place,
    "hooked": _hooked,
    "hooked-after": _hooked_after,
    "hooked-nodes": _hooked_nodes,
    "accumulated": _accumulated,
    "twice": _twice,
    "parts": _parts,
    "filled": _filled,
    "at-once": _many_at_once,
    "deeper": _deeper,
    "checkpointed": _checkpointed,
    "detached": _detached,
    "frozen": _frozen,
    "shared": _shared,
    "own": _own_function,
    "saved": _saved,
}


def _quiet(form: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of hooks and of gradients that are read where there are none
        return form(x, w)


for _name, _form in _WAYS.items():
    cases.add(
        f"condition-tape-{_name}",
        lambda x, w, form=_form: {
            "dense": _quiet(form, x, w),
            "turned": _quiet(form, x.mT.contiguous().mT, w.mT.contiguous().mT),
        },
        make=lambda d: (d.normal(4, 6), d.normal(6, 6) / 2),
        terms=256,
        factor=16.0,
        floor=1.0,
        states=("fresh", "again"),
        may_be_missing=True,
    )
