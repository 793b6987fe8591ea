"""Rule 6: gradients that come twice into one leaf: of one call, of two, sparse and dense, beside what lies there.

A second sparse gradient of an embedding with the same places was added to its first number alone; a sparse gradient of
padding alone was refused, https://github.com/pytorch/pytorch/issues/5472; the gradient of padding was not zero past 768
places, https://github.com/pytorch/pytorch/issues/28716
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf, uneven
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")
Form = Callable[..., Any]

# Places below five, from seven of them.
_PLACES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "some": lambda i: i,
    "same": lambda i: i[:1].expand(4),
    "rows": lambda i: i[:6].view(2, 3),
    "none": lambda i: i[:0],
    "padding": lambda i: i[:3] * 0 + 2,
    "many": lambda i: i.repeat(120),
    "number": lambda i: i[:1],
    "short": lambda i: i.int(),
}
_LOOKED: dict[str, dict[str, Any]] = {
    "dense": {},
    "sparse": {"sparse": True},
    "padded": {"padding_idx": 2},
    "padded-sparse": {"padding_idx": 2, "sparse": True},
    "padded-end": {"padding_idx": -3},
    "counted": {"scale_grad_by_freq": True},
}
_BAGS: dict[str, dict[str, Any]] = {
    "sum": {"mode": "sum"},
    "mean": {"mode": "mean"},
    "max": {"mode": "max"},
    "sum-sparse": {"mode": "sum", "sparse": True},
    "mean-sparse": {"mode": "mean", "sparse": True},
    "padded": {"mode": "sum", "padding_idx": 2},
    "padded-mean": {"mode": "mean", "padding_idx": 2},
}


def _looked(w: torch.Tensor, places: torch.Tensor, kind: str, options: dict[str, Any]) -> torch.Tensor:
    if kind == "bag":
        return F.embedding_bag(places.reshape(1, -1), w, **options)
    return F.embedding(places, w, **options)


def _given(x: torch.Tensor) -> Any:
    """Return a gradient, and whether it is sparse; summed where a place came twice."""
    assert x.grad is not None
    return [str(x.grad.layout), x.grad.to_dense()]


def _twice(w: torch.Tensor, first: torch.Tensor, second: torch.Tensor, row: Any) -> Any:
    """Return a table's gradient after one call, and after another; and that of both at once."""
    kind, one, other = row
    table, both = leaf(w.clone()), leaf(w.clone())
    y, z = _looked(table, first, kind, one), _looked(table, second, kind, other)
    y.backward(uneven(y) + 2)
    after = _given(table)
    z.backward(uneven(z) - 2)
    a, b = _looked(both, first, kind, one), _looked(both, second, kind, other)
    ((a * (uneven(a) + 2)).sum() + (b * (uneven(b) - 2)).sum()).backward()
    return [after, _given(table), _given(both)]


def _pairs(rows: dict[str, dict[str, Any]], kind: str) -> dict[str, Form]:
    found: dict[str, Form] = {}
    for count, ((one, options), (other, more)) in enumerate(itertools.product(rows.items(), repeat=2)):
        for number, (here, there) in enumerate(itertools.product(_PLACES, repeat=2)):
            if (number + count) % 13 and not (one == other and here == there):
                continue
            if kind == "bag" and "none" in (here, there):
                continue
            found[f"{kind}-{one}-{other}-{here}-{there}"] = (
                lambda w, i, row=(kind, options, more), here=here, there=there: _twice(
                    w, _PLACES[here](i), _PLACES[there](i), row
                )
            )
    return found


# x: (2, 4, 6, 6); w: (4, 4, 3, 3).
_LAYERS: dict[str, Form] = {
    "conv": lambda x, w: F.conv2d(x, w, w[0, 0, 0, :1].expand(4)),
    "conv-last": lambda x, w: F.conv2d(x.contiguous(memory_format=torch.channels_last), w, padding=1),
    "turned": lambda x, w: F.conv_transpose2d(x, w, stride=2),
    "linear": lambda x, w: F.linear(x[..., :3], w[0, 0], w[0, 1, 0]),
    "matmul": lambda x, w: x[..., :3, :3] @ w[:2],
    "norm": lambda x, w: F.batch_norm(x, None, None, w[0, :, 0, 0], w[1, :, 0, 0], training=True),
    "layer_norm": lambda x, w: F.layer_norm(x[..., :3], (3,), w[0, 0, 0], w[0, 0, 1]),
    "group_norm": lambda x, w: F.group_norm(x, 2, w[:, 0, 0, 0]),
    "prelu": lambda x, w: F.prelu(x, w[:, 0, 0, 0]),
    "max_pool": lambda x, w: F.max_pool2d(x, 3, 1, 1) * w[:, 0, :1, :1].mean(),
    "resized": lambda x, w: F.interpolate(x, (4, 9), mode="bilinear") * w[:, 0, :1, :1].mean(),
    "attention": lambda x, w: F.scaled_dot_product_attention(x[..., :3], w[:2], w[2:]),
    "gathered": lambda x, w: x[:, [0, 2, 2]] * w[0, 0, 0, 0] + x[:, [1, 1, 3]],
    "scattered": lambda x, w: x.index_add(1, torch.tensor([0, 3, 0, 1], device=x.device), x) * w[0, 0, 0, 0],
}
_BEFORE: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "nothing": lambda x: None,
    "ones": torch.ones_like,
    "last": lambda x: x.movedim(1, -1).contiguous().movedim(-1, 1).detach(),
    "turned": lambda x: x.mT.contiguous().mT.detach(),
}


def _again(form: Form, before: str, retained: bool, x: torch.Tensor, w: torch.Tensor) -> Any:
    x, w = leaf(x.clone()), leaf(w.clone())
    x.grad, w.grad = (_BEFORE[before](one) for one in (x, w))
    y = form(x, w)
    y.backward(uneven(y), retain_graph=retained)
    held = w.grad
    z = y if retained else form(x, w)
    z.backward(uneven(z).flip(0))
    assert w.grad is not None
    return [x.grad, w.grad, held is w.grad]


for _dtype in (torch.float32, *HALVES):
    _whole = _dtype == torch.float32
    _table = {**_pairs(_LOOKED, "look"), **_pairs(_BAGS, "bag")}
    add_table(
        cases,
        f"accumulated-tables-{str(_dtype)[6:]}",
        dict(list(_table.items())[:: 6 if _whole else 67]),
        lambda d, dtype=_dtype: (
            (d.distinct(5, 3) / 8).to(dtype),
            torch.tensor([2, 0, 3, 1, 2, 4, 0]),
        ),
        terms=1024 if _whole else 16,
        factor=8.0,
        deterministic=False,
    )
    _layers = {
        f"{name}-{before}-{retained}": lambda x, w, row=(form, before, retained): _again(*row, x, w)
        for name, form in _LAYERS.items()
        for before in _BEFORE
        for retained in (True, False)
    }
    add_table(
        cases,
        f"accumulated-layers-{str(_dtype)[6:]}",
        dict(list(_layers.items())[:: 3 if _whole else 31]),
        lambda d, dtype=_dtype: (
            (d.distinct(2, 4, 6, 6) / 128 + 0.003).to(dtype),
            (d.distinct(4, 4, 3, 3) / 128 + 0.001).to(dtype),
        ),
        terms=256 if _whole else 16,
        factor=8.0,
        deterministic=False,
    )
