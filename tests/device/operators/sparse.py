"""Sparse tensors: of coordinates and of compressed rows; read, changed, computed with, brought elsewhere, derived."""

from __future__ import annotations

import copy
import pickle

import torch
import torch.nn.functional as F

from engine.description import Table
from engine.versions import is_at_least

t = Table()
# (shape, sides that are sparse, places): in any order, some places several times.
PLACES = {
    "alone": ((4, 6), ((3, 0, 3, 1, 0), (5, 2, 1, 4, 0))),
    "equal": ((4, 6), ((3, 0, 3, 1, 3, 0), (5, 2, 5, 4, 5, 2))),
    "one-place": ((4, 6), ((2, 2, 2), (3, 3, 3))),
    "ends": ((4, 6), ((3, 0), (5, 0))),
    "row": ((1, 6), ((0, 0, 0, 0), (4, 1, 4, 0))),
    "column": ((5, 1), ((4, 0, 4), (0, 0, 0))),
    "nothing": ((4, 6), ((), ())),
    "no-rows": ((0, 6), ((), ())),
    "no-columns": ((4, 0), ((), ())),
    "rows": ((4, 6), ((2, 0, 2, 3),)),
    "rows-nothing": ((4, 6), ((),)),
    "rows-no-columns": ((4, 0), ((2, 0, 2),)),
    "line": ((7,), ((6, 0, 6, 2),)),
    "deep": ((2, 3, 4), ((1, 0, 1, 0, 1), (2, 0, 2, 1, 0), (3, 0, 3, 2, 1))),
    "deep-rows": ((3, 2, 4), ((2, 0, 2),)),
    "deep-lines": ((3, 2, 4), ((2, 0, 2, 1), (1, 0, 1, 1))),
    "no-dimensions": ((), ()),
}
KINDS = (*PLACES, "coalesced", "rows-coalesced", "deep-coalesced", "stepped")
_LIKE = {"coalesced": "equal", "rows-coalesced": "rows", "deep-coalesced": "deep", "stepped": "equal"}


def _shape_of(kind):
    return PLACES[_LIKE.get(kind, kind)][0]


def _made(kind, numbers):
    """A sparse tensor of a kind, of the dtype and on the device of some numbers (72 are enough)."""
    shape, sides = PLACES[_LIKE.get(kind, kind)]
    count = len(sides[0]) if sides else 2
    places = torch.tensor(sides, dtype=torch.int64, device=numbers.device).reshape(len(sides), count)
    rest = shape[len(sides) :]
    step = 2 if kind == "stepped" else 1
    length = count * int(torch.Size(rest).numel())
    values = numbers[: length * step : step].reshape(count, *rest)
    if kind == "stepped":  # neither the places nor the values lie one after another
        places = places.t().contiguous().t()
    found = torch.sparse_coo_tensor(places, values, shape)
    return found.coalesce() if kind.endswith("coalesced") else found


def _dense(answer):
    """What is defined of an answer: of a sparse one its numbers, its form, and its order where it says so."""
    if isinstance(answer, (list, tuple)):
        return [_dense(one) for one in answer]
    if not isinstance(answer, torch.Tensor) or answer.layout == torch.strided:
        return answer
    if answer.layout != torch.sparse_coo:
        return [answer.to_dense(), str((answer.layout, tuple(answer.shape)))]
    is_in_order = not answer.is_coalesced() or _in_order(answer)
    return [answer.to_dense(), str((tuple(answer.shape), answer.sparse_dim(), answer.dense_dim(), is_in_order))]


def _in_order(one):
    """Whether the places of a tensor that is coalesced come in order, each of them once."""
    places = one._indices().t().tolist()
    return all(first < second for first, second in zip(places, places[1:]))


