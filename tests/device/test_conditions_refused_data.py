"""What a tensor does not let be done to its data, its memory, its gradient and its place on the tape."""

from __future__ import annotations

import copy
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.refusals import add_refused

cases = Cases("conditions")


def _given(x: torch.Tensor, name: str, value: Any) -> torch.Tensor:
    setattr(x, name, value)
    return x


def _changed(form: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor, torch.Tensor], Any]:
    """Return a call that derives through what has been changed since it was saved."""

    def act(x: torch.Tensor, i: torch.Tensor) -> Any:
        start = leaf(x)
        middle = start * 2
        y = (middle * middle).sum()
        form(middle)
        y.backward()
        return start.grad

    return act


_FORMS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "data-number": lambda x, i: _given(x, "data", 3),
    "data-list": lambda x, i: _given(x, "data", [1.0]),
    "data-none": lambda x, i: _given(x, "data", None),
    "data-sparse": lambda x, i: _given(x, "data", x.to_sparse()),
    "data-integers-of-leaf": lambda x, i: _given(leaf(x), "data", i),
    "gradient-shape": lambda x, i: _given(leaf(x), "grad", x[:2]),
    "gradient-kind": lambda x, i: _given(leaf(x), "grad", x.half()),
    "gradient-number": lambda x, i: _given(leaf(x), "grad", 1.0),
    "gradient-integers": lambda x, i: _given(leaf(x), "grad", i),
    "shape": lambda x, i: _given(x, "shape", (6, 4)),
    "dtype": lambda x, i: _given(x, "dtype", torch.float16),
    "device": lambda x, i: _given(x, "device", "cpu"),
    "no-gradient-inside": lambda x, i: _given(leaf(x) * 2, "requires_grad", False),
    "wanted-integers": lambda x, i: _given(i, "requires_grad", True),
    "kept-unwanted": lambda x, i: x.retain_grad(),
    "hook-unwanted": lambda x, i: x.register_hook(lambda g: g),
    "hook-after-inside": lambda x, i: (leaf(x) * 2).register_post_accumulate_grad_hook(lambda one: None),
    "backward-unwanted": lambda x, i: x.sum().backward(),
    "backward-many": lambda x, i: (leaf(x) * 2).backward(),
    "grad-unused": lambda x, i: torch.autograd.grad((leaf(x) * 2).sum(), leaf(x)),
    "grad-none": lambda x, i: torch.autograd.grad(x.sum(), x),
    "deepcopy-inside": lambda x, i: copy.deepcopy(leaf(x) * 2),
    "detached-view": lambda x, i: (leaf(x) * 2).view(-1).detach_(),
    "leaf-in-place": lambda x, i: leaf(x).add_(1),
    "leaf-view": lambda x, i: leaf(x)[1].zero_(),
    "leaf-written": lambda x, i: leaf(x).__setitem__(0, 1.0),
    "leaf-resized": lambda x, i: leaf(x).resize_(2, 3),
    "leaf-set": lambda x, i: leaf(x).set_(leaf(x.clone())),
    "leaf-out": lambda x, i: torch.add(x, 1, out=leaf(x.clone())),
    "part-in-place": lambda x, i: (leaf(x) * 2).unbind(0)[0].add_(1),
    "split-in-place": lambda x, i: (leaf(x) * 2).split(2)[1].mul_(2),
    "changed": _changed(lambda y: y.add_(1)),
    "changed-view": _changed(lambda y: y[1:].zero_()),
    "changed-turned": _changed(lambda y: y.t().mul_(2)),
    "changed-row": _changed(lambda y: y.__setitem__(0, 1.0)),
    "changed-copy": _changed(lambda y: y.copy_(y.flip(0))),
    "changed-detached": _changed(lambda y: y.detach().add_(1)),
    "changed-random": _changed(lambda y: y.normal_()),
    "inference-saved": lambda x, i: (leaf(x) * _inference(x)).sum().backward(),
    "inference-changed": lambda x, i: _inference(x).add_(1),
    "inference-version": lambda x, i: _inference(x)._version,
    "inference-wanted": lambda x, i: _inference(x).requires_grad_(),
    "set-offset": lambda x, i: x.set_(x.untyped_storage(), -1, (2, 3), (3, 1)),
    "set-stride": lambda x, i: x.set_(x.untyped_storage(), 0, (2, 3), (-3, 1)),
    "set-length": lambda x, i: x.set_(x.untyped_storage(), 0, (2, 3), (1,)),
    "set-kind": lambda x, i: x.set_(i),
    "storage-size": lambda x, i: x.untyped_storage().copy_(x[:1].clone().untyped_storage()),
    "storage-place": lambda x, i: x.cpu().untyped_storage()[10**6],
    "storage-text": lambda x, i: x.untyped_storage().fill_("a"),
    "view-kind": lambda x, i: x[:, :5].view(torch.float64),
    "view-turned": lambda x, i: x.t().view(-1),
    "view-kind-turned": lambda x, i: x.t().view(torch.int8),
    "view-kind-number": lambda x, i: x[0, 0].view(torch.int8),
    "resize-negative": lambda x, i: x.resize_(-1, 3),
    "resize-text": lambda x, i: x.resize_("a"),
    "state": lambda x, i: x.__setstate__((1, 2)),
    "parameter-integers": lambda x, i: torch.nn.Parameter(i),
    "hash-in": lambda x, i: "a" in x,
    "contains-list": lambda x, i: [1.0] in x,
    "item-text": lambda x, i: x["a"],
    "item-many": lambda x, i: x[0, 0, 0],
    "item-fraction": lambda x, i: x[1.5],
    "item-far": lambda x, i: x[4],
    "item-step": lambda x, i: x[::-1],
    "written-shape": lambda x, i: x.__setitem__(0, x[:, 0]),
    "written-text": lambda x, i: x.__setitem__(0, "a"),
    "deleted": lambda x, i: x.__delitem__(0),
    "index": lambda x, i: range(3)[x[0, 0]],
    "array-wanted": lambda x, i: leaf(x).cpu().__array__(),
    "dlpack-wanted": lambda x, i: leaf(x).cpu().__dlpack__(),
    "not": lambda x, i: ~x,
    "text": lambda x, i: f"{x:.2f}",
    "type": lambda x, i: x.type("no.such.Tensor"),
    "to": lambda x, i: x.to("no_such"),
}


def _inference(x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return x * 2


add_refused(cases, "data", lambda d: (d.normal(4, 6), d.integers(0, 9, 4, 6)), _FORMS, since="2.1")
