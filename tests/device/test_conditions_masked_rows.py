"""A mask over rows that selects 2**20 elements and more, all of them, none; sparse matrices of 60,000 values.

What is selected is counted first and written block by block, the last ones may stay out:
https://github.com/nv-legate/cupynumeric/issues/1215; CSR of more than 50,000 values: https://github.com/cupy/cupy/issues/2005
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import add_table, assigned, shown

cases = Cases("conditions")
_ROWS, _WIDTH = 90_000, 16
Form = Callable[..., Any]


def _shown(y: torch.Tensor) -> Any:
    """Return the form of an answer, its sum, and what is shown of its numbers."""
    return [str(tuple(y.shape)), y.sum(dtype=torch.int64), shown(y)]


# x of rows of 16; m a mask over rows.
_MASKED: dict[str, Form] = {
    "read": lambda x, m: x[m],
    "selected": lambda x, m: torch.masked_select(x, m[:, None]),
    "places": lambda x, m: [m.nonzero(), m.view(-1, 4).nonzero()],
    "whole": lambda x, m: assigned(x, m, -x[m]),
    "added": lambda x, m: x.index_put((m,), x[m], accumulate=True),
    "scattered": lambda x, m: x.masked_scatter(m[:, None], -x),
    # Of some rows only.
    "read-column": lambda x, m: x[m, 3],
    "read-part": lambda x, m: x[:, 2:9][m],
    "index_select": lambda x, m: x.index_select(0, m.nonzero()[:, 0]),
    "number": lambda x, m: assigned(x, m, 3),
    "row": lambda x, m: assigned(x, m, x[5]),
    "put": lambda x, m: x.index_put((m,), -x[m]),
    "added-number": lambda x, m: x.index_put((m,), x[1, 1], accumulate=True),
}
# Which rows, how many there are, and how much is asked.
_MASKS: dict[str, Any] = {
    "some": (lambda m: m, _ROWS, len(_MASKED)),
    "all": (torch.ones_like, (1 << 16) + 4, 6),
    "none": (torch.zeros_like, _ROWS, 6),
}


def _asked(x: torch.Tensor, m: torch.Tensor, form: Form, mask: Any, rows: int) -> Any:
    answer = form(x.repeat(_ROWS // len(x), 1)[:rows], mask(m)[:rows])
    return [_shown(one) for one in (answer if isinstance(answer, list) else [answer])]


for _name, (_mask, _rows, _count) in _MASKS.items():
    add_table(
        cases,
        f"masked-rows-{_name}",
        {
            name: lambda x, m, form=form, mask=_mask, rows=_rows: _asked(x, m, form, mask, rows)
            for name, form in [*_MASKED.items()][:_count]
        },
        # Three rows of four are selected.
        lambda d: (d.integers(-9, 10, 3000, _WIDTH, dtype=torch.int32), d.integers(0, 4, _ROWS) > 0),
    )


def _compressed(s: torch.Tensor) -> Any:
    rows = s.layout == torch.sparse_csr
    return [
        s.crow_indices() if rows else s.ccol_indices(),
        s.col_indices() if rows else s.row_indices(),
        s.values(),
        s.to_dense(),
        s.to_sparse().to_dense(),
    ]


def _listed(s: torch.Tensor) -> Any:
    s = s.coalesce()
    return [s.indices(), s.values(), s.to_dense()]


# x of (250, 300), five numbers of six are not 0.
_SPARSE: dict[str, Form] = {
    "listed": lambda x: _listed(x.to_sparse()),
    "listed-turned": lambda x: _listed(x.to_sparse().t()),
    "listed-added": lambda x: _listed(x.to_sparse() + x.to_sparse()),
    "csr": lambda x: _compressed(x.to_sparse_csr()),
    "csr-of-listed": lambda x: _compressed(x.to_sparse().to_sparse_csr()),
    "csr-of-turned": lambda x: _compressed(x.to_sparse().t().coalesce().to_sparse_csr()),
    "csc": lambda x: _compressed(x.to_sparse_csc()),
    "csc-of-listed": lambda x: _compressed(x.to_sparse().to_sparse_csc()),
    "listed-of-csr": lambda x: _listed(x.to_sparse_csr().to_sparse()),
    "masked": lambda x: _listed(x.sparse_mask((x > 0).to_sparse().to(x.dtype))),
    "product": lambda x: torch.sparse.mm(x.to_sparse(), x.t()[:, :3]),
}
add_table(
    cases,
    "masked-rows-sparse",
    dict(_SPARSE),
    lambda d: (d.integers(1, 10, 250, 300).float() * (d.integers(0, 6, 250, 300) > 0),),
    terms=300,
)
