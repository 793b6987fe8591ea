"""Rules 1 and 3: products that are added to something, with both factors, dense and sparse, also of an inner size of 0.

sampled_addmm of nothing did not multiply by beta, https://github.com/pytorch/pytorch/issues/85169; sparse.addmm
multiplied by it twice, https://github.com/pytorch/pytorch/issues/55917; baddbmm handed on a NaN that beta 0 ignores,
https://github.com/pytorch/pytorch/issues/187521; a product of nothing left its memory,
https://github.com/pytorch/pytorch/issues/31421
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table
from device_suite.sparse import told

cases = Cases("conditions")
Form = Callable[..., Any]
_SIDES = ((3, 4, 2), (3, 0, 2), (1, 4, 1), (4, 1, 5), (3, 4, 0), (0, 4, 2), (1, 0, 1))
_FACTORS = ((1, 1), (0, 1), (2, 1), (1, -3), (-2, 4), (0, 2), (3, 0))


def _cut(x: torch.Tensor, start: int, *shape: int) -> torch.Tensor:
    count = int(torch.Size(shape).numel())
    return x[start : start + count].reshape(shape)


# c: what is added to; a, b: what is multiplied, of (m, k) and (k, n).
_DENSE: dict[str, Form] = {
    "addmm": lambda c, a, b, f: torch.addmm(c, a, b, **f),
    "addmm-method": lambda c, a, b, f: c.addmm(a, b, **f),
    "addmm_": lambda c, a, b, f: c.clone().addmm_(a, b, **f),
    "addmm-turned": lambda c, a, b, f: torch.addmm(c.mT.contiguous().mT, a.mT.contiguous().mT, b, **f),
    "addmm-columns": lambda c, a, b, f: torch.addmm(c, a, b.mT.contiguous().mT, **f),
    "addmm-row": lambda c, a, b, f: torch.addmm(c.sum(0), a, b, **f),
    "addmm-column": lambda c, a, b, f: torch.addmm(c.sum(1, keepdim=True), a, b, **f),
    "addmm-stepped": lambda c, a, b, f: torch.addmm(c, torch.stack([a, -a], -1)[..., 0], b, **f),
    "addmv": lambda c, a, b, f: torch.addmv(c.sum(1), a, b.sum(1), **f),
    "addmv_": lambda c, a, b, f: c.sum(1).addmv_(a, b.sum(1), **f),
    "addmv-turned": lambda c, a, b, f: torch.addmv(c.sum(0), b.mT, a.sum(0), **f),
    # Of no elements the CPU answers with no dimensions.
    "addmv-number": lambda c, a, b, f: torch.addmv(c.sum(), a, b.sum(1), **f) if a.numel() else c.sum(1),
    "addmv-stepped": lambda c, a, b, f: torch.addmv(c.sum(1), a, torch.stack([b.sum(1), b.sum(1) * 2], 1)[:, 1], **f),
    "addr": lambda c, a, b, f: torch.addr(c, a.sum(1), b.sum(0), **f),
    "addr_": lambda c, a, b, f: c.clone().addr_(a.sum(1), b.sum(0), **f),
    "baddbmm": lambda c, a, b, f: torch.baddbmm(
        torch.stack([c, -c]), torch.stack([a, a * 2]), torch.stack([b, b]), **f
    ),
    "baddbmm_": lambda c, a, b, f: torch.stack([c, -c]).baddbmm_(torch.stack([a, a * 2]), b.expand(2, *b.shape), **f),
    "baddbmm-one": lambda c, a, b, f: torch.baddbmm(c, a.expand(3, *a.shape), b.expand(3, *b.shape), **f),
    "baddbmm-turned": lambda c, a, b, f: torch.baddbmm(
        c.sum(0), torch.stack([a, a * 2], 1).transpose(0, 1), torch.stack([b, b], 2).permute(2, 0, 1), **f
    ),
    "baddbmm-none": lambda c, a, b, f: torch.baddbmm(
        c.expand(0, *c.shape), a.expand(0, *a.shape), b.expand(0, *b.shape), **f
    ),
    "addbmm": lambda c, a, b, f: torch.addbmm(c, torch.stack([a, a * 2]), torch.stack([b, -b + 1]), **f),
    "addbmm_": lambda c, a, b, f: c.clone().addbmm_(torch.stack([a, a * 2]), torch.stack([b, b]), **f),
    "addbmm-none": lambda c, a, b, f: torch.addbmm(c, a.expand(0, *a.shape), b.expand(0, *b.shape), **f),
}
# Without factors: into memory that holds NaN.
_PLAIN: dict[str, Form] = {
    "mm": lambda c, a, b: torch.mm(a, b, out=_spoiled(c)),
    "matmul": lambda c, a, b: torch.matmul(a, b, out=_spoiled(c)),
    "bmm": lambda c, a, b: torch.bmm(a[None], b[None], out=_spoiled(c[None])),
    "mv": lambda c, a, b: torch.mv(a, b.sum(1), out=_spoiled(c.sum(1))),
    "dot": lambda c, a, b: torch.dot(a.sum(0), b.sum(1), out=_spoiled(c.sum())),
    "outer": lambda c, a, b: torch.outer(c.sum(1), b.sum(0), out=_spoiled(c)),
    "inner": lambda c, a, b: torch.inner(a, b.mT, out=_spoiled(c)),
    "into-columns": lambda c, a, b: torch.mm(a, b, out=_spoiled(c.mT.contiguous()).mT),
    "into-steps": lambda c, a, b: torch.mm(a, b, out=_spoiled(torch.cat([c, c]))[::2]),
    "into-part": lambda c, a, b: torch.matmul(a, b, out=_spoiled(torch.cat([c, c], 1))[:, : c.shape[1]]),
    "batch-into-part": lambda c, a, b: torch.bmm(a[None], b[None], out=_spoiled(torch.stack([c, c, c]))[1:2]),
    "addmm": lambda c, a, b: torch.addmm(c, a, b, beta=2, out=_spoiled(c)),
    "ignored": lambda c, a, b: [
        torch.addmm(_spoiled(c), a, b, beta=0),
        torch.addmv(_spoiled(c.sum(1)), a, b.sum(1), beta=0),
        torch.addr(_spoiled(c), a.sum(1), b.sum(0), beta=0),
        torch.baddbmm(_spoiled(c[None]), a[None], b[None], beta=0),
        torch.addbmm(_spoiled(c), a[None], b[None], beta=0, alpha=3),
    ],
    "ignored-in-place": lambda c, a, b: [
        _spoiled(c).addmm_(a, b, beta=0),
        _spoiled(c.sum(1)).addmv_(a, b.sum(1), beta=0),
        _spoiled(c).addr_(a.sum(1), b.sum(0), beta=0),
        _spoiled(c[None]).baddbmm_(a[None], b[None], beta=0),
        _spoiled(c).addbmm_(a[None], b[None], beta=0),
    ],
    "ignored-row": lambda c, a, b: [
        torch.addmm(_spoiled(c.sum(0)), a, b, beta=0),
        torch.baddbmm(_spoiled(c.sum(0)), a[None], b[None], beta=0),
        torch.addmv(_spoiled(c.sum()), a, b.sum(1), beta=0),
    ],
    "linear": lambda c, a, b: [torch.nn.functional.linear(a, b.mT, c.sum(0)), torch.nn.functional.linear(a, b.mT)],
    "batches": lambda c, a, b: [
        a[None, None] @ b,
        a @ b[None],
        torch.matmul(a[:, None, None], b),
        a.expand(0, 2, *a.shape) @ b,
    ],
    "vectors": lambda c, a, b: [
        a @ b.sum(1),
        a.sum(0) @ b,
        a.sum(0) @ b.expand(2, *b.shape),
        a.expand(2, *a.shape) @ b.sum(1),
    ],
    "derived": lambda c, a, b: (
        [
            derived(lambda x, y, z: torch.addmm(x, y, z, beta=2, alpha=-3), c, a, b),
            derived(lambda x, y, z: torch.baddbmm(x, y[None], z[None], beta=0.5, alpha=4), c, a, b),
            derived(lambda x, y, z: torch.addbmm(x, y[None], z[None], beta=-1), c, a, b),
        ]
        if c.is_floating_point()
        else c
    ),
}


def _spoiled(x: torch.Tensor) -> torch.Tensor:
    """Return what must not be read: NaN, or a large number."""
    return torch.full_like(x, float("nan") if x.is_floating_point() or x.is_complex() else 77)


def _dense(form: Form, sides: tuple[int, int, int], x: torch.Tensor, *rest: Any) -> Any:
    m, k, n = sides
    return form(_cut(x, 40, m, n), _cut(x, 0, m, k), _cut(x, 20, k, n), *rest)


for _dtype in (torch.float32, *HALVES, torch.complex64, torch.int64):
    _table = {
        f"{name}-{sides}-{beta}-{alpha}": lambda x, form=form, sides=sides, f={"beta": beta, "alpha": alpha}: _dense(
            form, sides, x, f
        )
        for number, (name, form) in enumerate(_DENSE.items())
        for place, sides in enumerate(_SIDES)
        for turn, (beta, alpha) in enumerate(_FACTORS)
        if (_dtype == torch.float32 and (number + place + turn) % 3 == 0) or (number + 2 * place + turn) % 11 == 0
    }
    _table |= {
        f"{name}-{sides}": lambda x, form=form, sides=sides: _dense(form, sides, x)
        for number, (name, form) in enumerate(_PLAIN.items())
        for place, sides in enumerate(_SIDES)
        if _dtype == torch.float32 or (number + place) % 3 == 0
    }
    add_table(
        cases,
        f"products-added-{str(_dtype)[6:]}",
        _table,
        lambda d, dtype=_dtype: (d.integers(-4, 5, 64).to(dtype),),  # whole numbers: no order of additions shows
        terms=16,
        since="2.1",
    )

# s: sparse, of (m, k); t: sparse, of (k, n); a, b, c: dense, of (m, k), (k, n) and (m, n).
_SPARSE: dict[str, Form] = {
    "mm": lambda s, t, a, b, c: [s @ b, torch.mm(s, b), torch.sparse.mm(s, b)],
    "mm-turned": lambda s, t, a, b, c: s @ b.mT.contiguous().mT,
    "mm-right": lambda s, t, a, b, c: a @ t,
    "mm-two": lambda s, t, a, b, c: s @ t,
    "sparse-two": lambda s, t, a, b, c: torch.sparse.mm(s, t),
    "mv": lambda s, t, a, b, c: [s @ b.sum(1), torch.mv(s, b.sum(1))],
    "mt": lambda s, t, a, b, c: s.t() @ c,
    "bmm": lambda s, t, a, b, c: torch.bmm(torch.stack([s, s]), torch.stack([b, b * 2])),
    "smm": lambda s, t, a, b, c: torch.smm(s, b),
    "hspmm": lambda s, t, a, b, c: torch.hspmm(s, b),
    **{
        f"{name}-{beta}-{alpha}": lambda s, t, a, b, c, form=form, f={"beta": beta, "alpha": alpha}: form(
            s, t, a, b, c, f
        )
        for name, form in {
            "addmm": lambda s, t, a, b, c, f: torch.addmm(c, s, b, **f),
            "addmm-right": lambda s, t, a, b, c, f: torch.addmm(c, a, t, **f),
            "addmm-two": lambda s, t, a, b, c, f: torch.addmm(c, s, t, **f),
            "addmm_": lambda s, t, a, b, c, f: c.clone().addmm_(s, b, **f),
            "addmm-out": lambda s, t, a, b, c, f: torch.addmm(c, s, b, out=_spoiled(c), **f),
            "addmm-row": lambda s, t, a, b, c, f: torch.addmm(c.sum(0), s, b, **f),
            "sparse-addmm": lambda s, t, a, b, c, f: torch.sparse.addmm(c, s, b, **f),
            "addmv": lambda s, t, a, b, c, f: torch.addmv(c.sum(1), s, b.sum(1), **f),
            "sspaddmm": lambda s, t, a, b, c, f: torch.sspaddmm(_as(c, s), s, b, **f),
            "sampled": lambda s, t, a, b, c, f: torch.sparse.sampled_addmm(_as(c, s), a, b, **f),
            "sampled-out": lambda s, t, a, b, c, f: torch.sparse.sampled_addmm(
                _as(c, s), a, b, out=_as(c, s).mul_(7), **f
            ),
            "sampled-turned": lambda s, t, a, b, c, f: torch.sparse.sampled_addmm(
                _as(c, s), a.mT.contiguous().mT, b.mT.contiguous().mT, **f
            ),
            "add": lambda s, t, a, b, c, f: torch.add(s, s * 2, alpha=f["alpha"]),
            "add-dense": lambda s, t, a, b, c, f: torch.add(a, s, alpha=f["alpha"]),
        }.items()
        for beta, alpha in ((1, 1), (0, 1), (2, 1), (1, -3), (-2, 4), (3, 0))
    },
    **{
        f"reduced-{how}": lambda s, t, a, b, c, how=how: torch.sparse.mm(s, b, how)
        for how in ("sum", "mean", "amax", "amin")
    },
}
_DERIVED: dict[str, Form] = {
    "mm": lambda s, t, a, b, c: derived(lambda y: torch.sparse.mm(s, y), b),
    "mm-matrix": lambda s, t, a, b, c: derived(lambda x: torch.sparse.mm(_as(x, s), b), a),
    "mm-both": lambda s, t, a, b, c: derived(lambda x, y: torch.sparse.mm(_as(x, s), y), a, b),
    "addmm": lambda s, t, a, b, c: derived(lambda x, y: torch.sparse.addmm(x, s, y, beta=2, alpha=-3), c, b),
    "mm-turned": lambda s, t, a, b, c: derived(lambda y: s @ y.mT, b.mT.contiguous()),
    "two": lambda s, t, a, b, c: derived(lambda x: torch.sparse.mm(_as(x, s), t).to_dense(), a),
    "sampled": lambda s, t, a, b, c: derived(
        lambda x, y: torch.sparse.sampled_addmm(_as(c, s), x, y, beta=2, alpha=3).to_dense(), a, b
    ),
    "mv": lambda s, t, a, b, c: derived(lambda y: s @ y, b.sum(1)),
}
_LAYOUTS: dict[str, Form] = {
    "coo": lambda x: x.to_sparse(),
    "loose": lambda x: _loose(x),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
}


def _loose(x: torch.Tensor) -> torch.Tensor:
    """Return a sparse matrix each of whose places is told twice, in another order."""
    s = x.to_sparse()
    places, values = s.indices(), s.values()
    return torch.sparse_coo_tensor(
        torch.cat([places.flip(1), places], 1), torch.cat([torch.ones_like(values), values - 1]), s.shape
    )


def _as(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return x.to_sparse() if like.layout == torch.sparse_coo else x.to_sparse_csr()


def _sparse(form: Form, layout: Form, sides: tuple[int, int, int], kind: str, x: torch.Tensor) -> Any:
    m, k, n = sides
    c, a, b = _cut(x, 40, m, n), _cut(x, 0, m, k), _cut(x, 20, k, n)
    if kind == "nothing":
        a, b = a * 0, b * 0
    elif kind == "apart" and k > 1:  # no place of one meets one of the other
        a, b = a.clone(), b.clone()
        a[:, k // 2 :], b[: k // 2] = 0, 0
    elif kind == "row":
        a = a * (torch.arange(m, device=x.device) % 2)[:, None]
    return told(form(layout(a), layout(b), a, b, c))


# What the CPU has of one layout alone, or of all but the first two.
_ONLY = {
    **dict.fromkeys(("smm", "hspmm", "bmm", "sspaddmm"), ("coo", "loose")),
    **dict.fromkeys(("sampled", "sampled-out", "sampled-turned", "reduced"), ("csr",)),
    **dict.fromkeys(("addmv", "addmm-right", "addmm-two"), ("csr", "csc")),
    **dict.fromkeys(("two",), ("coo", "loose")),
    **dict.fromkeys(("mv", "mt", "mm-right", "add-dense"), ("coo", "loose", "csr", "csc")),
    "add": ("coo", "loose", "csr"),
}


def _can(name: str, layout: str, sides: tuple[int, int, int]) -> bool:
    only = next((kept for one, kept in _ONLY.items() if name == one or name.startswith(f"{one}-")), tuple(_LAYOUTS))
    if layout == "bsr" and (any(one % 2 or not one for one in sides) or "two" in name or name == "mm-turned"):
        return False
    return layout in only


for _dtype in (torch.float32, torch.complex64):
    for _kind, _forms in (("answered", _SPARSE), ("derived", _DERIVED))[: 2 if _dtype == torch.float32 else 1]:
        add_table(
            cases,
            f"products-sparse-{_kind}-{str(_dtype)[6:]}",
            {
                f"{name}-{layout}-{sides}-{kind}": lambda x, form=form, layout=layout, sides=sides, kind=kind: _sparse(
                    form, _LAYOUTS[layout], sides, kind, x
                )
                for number, (name, form) in enumerate(_forms.items())
                for turn, layout in enumerate(_LAYOUTS)
                for place, (sides, kind) in enumerate(
                    itertools.product(((4, 4, 2), (3, 4, 2), (4, 0, 2), (0, 4, 2)), ("full", "nothing", "apart", "row"))
                )
                if _can(name, layout, sides)
                and not (layout == "bsr" and _kind == "derived")
                and not (name.startswith("reduced") and _dtype.is_complex)
                and (number + place + turn) % (7 if _dtype == torch.float32 else 29) == 0
                and not (0 in sides and kind != "full")
            },
            lambda d, dtype=_dtype: (d.integers(-4, 5, 64).to(dtype),),
            terms=16,
            deterministic=False,
            since="2.1",
        )
_EQUATIONS = (
    "ii->i;ii;iij->ij;ijj->i;iji->j;ij->ji;ij->;...i->...;i...->...i;...ii->...i;i...i->...;ij,jk;"
    "ij,jk->ki;ij,kj->ik;ij,ij->ij;ij,ij->;ij,i->j;i,j->ij;i,j->ji;i,i;ij,kl->ikjl;...ij,...jk->...ik;"
    "...ij,jk->...ik;i...,i...->...;...i,...i;b...i,b...i->b...;ii,ij->ij;ii,jj->ij;ij,jk,kl->il;"
    "ij,ik,il->jkl;a,b,c->cab;ij,j,jk->ik;ij,ji->;ij,jj->i;...,...->...;,ij->ij;i,->i;iJ,Jk->ik;"
    "i j , j k -> i k;bij,bjk->bik;bij,kj->bik;bij,bij->b;bhid,bhjd->bhij;bijk,bijk->jk;"
    "i...k,k...j->i...j;...k,jk;ab...,b...->a...;xyz,zyx->y;abc,cd,de->abe;ij,ij,ij->i"
).split(";")


def _of_equation(equation: str, ones: bool, x: torch.Tensor) -> Any:
    """Ask an equation of sides of 3, or of one side of 1 where the other operand has 3: it is broadcast."""
    operands = []
    for place, term in enumerate(equation.replace(" ", "").split("->")[0].split(",")):
        shape = [side for one in term.replace("...", ".") for side in ([2, 3] if one == "." else [3])]
        if ones and place == 0 and len(set(term)) == len(term.replace("...", ".")):
            shape = [1] * len(shape)
        operands.append(_cut(x, 5 * place, *shape))
    return [torch.einsum(equation, operands), derived(lambda *given: torch.einsum(equation, *given), *operands)]


add_table(
    cases,
    "products-einsum",
    {
        f"{equation}-{ones}": lambda x, equation=equation, ones=ones: _of_equation(equation, ones, x)
        for equation in _EQUATIONS
        for ones in (False, True)
    },
    lambda d: (d.normal(200),),
    terms=256,
    since="2.1",
)