_DTYPES = (
    *(torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    *(torch.bool, torch.complex64),
)


def _brought(s):
    return [s.cpu().to(s.device), pickle.loads(pickle.dumps(s)), copy.deepcopy(s), copy.copy(s)]


# s is sparse, t another of its form; x is dense, of the same shape.
FORMS = {
    "dense": lambda s, t, x: s.to_dense(),
    "dense-again": lambda s, t, x: [s.to_dense(), s.to_dense() + s.to_dense()],
    "form": lambda s, t, x: str(
        (s.is_coalesced(), s._nnz(), s.sparse_dim(), s.dense_dim(), tuple(s.shape), s.is_sparse, s.numel(), s.ndim)
    ),
    "stored": lambda s, t, x: [s._indices(), s._values()],
    "coalesced": lambda s, t, x: [(y := s.coalesce()).indices(), y.values(), str((y._nnz(), y.is_coalesced()))],
    "coalesced-again": lambda s, t, x: s.coalesce().coalesce(),
    "from-dense": lambda s, t, x: [
        [(y := x.to_sparse(*sides)).indices(), y.values(), str((y.is_coalesced(), y._nnz())), y]
        for sides in ((), *((side,) for side in range(1, x.dim() + 1)))
    ],
    "back": lambda s, t, x: s.to_dense().to_sparse(),
    "add": lambda s, t, x: s + t,
    "add-itself": lambda s, t, x: s + s,
    "add_": lambda s, t, x: s.clone().add_(t),
    "add-dense": lambda s, t, x: x + s,
    "add-dense_": lambda s, t, x: x.clone().add_(s),
    "add-dense-alpha": lambda s, t, x: x.add(s, alpha=2),
    "sub": lambda s, t, x: [s - t, s.sub(t, alpha=2)],
    "sub-dense": lambda s, t, x: x - s,
    "mul": lambda s, t, x: s.coalesce() * t.coalesce(),
    "mul-dense": lambda s, t, x: s.coalesce() * x,
    "mul-number": lambda s, t, x: [s * 2, 3 * s.coalesce()],
    "neg": lambda s, t, x: -s,
    "sum": lambda s, t, x: [s.sum(), torch.sparse.sum(s)],
    "clone": lambda s, t, x: s.clone(),
    "zero_": lambda s, t, x: [(y := s.clone().zero_()), str((y._nnz(), s._nnz()))],
    "copy_": lambda s, t, x: [s.clone().copy_(t), t.copy_(s), torch.zeros_like(s).copy_(s)],
    "brought": lambda s, t, x: _brought(s),
    "float": lambda s, t, x: [s.float(), s.float().coalesce()],
    "int": lambda s, t, x: s.coalesce().int(),
    "bool": lambda s, t, x: s.coalesce().bool(),
    "unsqueeze": lambda s, t, x: [s.unsqueeze(0), s.unsqueeze(-1)],
    "cat": lambda s, t, x: [torch.cat([s, t], side) for side in range(x.dim())],
    "equal-numbers": lambda s, t, x: (s.to_dense() == s.coalesce().to_dense()).all(),
    "all-dtypes": lambda s, t, x: [s.to(dtype) for dtype in _DTYPES if dtype != torch.uint8],
    "from-dense-masked": lambda s, t, x: [(x * (x > 0)).to_sparse(), (x[..., :0]).to_sparse(), x[:0].to_sparse()],
    "transpose": lambda s, t, x: [s.transpose(0, 1), s.coalesce().transpose(0, -1), s.transpose(0, 0)],
    "t": lambda s, t, x: [s.t(), s.coalesce().t(), s.coalesce().t().coalesce()],
    "permute": lambda s, t, x: s.permute(*range(x.dim())[::-1]),
    "sum-sides": lambda s, t, x: [torch.sparse.sum(s, side) for side in range(-x.dim(), x.dim())],
    "sum-method": lambda s, t, x: [s.sum(side) for side in range(x.dim())],
    "sum-all": lambda s, t, x: torch.sparse.sum(s, list(range(x.dim()))),
    "sum-dtype": lambda s, t, x: [torch.sparse.sum(s, dtype=torch.float16), s.sum(dtype=torch.float16)],
    "index_select": lambda s, t, x: [
        s.index_select(side, torch.tensor([n - 1, 0, n - 1], device=x.device)) for side, n in enumerate(x.shape) if n
    ],
    "index_select-none": lambda s, t, x: [
        s.index_select(side, torch.tensor([], dtype=torch.int64, device=x.device)) for side in range(x.dim())
    ],
    "narrow_copy": lambda s, t, x: [
        s.narrow_copy(side, start, n - start - end)
        for side, n in enumerate(x.shape)
        for start, end in ((0, 0), (1, 0), (0, 1), (n, 0))
        if n - start - end >= 0
    ],
    "select": lambda s, t, x: [
        s.select(side, place) for side, n in enumerate(x.shape) for place in (0, n - 1, -n) if n
    ],
    "mask": lambda s, t, x: x.sparse_mask(s.coalesce()),
    "mask-sparse": lambda s, t, x: t.sparse_mask(s.coalesce()),
    "div": lambda s, t, x: [s.coalesce() / 4, s.coalesce().div(2, rounding_mode="floor")],
    "functions": lambda s, t, x: [
        getattr(s.coalesce(), name)()
        for name in ("abs", "sign", "floor", "ceil", "trunc", "round", "sin", "tanh", "asinh", "expm1", "relu", "isnan")
    ],
    "in-place": lambda s, t, x: [s.clone().mul_(2), s.coalesce().neg_(), s.coalesce().div_(2), s.clone().sub_(s)],
    "out": lambda s, t, x: [
        torch.add(s, t, out=torch.zeros_like(s)),
        torch.mul(s.coalesce(), 3, out=torch.zeros_like(s)),
    ],
    "alike": lambda s, t, x: [torch.zeros_like(s), torch.empty_like(s), torch.zeros_like(s, dtype=torch.int64)],
    "resized": lambda s, t, x: [
        s.clone().sparse_resize_([n + 2 for n in s.shape], s.sparse_dim(), s.dense_dim())
        if not s.dense_dim()
        else s.clone().sparse_resize_([s.shape[0] + 2, *s.shape[1:]], s.sparse_dim(), s.dense_dim()),
        s.clone().sparse_resize_and_clear_((3, 5), 2, 0),
        s.clone().sparse_resize_and_clear_((3, 5), 1, 1),
        s.clone().resize_as_(t),
    ],
    "mm": lambda s, t, x: [s @ x.mT, torch.sparse.mm(s, x.mT), torch.mm(s.coalesce(), x.mT.contiguous())],
    "dense-mm": lambda s, t, x: [x.mT @ s, torch.mm(x.mT, s.coalesce())],
    "mv": lambda s, t, x: [torch.mv(s, x[0]), s @ x[-1]],
    "addmm": lambda s, t, x: [
        torch.addmm(x @ x.mT, s, x.mT, beta=beta, alpha=alpha) for beta, alpha in ((1, 1), (0, 2), (2, 0), (0.5, -1))
    ],
    "sparse-addmm": lambda s, t, x: torch.sparse.addmm(x @ x.mT, s.coalesce(), x.mT, beta=0.5, alpha=2),
    "mm-two": lambda s, t, x: torch.sparse.mm(s.coalesce(), t.t().coalesce()),
    "bmm": lambda s, t, x: [] if x.is_complex() else torch.bmm(s, x.mT),  # CUDA has it of real numbers alone
    "softmax": lambda s, t, x: (
        [torch.sparse.softmax(s.coalesce(), side) for side in range(x.dim())] + [torch.sparse.log_softmax(s, 0)]
    ),
    "norm": lambda s, t, x: [s.coalesce().norm(), torch.norm(s.coalesce(), 1)],
    "any": lambda s, t, x: [s.coalesce().any()],
    "ranked": lambda s, t, x: [s.unsqueeze(0).transpose(0, 1), s.coalesce().unsqueeze(-1).select(-1, 0)],
    "flattened": lambda s, t, x: [s.to_dense().flatten(), s.coalesce().values().flatten()],
    "values-changed": lambda s, t, x: [(y := s.coalesce().clone()).values().mul_(2), y],
    "stacked": lambda s, t, x: torch.stack([s, t]),
    "rows": lambda s, t, x: list(s),
    "pow": lambda s, t, x: [s.coalesce().pow(2), s.coalesce() ** 3],
    "numbers-nan": lambda s, t, x: torch.nan_to_num(s.coalesce()),
}


def _coordinates(numbers, kind, form):
    x = numbers[8 : 8 + int(torch.Size(_shape_of(kind)).numel())].reshape(_shape_of(kind))
    return FORMS[form](_made(kind, numbers), _made(kind, numbers.flip(0)), x)


BLOCKS = {"csr": None, "csc": None, "bsr": (2, 3), "bsc": (2, 3)}


def _members(y):
    if y.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [y.crow_indices(), y.col_indices(), y.values()]
    return [y.ccol_indices(), y.row_indices(), y.values()]


def _built(layout, x, dtype=torch.int64):
    """A tensor of (4, 6) by its factory: a line without entries, one with several."""
    block = BLOCKS[layout]
    places = {"csr": (0, 2, 2, 3, 5), "csc": (0, 1, 1, 3, 3, 4, 5), "bsr": (0, 1, 3), "bsc": (0, 2, 3)}[layout]
    others = {"csr": (1, 5, 0, 2, 3), "csc": (2, 0, 3, 1, 3), "bsr": (1, 0, 1), "bsc": (0, 1, 0)}[layout]
    values = x.flatten()[:5] if block is None else x.flatten()[:18].reshape(3, *block)
    made = getattr(torch, f"sparse_{layout}_tensor")
    return made(
        torch.tensor(places, dtype=dtype, device=x.device), torch.tensor(others, dtype=dtype, device=x.device), values,
        (4, 6),
    )  # fmt: skip


# y is compressed, of (4, 6); x is dense, of the same shape.
COMPRESSED = {
    "dense": lambda y, x: y.to_dense(),
    "members": lambda y, x: _members(y),
    "form": lambda y, x: str((y.layout, tuple(y.shape), y._nnz(), y.dense_dim(), y.sparse_dim(), y.is_sparse_csr)),
    "coordinates": lambda y, x: y.to_sparse(),
    "coordinates-members": lambda y, x: [(s := y.to_sparse()).indices(), s.values(), str(s.is_coalesced())],
    "brought": lambda y, x: [y.cpu().to(y.device), y.clone(), y.detach()],
    "pickled": lambda y, x: pickle.loads(pickle.dumps(y)),
    "others": lambda y, x: [
        y.to_sparse_csr(),
        y.to_sparse_csc(),
        y.to_sparse_bsr((2, 2)),
        y.to_sparse_bsc((1, 3)),
    ],
    "dtypes": lambda y, x: [y.float(), y.half(), y.int(), y.to(torch.complex64)],
    "turned": lambda y, x: [y.t(), y.transpose(0, 1), y.mT],
    "mm": lambda y, x: [y @ x.mT, torch.mm(y, x.mT.contiguous()), torch.sparse.mm(y, x.mT)],
    "dense-mm": lambda y, x: x.mT @ y,
    "mv": lambda y, x: [y @ x[0], torch.mv(y, x.mT[:, 1])],
    "addmm": lambda y, x: [torch.addmm(x @ x.mT, y, x.mT, beta=b, alpha=a) for b, a in ((1, 1), (0, 2), (0.5, -1))],
    "addmv": lambda y, x: torch.addmv(x[:, 0], y, x[0], beta=0.5, alpha=2),
    "mm-two": lambda y, x: y @ y.t(),
    "add": lambda y, x: [y + y, y.add(y, alpha=2)],
    "add-dense": lambda y, x: [x + y, x.add(y, alpha=3)],
    "mul": lambda y, x: [y * 2, 3 * y],
    "mul-dense": lambda y, x: y * x,
    "neg": lambda y, x: -y,
    "mul-two": lambda y, x: y * y,
    "sum": lambda y, x: y.sum(),
    "sum-sides": lambda y, x: [y.sum(0, keepdim=True), y.sum(1, keepdim=True)],
    "functions": lambda y, x: [getattr(y, name)() for name in ("abs", "sin", "sign", "neg", "floor", "relu", "tanh")],
    "in-place": lambda y, x: [y.clone().mul_(3), y.clone().zero_(), y.clone().neg_(), y.clone().abs_()],
    "values": lambda y, x: [(z := y.clone()).values().mul_(2), z],
    "copy_": lambda y, x: y.clone().copy_(y * 2),
    "alike": lambda y, x: torch.empty_like(y).copy_(y),
    "select": lambda y, x: [y.select(0, 1), y.select(1, -1), y[2]],
    "mask": lambda y, x: x.sparse_mask(y),
}
FROM = {
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 3)),
    "bsr-one": lambda x: x.to_sparse_bsr((1, 1)),
    "bsc": lambda x: x.to_sparse_bsc((4, 2)),
    "layout": lambda x: x.to_sparse(layout=torch.sparse_csr),
    "layout-blocks": lambda x: x.to_sparse(layout=torch.sparse_bsr, blocksize=(2, 2)),
    "dense-sides": lambda x: x.unsqueeze(-1).expand(*x.shape, 2).to_sparse_csr(dense_dim=1),
    "batch": lambda x: torch.stack([x, x * 2]).to_sparse_csr(),
    "nothing": lambda x: (x * 0).to_sparse_csr(),
    "nothing-blocks": lambda x: (x * 0).to_sparse_bsr((2, 3)),
    "no-rows": lambda x: x[:0].to_sparse_csr(),
    "no-columns": lambda x: x[:, :0].to_sparse_csr(),
    "row": lambda x: x[1:2].to_sparse_csr(),
    "column": lambda x: x[:, 4:5].to_sparse_csc(),
    "turned": lambda x: x.t().to_sparse_csr(),
}


