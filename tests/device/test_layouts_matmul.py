"""Layouts of the matrix product's family and of linear algebra."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.layout_cases import add_layout_cases
from device_suite.ops import FLOATS, Arg, Op, spellings

cases = Cases("layouts")


def _product(name: str, *shapes: str, **fields: Any) -> None:
    fields.setdefault("forms", None)
    forms = fields.pop("forms") or spellings(name)
    args = tuple(Arg(shape) for shape in shapes)
    add_layout_cases(cases, Op(name=name, args=args, forms=forms, **{"terms": 64, "dtypes": FLOATS, **fields}))


def _out(name: str) -> Any:
    return lambda *operands, out: getattr(torch, name)(*operands, out=out)


_INTEGER = (*FLOATS, torch.int64, torch.int32)
_product("mm", "r n", "n m", out=_out("mm"), tall=True, empty="r", dtypes=_INTEGER)
_product("bmm", "b r n", "b n m", out=_out("bmm"), empty="b", dtypes=_INTEGER)
_product("mv", "r n", "n", out=_out("mv"), tall=True)
_product("dot", "n", "n", out=_out("dot"))
_product("vdot", "n", "n")
_product("inner", "r n", "m n")
_product("outer", "r", "n", out=_out("outer"), dtypes=_INTEGER)
_product("ger", "r", "n")
_product("kron", "r n", "m b", forms=(lambda x, y: torch.kron(x.contiguous(), y.contiguous()),))
_product("addmm", "r m", "r n", "n m", out=_out("addmm"), inplace=lambda x, a, b: x.addmm_(a, b), tall=True)
_product("addbmm", "r m", "b r n", "b n m", out=_out("addbmm"), inplace=lambda x, a, b: x.addbmm_(a, b))
_product("baddbmm", "b r m", "b r n", "b n m", out=_out("baddbmm"), inplace=lambda x, a, b: x.baddbmm_(a, b))
_product("addmv", "r", "r n", "n", out=_out("addmv"), inplace=lambda x, a, b: x.addmv_(a, b))
_product("addr", "r n", "r", "n", inplace=lambda x, a, b: x.addr_(a, b))
_product("cross", "r 3", "r 3", forms=(lambda x, y: torch.cross(x, y, dim=1), lambda x, y: torch.linalg.cross(x, y)))
_product("cdist", "r n", "m n", dtypes=FLOATS[:1], factor=64)
_product(
    "scaled_sums",
    "r m",
    "r n",
    "n m",
    forms=(
        lambda x, a, b: torch.addmm(x, a, b, beta=0.5, alpha=-2.0),
        lambda x, a, b: torch.addmm(x[0], a, b, beta=2.0),
        lambda x, a, b: torch.addmm(x, a, b, beta=0.0, alpha=3.0),
    ),
    grads=(),
)
_product(
    "scaled_batches",
    "b r m",
    "b r n",
    "b n m",
    grads=(),
    forms=(
        lambda x, a, b: torch.baddbmm(x, a, b, beta=0.5, alpha=-2.0),
        lambda x, a, b: torch.addbmm(x[0], a, b, beta=0.25, alpha=2.0),
    ),
)

# matmul by the ranks of its operands; `@` and Tensor.matmul are spellings.
for _label, _shapes in {
    "1_1": ("n", "n"),
    "2_1": ("r n", "n"),
    "1_2": ("n", "n m"),
    "2_2": ("r n", "n m"),
    "3_2": ("b r n", "n m"),
    "2_3": ("r n", "b n m"),
    "3_3": ("b r n", "b n m"),
    "4_4": ("b c r n", "b c n m"),
    "4_2": ("b c r n", "n m"),
    "4_3": ("b c r n", "c n m"),
    "3_1": ("b r n", "n"),
}.items():
    _forms = (*spellings("matmul"), lambda x, y: x @ y)
    _product(f"matmul_{_label}", *_shapes, forms=_forms, out=_out("matmul") if _label in ("2_2", "3_3") else None)

for _equation, _shapes in {
    "ij,jk->ik": ("r n", "n m"),
    "bij,bjk->bik": ("b r n", "b n m"),
    "bhqd,bhkd->bhqk": ("b c r n", "b c m n"),
    "ij,ij->i": ("r n", "r n"),
    "i,j->ij": ("r", "n"),
    "bij,bij->b": ("b r n", "b r n"),
    "ij->ji": ("r n",),
    "ii->i": ("r r",),
    "bij->bj": ("b r n",),
}.items():
    _label = "".join(letter if letter.isalpha() else "_" for letter in _equation)
    _product(f"einsum_{_label}", *_shapes, forms=(lambda *xs, equation=_equation: torch.einsum(equation, *xs),))
_product(
    "tensordot",
    "b r n",
    "n r m",
    forms=(
        lambda x, y: torch.tensordot(x, y, dims=([1, 2], [1, 0])),
        lambda x, y: torch.tensordot(x, y.permute(1, 0, 2), 2),
    ),
)
_product(
    "multi_dot",
    "r n",
    "n m",
    "m b",
    forms=(lambda *xs: torch.linalg.multi_dot(xs), lambda *xs: torch.chain_matmul(*xs)),
    factor=16,
)
_product(
    "matrix_power",
    "r r",
    forms=(lambda x: torch.matrix_power(x, 3), lambda x: torch.linalg.matrix_power(x, 2)),
    factor=16,
)

for _label, _shape in {"1": "n", "2": "r n", "3": "b r n", "4": "b c r n", "5": "b c 2 r n"}.items():
    _product(
        f"linear_{_label}", _shape, "m n", "m", forms=(lambda x, w, b: F.linear(x, w, b),), tall=_label == "2", empty=""
    )
    _product(
        f"linear_{_label}_plain",
        _shape,
        "m n",
        forms=(lambda x, w: F.linear(x, w), lambda x, w: F.linear(x, w.contiguous())),
    )
_product(
    "bilinear",
    "r n",
    "r m",
    "b n m",
    "b",
    forms=(lambda x, y, w, b: F.bilinear(x, y, w, b),),
    terms=256,
    dtypes=FLOATS[:1],
)


def _dominated(d: Any, dtype: Any, shape: Any) -> Any:
    """A matrix whose answers do not hang on rounding, for dense rows and for every second column of wide ones."""
    x = d.normal(*shape, dtype=dtype) * 0.2
    rows, columns = shape[-2:]
    view = x if rows == columns else x[..., 1::2]
    view += 3 * torch.eye(rows)
    return x


def _algebra(name: str, act: Any, *more: str, **fields: Any) -> None:
    args = (Arg("b r r", _dominated), *(Arg(shape) for shape in more))
    fields = {"terms": 256, "factor": 64, "dtypes": FLOATS[:1], "expanded": False, **fields}
    add_layout_cases(cases, Op(name=name, args=args, forms=(act,), **fields))


def _factors(x: Any) -> Any:
    packed, pivots = torch.linalg.lu_factor(x)
    p, lower, upper = torch.lu_unpack(packed, pivots)
    return pivots, p @ lower @ upper, torch.linalg.lu_solve(packed, pivots, x)


_algebra("inverse", lambda x: [torch.inverse(x), torch.linalg.inv(x), x.inverse()])
_algebra(
    "cholesky",
    lambda x: [torch.linalg.cholesky((x + x.transpose(-1, -2)) / 2), torch.cholesky((x + x.transpose(-1, -2)) / 2)],
)
_algebra("det", lambda x: [torch.det(x), torch.linalg.det(x), *torch.linalg.slogdet(x), torch.logdet(x)])
_algebra("solve", lambda x, y: [torch.linalg.solve(x, y), torch.matmul(x, torch.linalg.solve(x, y))], "b r m")
_algebra(
    "triangular",
    lambda x, y: [torch.triangular_solve(y, x)[0], torch.linalg.solve_triangular(x.triu(), y, upper=True)],
    "b r m",
)
_algebra(
    "singular", lambda x: [torch.linalg.svdvals(x), torch.linalg.eigvalsh((x + x.transpose(-1, -2)) / 2)], grads=()
)
_algebra(
    "decomposed",
    lambda x: [torch.matmul(*torch.linalg.qr(x)), _put_together(*torch.linalg.svd(x, full_matrices=False))],
    grads=(),
)
_algebra("factored", lambda x: [*_factors(x), torch.linalg.pinv(x), torch.matrix_exp(x * 0.1)], grads=())


def _put_together(u: Any, s: Any, v: Any) -> Any:
    return torch.matmul(u * s.unsqueeze(-2), v)
