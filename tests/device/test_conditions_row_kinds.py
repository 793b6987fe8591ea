"""Rule 2 and 3: long rows of one to four dimensions that hold zeros alone, ones, shares, signs in turn, vast numbers.

The sum of zeros was NaN, https://github.com/jwyang/faster-rcnn.pytorch/issues/381; a mean of shares stopped growing,
https://github.com/pytorch/pytorch/issues/10248; a deviation was infinite, https://github.com/pytorch/pytorch/issues/180156
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.limits import HALVES, add_table, shown

cases = Cases("conditions")
Form = Callable[..., Any]

_SHAPES = ((50_003,), (2, 50_003), (20_003, 2), (2, 1, 50_003), (2, 60, 64, 38))
# Of x: 2 * 60 * 64 * 38 numbers from 0 to 1.
_KINDS: dict[str, Form] = {
    "zeros": lambda x: x * 0,
    "negative zeros": lambda x: x * -0.0,
    "ones": lambda x: x * 0 + 1,
    "shares": lambda x: x,
    "signs": lambda x: x - x.flip(0),
    "vast": lambda x: (x - 0.25) * 1e18,
    "small": lambda x: (x + 0.5) * 1e-12,
    "one": lambda x: (x * 0).index_fill(0, torch.tensor([2499, 4999], device=x.device), 5.0),
}
_ANSWERS: dict[str, Form] = {
    "sum": lambda y, d: [y.sum(d), y.sum(), y.sum(d, keepdim=True)],
    "mean": lambda y, d: [y.mean(d), y.mean()],
    "norm": lambda y, d: [y.norm(dim=d), y.norm(), y.norm(1, d), torch.linalg.vector_norm(y, 3.0, d)],
    "ends": lambda y, d: [y.amax(d), y.amin(d), y.max(), y.min()],
    "shares": lambda y, d: [shown((y.clamp(-9, 9)).softmax(d)), y.clamp(-9, 9).logsumexp(d)],
    "scans": lambda y, d: [shown(y.cummax(d)[0]), shown(y.clamp(-1, 1).cumsum(d))],
    "counts": lambda y, d: [y.count_nonzero(d), (y > 0).any(d), (y == 0).all(d), (y == 0).sum()],
}
# A deviation of numbers that are alike is what is left of rounding.
_SPREAD: dict[str, Form] = {
    "spread": lambda y, d: [y.std(d), y.var(d), y.std(), *torch.var_mean(y, d)],
    "normed": lambda y, d: shown(F.layer_norm(y, y.shape[-1:])),
}
_ALIKE, _FAR = ("zeros", "negative zeros", "ones"), ("vast", "small")


def _asked(kind: str, shape: tuple[int, ...], form: Form, x: torch.Tensor) -> Any:
    y = _KINDS[kind](x)[: torch.Size(shape).numel()].reshape(shape)
    return form(y, 0 if shape[-1] == 2 else -1)


for _dtype in (torch.float32, *HALVES):
    for _kind in _KINDS:
        if _dtype != torch.float32 and _kind in _FAR:
            continue
        _forms = {**_ANSWERS, **({} if _kind in (*_ALIKE, "vast", "small") else _SPREAD)}
        if _kind == "vast":
            del _forms["norm"]  # the CPU's is infinite
        add_table(
            cases,
            f"rows-of-{_kind.replace(' ', '-')}-{str(_dtype)[6:]}",
            {
                f"{name}-{'x'.join(map(str, shape))}": lambda x, kind=_kind, shape=shape, form=form: _asked(
                    kind, shape, form, x
                )
                for name, form in _forms.items()
                for shape in (_SHAPES if _dtype == torch.float32 else _SHAPES[1::4])
            },
            lambda d, dtype=_dtype: ((d.permutation(2 * 60 * 64 * 38) / (2 * 60 * 64 * 38)).to(dtype),),
            terms=50_003 if _dtype == torch.float32 else 16,
            floor={"vast": 1e18, "small": 1e-12}.get(_kind, 1.0),
            deterministic=False,
        )
add_table(  # by itself: CUDA is known for it
    cases,
    "rows-of-vast-spread",
    {
        "x".join(map(str, shape)): lambda x, shape=shape: _asked("vast", shape, lambda y, d: [y.std(d), y.std()], x)
        for shape in _SHAPES
    },
    lambda d: (d.permutation(2 * 60 * 64 * 38) / (2 * 60 * 64 * 38),),
    terms=50_003,
    deterministic=False,
)
