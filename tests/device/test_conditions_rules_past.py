"""Rule 3: short sides before the last, slices of columns and small numbers past 2**16 and 2**20 elements.

Maxima of x[:, 7:]: https://github.com/ml-explore/mlx/issues/4539; products and conversions of very many elements:
https://github.com/tensorflow/tensorflow/issues/60330, https://github.com/microsoft/onnxruntime/issues/28385
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import ONCE, each

cases = Cases("conditions")
Form = Callable[..., Any]
_FIELDS: dict[str, Any] = {"floor": 1.0, "states": ONCE, "may_be_missing": True}
_MANY = 1 << 16


def _named(*names: str) -> dict[str, Form]:
    return {name: lambda x, dim, name=name: getattr(torch, name)(x, dim=dim) for name in names}


_REDUCED = _named("sum", "amax", "amin", "max", "argmin", "any", "all", "count_nonzero")
_AVERAGED = {
    **_named("mean", "logsumexp", "softmax", "cumsum", "var"),
    "norm": lambda x, dim: torch.linalg.vector_norm(x, 2, dim),
}


# A short side, first or in the middle, past 2**16 elements.
for _dtype, _forms in (
    (torch.float32, _REDUCED | _AVERAGED),
    (torch.float16, _named("sum", "amax", "mean")),
    (torch.int32, _named("sum", "amax", "any")),
):
    cases.add(
        f"threshold-past-short-{str(_dtype)[6:]}",
        lambda *bases, forms=_forms: [
            [each(forms, x.view(x.shape[0], -1), 0), each(forms, x.view(3, x.shape[0], -1), 1)] for x in bases
        ],
        make=lambda d, dtype=_dtype: tuple(
            d.distinct(side, 3 * (_MANY // side // 3 + 1)).div(4096).to(dtype)
            if dtype.is_floating_point
            else d.of(dtype, side, 3 * (_MANY // side // 3 + 1))
            for side in (2, 4, 32, 33)
        ),
        terms=64,
        **_FIELDS,
    )

# Rows that begin behind the first columns, past 2**16 elements.
_SLICED: dict[str, Form] = {
    **_REDUCED,
    **_AVERAGED,
    **_named("sort", "cummax", "argmax", "median"),
    "copied": lambda x, dim: [x.contiguous(), x.to(torch.float16), x.flip(dim)],
    "computed": lambda x, dim: [x + 1, x * x, x > 0, x.neg(), torch.where(x > 0, x, 2.0)],
    "picked": lambda x, dim: [x.index_select(0, torch.arange(0, len(x), 411, device=x.device)), x[::57], x[-3:]],
    "product": lambda x, dim: x @ x[:8].t(),
}
cases.add(
    "threshold-past-slices-float32",
    lambda x: [each(_SLICED, x[:, 7:], 1), each(_named("sum", "amax", "argmax"), x[:, 7:], 0)],
    make=lambda d: d.distinct(_MANY // 17 + 300, 17) / 4096,
    terms=64,
    **{**_FIELDS, "floor": 16.0},
)

# More than 2**20 elements of the small dtypes: what is compared is whole.
_BINARY: dict[str, Form] = {
    "mul": torch.mul,
    "add": torch.add,
    "and": torch.logical_and,
    "less": torch.lt,
    "maximum": torch.maximum,
    "where": lambda x, y: torch.where(x > y, x, y),
}
_CONVERTED: dict[str, Form] = {
    str(dtype)[6:]: lambda x, y, dtype=dtype: x.to(dtype)
    for dtype in (torch.int8, torch.uint8, torch.bool, torch.int16, torch.float16)
}
_HUGE = (1 << 20) + 3
for _dtype in (torch.int8, torch.uint8, torch.bool, torch.float16):
    # In half precision whole numbers, so that nothing is rounded.
    _forms = {"mul": torch.mul, **_CONVERTED} if _dtype == torch.float16 else _BINARY | _CONVERTED
    cases.add(
        f"threshold-past-many-{str(_dtype)[6:]}",
        lambda x, y, forms=_forms: each(forms, x, y),
        full=_dtype in (torch.uint8, torch.float16),
        quiet=_dtype in (torch.uint8, torch.float16),
        make=lambda d, dtype=_dtype: tuple(d.integers(0, 9, _HUGE).to(dtype) for _ in range(2)),
        **_FIELDS,
    )