WAYS = {
    "there-and-back": lambda x, w, s: x.to_sparse().to_dense() * w,
    "rows": lambda x, w, s: x.to_sparse(1).to_dense() * w,
    "coalesced": lambda x, w, s: x.to_sparse().coalesce().values(),
    "sum": lambda x, w, s: torch.sparse.sum(x.to_sparse(), 0).to_dense(),
    "number": lambda x, w, s: (x.to_sparse() * 3).to_dense() * w,
    "two": lambda x, w, s: (x.to_sparse() + w.to_sparse()).to_dense() * w,
    "add": lambda x, w, s: (x + w.to_sparse()) * w,
    "mm": lambda x, w, s: torch.sparse.mm(x.to_sparse(), w.mT),
    "mm-fixed": lambda x, w, s: torch.sparse.mm(s.detach(), w.mT) * 2 + x.sum(),
    "addmm": lambda x, w, s: torch.sparse.addmm(w @ w.mT, x.to_sparse(), w.mT, beta=0.5, alpha=2),
    "mask": lambda x, w, s: (x * w).sparse_mask(s.detach().coalesce()).to_dense(),
    "softmax": lambda x, w, s: torch.sparse.softmax(x.to_sparse(), 1).to_dense() * w,
    "turned": lambda x, w, s: x.to_sparse().t().to_dense() * w.mT,
    "csr": lambda x, w, s: x.to_sparse_csr().to_dense() * w,
    "csr-mm": lambda x, w, s: x.to_sparse_csr() @ w.mT,
}


