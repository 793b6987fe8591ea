"""Rules 1, 2 and 5: options at the ends in half types, widths of bins, None beside masks, a million of categories.

An eps of 1e-12 in half precision: https://github.com/pytorch/pytorch/issues/41527; bins of integers: 68946 there; a
sparse matrix transposed after coalesce(): 14617 there.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import ONCE, assigned, each
from device_suite.ops import FLOATS

cases = Cases("conditions")
Form = Callable[..., Any]
_FIELDS: dict[str, Any] = {"floor": 1.0, "states": ONCE, "may_be_missing": True}

# Each operator with an eps; x is (4, 8, 8): rows of equal numbers, of zeros, and others.
_WITH_EPS: dict[str, Form] = {
    "layer_norm": lambda x, eps: F.layer_norm(x, x.shape[-1:], eps=eps),
    "layer_norm-weighed": lambda x, eps: F.layer_norm(x, x.shape[-1:], x[3, 3], x[3, 4], eps),
    "group_norm": lambda x, eps: F.group_norm(x, 4, eps=eps),
    "instance_norm": lambda x, eps: F.instance_norm(x, eps=eps),
    "batch_norm": lambda x, eps: F.batch_norm(x.transpose(0, 1), None, None, training=True, eps=eps),
    "batch_norm-kept": lambda x, eps: F.batch_norm(x, x[3, 3], x[3, 4].square(), eps=eps),
    "rms_norm": lambda x, eps: F.rms_norm(x, x.shape[-1:], eps=eps),
}
# What divides by a length: of no row of zeros in half precision, where the eps itself is rounded.
_BY_LENGTH: dict[str, Form] = {
    "normalize": lambda x, eps: F.normalize(x[3:], eps=eps),
    "cosine_similarity": lambda x, eps: F.cosine_similarity(x[3:], x[3:].flip(1), eps=eps),
    "pairwise_distance": lambda x, eps: F.pairwise_distance(x[3], x[3].flip(0), eps=eps),
    "logit": lambda x, eps: torch.logit(x[3].sigmoid(), eps=eps),
    "gaussian_nll_loss": lambda x, eps: F.gaussian_nll_loss(x[3], x[3].flip(0), x[3].square() + 1, eps=eps),
    "poisson_nll_loss": lambda x, eps: F.poisson_nll_loss(x[3].abs(), x[3].square(), log_input=False, eps=eps),
}


def _rows(d: Any, dtype: torch.dtype) -> torch.Tensor:
    """Return rows of 8 whose mean is exact in any order of its additions."""
    x = d.integers(-8, 9, 4, 8, 8) / 8 + 0.0625
    x[0] = 0.5
    x[1] = 0.0
    x[2] = torch.tensor([2.0, -0.25] * 4)[:, None]
    return x.to(dtype)


_EPS = (0.0, 1e-30, 1e-12, 1e-6, 1e-3)
# The CPU rounds these to half precision, where they are 0: a row of equal numbers is divided by 0 there, or it is not.
_ROUNDED = ("instance_norm", "batch_norm")


def _asked_of(name: str, dtype: torch.dtype) -> tuple[float, ...]:
    if name in _ROUNDED:
        return _EPS[3:] if dtype == torch.float16 else _EPS[1:]
    # These have what they multiply with, or the eps itself, in the operand's type.
    return _EPS[3:] if dtype == torch.float16 and name in ("group_norm", "rms_norm") else _EPS


for _dtype in FLOATS:
    for _name, _form in (_WITH_EPS | _BY_LENGTH).items():
        _asked = _asked_of(_name, _dtype)
        cases.add(
            f"ends-eps-{_name}-{str(_dtype)[6:]}",
            lambda x, form=_form, asked=_asked: each({f"{eps}": lambda a, e=eps: form(a, e) for eps in asked}, x),
            make=lambda d, dtype=_dtype: _rows(d, dtype),
            terms=64,
            **_FIELDS,
        )

# Bins of whole and of odd widths: whole numbers, each at the edge of one.
_WIDTHS = tuple((bins, width) for bins in (1, 3, 7, 10, 29, 49, 93, 100, 107, 163) for width in (1, 3, 7))

cases.add(
    "ends-bins-float32",
    lambda x: [
        [torch.histc(x[: bins * width + 1], bins, 0, bins * width), torch.histc(x[: bins * width + 1] - bins, bins)]
        for bins, width in _WIDTHS
    ],
    make=lambda d: torch.arange(163 * 7 + 1.0),
    **_FIELDS,
)

# None, whole dimensions and masks in one index: read, written by a number, by a row and by all, and derived.
_PLACES: dict[str, Callable[[Any, Any], Any]] = {
    "mask-none": lambda m, i: (m, None),
    "none-mask": lambda m, i: (None, m),
    "mask-all-none": lambda m, i: (m, slice(None), None),
    "mask-none-all": lambda m, i: (m, None, slice(None)),
    "all-mask-none": lambda m, i: (slice(None), m, None),
    "none-all-mask": lambda m, i: (None, slice(None), m),
    "dots-mask-none": lambda m, i: (..., m, None),
    "mask-none-places": lambda m, i: (m, None, i[: int(m.sum())]),
    "places-none": lambda m, i: (i, None),
    "places-none-places": lambda m, i: (i, None, i),
    "none-places-none": lambda m, i: (None, i, None),
    "mask-none-number": lambda m, i: (m, None, 2),
    "matrix-none": lambda m, i: (m[:, None] & m, None),
    "none-matrix": lambda m, i: (None, m[:, None] & m),
}


def _indexed(x: torch.Tensor, m: torch.Tensor, i: torch.Tensor) -> Any:
    forms: dict[str, Form] = {}
    for name, place in _PLACES.items():
        at = place(m, i)
        forms[f"{name}-read"] = lambda at=at: x[at]
        forms[f"{name}-number"] = lambda at=at: assigned(x, at, 3)
        forms[f"{name}-tensor"] = lambda at=at: assigned(x, at, x[0, 0])
        forms[f"{name}-all"] = lambda at=at: assigned(x, at, x[at] * 2)
        forms[f"{name}-derived"] = lambda at=at: derived(lambda a: a[at], x)
    # Handed to the operator as a list, as graphs do.
    put: Any = torch.ops.aten.index_put
    put_: Any = torch.ops.aten.index_put_
    for name, places in {"mask": [m, None], "none": [None, m], "places": [i, None], "long": [m]}.items():
        forms[f"{name}-listed"] = lambda places=places: torch.ops.aten.index(x, places)
        # As many values as a row has after the mask and None: of one value the CPU is wrong there before 2.9, see
        # https://github.com/pytorch/pytorch/issues/158413.
        value, number = (x[0], x.new_tensor([3.0] * 5)) if name == "mask" else (x[0, 0], x.new_tensor(3.0))
        forms[f"{name}-put"] = lambda places=places, value=number: put(x, places, value)
        forms[f"{name}-added"] = lambda places=places, value=number: put(x, places, value, True)
        forms[f"{name}-in-place"] = lambda places=places, value=value: put_(x.clone(), places, value)
    return each(forms)


cases.add(
    "ends-index-none",
    _indexed,
    make=lambda d: (d.normal(5, 5), torch.tensor([True, False, True, True, False]), torch.tensor([4, 0, 2])),
    **_FIELDS,
)


def _numbered(x: torch.Tensor, m: torch.Tensor) -> Any:
    put, number = torch.ops.aten.index_put, x.new_tensor(3.0)
    return each({f"{add}": lambda a, add=add: put(a, [m, None], number, add) for add in (False, True)}, x)


# One value at a mask and None: the CPU is wrong there before 2.9 (https://github.com/pytorch/pytorch/issues/158413).
cases.add(
    "ends-index-number",
    _numbered,
    make=lambda d: (d.normal(5, 5), torch.tensor([True, False, True, True, False])),
    since="2.9",
    **_FIELDS,
)

# Categories past 2**20 of which few can be drawn: each that is drawn is one of them.
_CATEGORIES = (1 << 20) + 7


def _possible(x: torch.Tensor) -> Any:
    drawn = [torch.multinomial(x, 500, replacement=True), torch.multinomial(x, 9), torch.multinomial(x[-5:], 1)]
    return [(x[drawn[0]] > 0).all(), (x[drawn[1]] > 0).all(), drawn[1].sort()[0].diff().min() > 0, drawn[2]]


def _few(d: Any) -> torch.Tensor:
    x = torch.zeros(_CATEGORIES)
    x[torch.tensor([1, 513, 65_537, 131_073, 262_145, 524_289, 777_777, 999_999, 1 << 20, _CATEGORIES - 2])] = 0.125
    return x


cases.add("ends-categories", _possible, make=_few, **_FIELDS)

# A sparse matrix that is turned after its places were put in order.
_TURNED: dict[str, Form] = {
    "product": lambda a, x: a.t() @ x[:5],
    "mm": lambda a, x: torch.sparse.mm(a.t(), x[:5]),
    "addmm": lambda a, x: torch.sparse.addmm(x[:7], a.t(), x[:5]),
    "vector": lambda a, x: a.t() @ x[:5, 0],
    "dense": lambda a, x: a.t().to_dense(),
    "sum": lambda a, x: torch.sparse.sum(a.t(), 0).to_dense(),
    "ordered": lambda a, x: [a.t().coalesce().indices(), a.t().coalesce().values()],
    "scaled": lambda a, x: (a.t() * 2).to_dense(),
    "added": lambda a, x: (a.t() + a.t()).to_dense(),
    "twice": lambda a, x: a.t().t() @ x,
    "selected": lambda a, x: a.t().index_select(0, torch.tensor([2, 0], device=x.device)).to_dense(),
    "cat": lambda a, x: torch.cat([a.t(), a.t()]).to_dense(),
}


def _ordered(x: torch.Tensor) -> torch.Tensor:
    return (x[:5, :7] * (x[:5, :7] > 0)).to_sparse().coalesce()


for _name, _form in _TURNED.items():
    cases.add(
        f"ends-sparse-{_name}",
        lambda x, form=_form: form(_ordered(x), x),
        make=lambda d: d.normal(7, 8),
        terms=16,
        **_FIELDS,
    )