def _embedded(table, scale, mode, padding):
    """The sparse gradient of an embedding, and the table after a step with it."""
    index = torch.tensor([[1, 4, 1], [0, 4, 4]], device=table.device)
    start = table.detach().clone().requires_grad_()
    options = {} if padding is None else {"padding_idx": padding}
    if mode is None:
        found = (F.embedding(index, start, sparse=True, **options) * scale).sum()
    else:
        found = (F.embedding_bag(index, start, mode=mode, sparse=True, **options) * scale[:, 0]).sum()
    found.backward()
    gradient = _dense(start.grad)
    torch.optim.SGD([start], lr=0.5).step()
    torch.optim.SparseAdam([start], lr=0.25, eps=1e-3).step()
    return [gradient, start.detach()]


# Which of their steps autocast narrows depends on what it has kept of the call before.
SPARSE = {
    "values": ("plain", "zero"),
    "terms": 64,
    "floor": 1.0,
    "finish": _dense,
    "layouts_of": (0,),
    "without": ("autocast",),
}
DERIVED = {**SPARSE, "dtypes": "s", "forms": ("call", "grad"), "sizes": {"main": (4, 6)}}
if is_at_least("2.8"):
    t.add(
        "sparse",
        act=_coordinates,
        _kind=tuple(KINDS),
        _form=tuple(FORMS),
        dtypes="s",
        forms=("call",),
        sizes={"main": (72,)},
        **SPARSE,
    )
    t.add(
        "sparse_made",
        act=lambda x, kind: _made(kind, x).to_dense(),
        _kind=tuple(KINDS),
        dtypes="fl",
        forms=("call", "grad"),
        sizes={"main": (72,)},
        **SPARSE,
    )
    t.add(
        "sparse_derived",
        "any",
        "any",
        act=lambda x, w, way: WAYS[way](x, w, _made("equal", x.flatten())),
        _way=tuple(WAYS),
        **DERIVED,
    )
    t.add(
        "sparse_embedding",
        lambda c: c.draw("any", (c.shape[0], c.shape[1])),
        lambda c: c.draw("any", (2, 3, c.shape[1])),
        act=_embedded,
        _mode=(None, "sum", "mean"),
        _padding=(None, 4),
        dtypes="s",
        forms=("call",),
        sizes={"main": (6, 3), "long": (1031, 4), "column": (33, 1)},
        **SPARSE,
    )
if is_at_least("2.10"):
    t.add(
        "sparse_compressed",
        act=lambda x, layout, form: COMPRESSED[form](_built(layout, x), x),
        _layout=tuple(BLOCKS),
        _form=tuple(COMPRESSED),
        **{**DERIVED, "dtypes": "sl", "forms": ("call",)},
    )
    t.add(
        "sparse_compressed_made",
        act=lambda x, form: _opened(FROM[form](x * (x.abs() > 1))),
        _form=tuple(FROM),
        **DERIVED,
    )
    t.add(
        "sparse_compressed_built",
        act=lambda x, layout, dtype: _opened(_built(layout, x, dtype)),
        _layout=tuple(BLOCKS),
        _dtype=(torch.int64, torch.int32),
        **DERIVED,
    )


def _opened(y):
    return [_members(y), y, y.to_sparse()]
