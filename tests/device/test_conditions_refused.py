"""What the CPU refuses, a device refuses too: an answer to a call that has none is made up, or out of other memory."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.states import Refused

cases = Cases("conditions")
_A_CALL_WITHOUT_AN_ANSWER = "no call that this torch's CPU refuses"


def test_case(case: Any, ask: Any) -> None:
    ask(case)


def _refuses(form: Any, run: Any, bases: Any) -> bool:
    """Say whether a call raises, at once or when its answer is read."""
    copies = run.copy(bases)
    with run:
        try:
            answer = form(*run.bring(copies))
            for one in answer if isinstance(answer, (tuple, list)) else [answer]:
                one.detach().cpu()
        except NameError:  # a mistake in the case itself, no refusal
            raise
        except Exception:
            return True
    return False


def _asked(forms: dict[str, Any], make: Any, bench: Any) -> None:
    bases = make(bench.draw("refused"))
    undefined = {name: form for name, form in forms.items() if _refuses(form, bench.same(), bases)}
    if not undefined:
        raise Refused(_A_CALL_WITHOUT_AN_ANSWER)
    answered = [name for name, form in undefined.items() if not _refuses(form, bench.device_run(), bases)]
    bench.synchronise()
    assert not answered, f"an answer to what the CPU refuses: {', '.join(answered)}"


def _add(name: str, make: Any, forms: dict[str, Any], **fields: Any) -> None:
    cases.add(
        f"condition-refused-{name}", lambda bench: _asked(forms, make, bench), check=True, may_be_missing=True, **fields
    )


def _table(d: Any) -> Any:
    return d.normal(5, 7), d.normal(7, 5), d.integers(0, 5, 6)


# Numbers that name no dimension, no place and no part.
_add(
    "dimensions",
    _table,
    {
        name: lambda x, y, i, name=name, dim=dim, more=more: getattr(torch, name)(x, *more, dim)
        for name, *more in (
            *(("sum",), ("mean",), ("prod",), ("amax",), ("argmax",), ("var",), ("cumsum",), ("cumprod",), ("sort",)),
            *(("softmax",), ("logsumexp",), ("any",), ("all",), ("median",), ("unbind",), ("diff", 1), ("cummax",)),
            *(("topk", 2), ("kthvalue", 2), ("flip",), ("roll", 1), ("chunk", 2), ("split", 2), ("argsort",)),
        )
        for dim in (2,)
    },
)
_add(
    "counts",
    _table,
    {
        "topk": lambda x, y, i: x.topk(8),
        "topk-negative": lambda x, y, i: x.topk(-1),
        "kthvalue": lambda x, y, i: x.kthvalue(8),
        "kthvalue-zero": lambda x, y, i: x.kthvalue(0),
        "narrow": lambda x, y, i: x.narrow(1, 5, 3),
        "select": lambda x, y, i: x.select(0, 5),
        "split": lambda x, y, i: x.split([2, 2], 0),
        "view": lambda x, y, i: x.view(4, 9),
        "unflatten": lambda x, y, i: x.unflatten(1, (2, 3)),
        "expand": lambda x, y, i: x.expand(3, 7),
        "repeat": lambda x, y, i: x.repeat(2),
        "as_strided": lambda x, y, i: x.as_strided((6, 7), (7, 1)),
        "unfold": lambda x, y, i: x.unfold(1, 8, 1),
        "roll": lambda x, y, i: x.roll((1, 2), (0,)),
        "cross": lambda x, y, i: torch.linalg.cross(x, x),
        "tril": lambda x, y, i: x[0].tril(),
        "diagonal": lambda x, y, i: x.diagonal(0, 1, 1),
        "multinomial": lambda x, y, i: torch.multinomial(x.abs(), 8),
        "random": lambda x, y, i: x.random_(5, 5),
        "normal": lambda x, y, i: x.normal_(0, -1),
        "bernoulli": lambda x, y, i: x.bernoulli_(2.0),
        "uniform": lambda x, y, i: x.uniform_(2, 1),
        "dropout": lambda x, y, i: F.dropout(x, 2.0),
        "arange": lambda x, y, i: torch.arange(3, 9, -1, device=x.device),
        "linspace": lambda x, y, i: torch.linspace(0, 1, -1, device=x.device),
    },
)
# Operands whose sizes do not go together.
_add(
    "sizes",
    _table,
    {
        "add": lambda x, y, i: x + y,
        "add_": lambda x, y, i: x[0].add_(x),
        "where": lambda x, y, i: torch.where(x > 0, x, y),
        "lerp": lambda x, y, i: torch.lerp(x, y, 0.5),
        "mm": lambda x, y, i: torch.mm(x, x),
        "matmul": lambda x, y, i: x @ x,
        "bmm": lambda x, y, i: torch.bmm(x[None], y[None].expand(2, 7, 5)),
        "addmm": lambda x, y, i: torch.addmm(x, x, y),
        "mv": lambda x, y, i: torch.mv(x, x[:, 0]),
        "dot": lambda x, y, i: torch.dot(x[0], y[0]),
        "linear": lambda x, y, i: F.linear(x, y),
        "cat": lambda x, y, i: torch.cat([x, y]),
        "stack": lambda x, y, i: torch.stack([x, y]),
        "copy": lambda x, y, i: x.copy_(y),
        "masked_fill": lambda x, y, i: x.masked_fill(y > 0, 1),
        "index": lambda x, y, i: x[y > 0],
        "index_add": lambda x, y, i: x.index_add(0, i, x),
        "index_copy": lambda x, y, i: x.index_copy(0, i, x),
        "gather": lambda x, y, i: x.gather(0, torch.zeros(2, 9, dtype=torch.int64, device=x.device)),
        "scatter": lambda x, y, i: x.scatter(0, torch.zeros(6, 7, dtype=torch.int64, device=x.device), x),
        "mse": lambda x, y, i: F.mse_loss(x, y),
        "nll": lambda x, y, i: F.nll_loss(x, i),
        "bce": lambda x, y, i: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
        "layer_norm": lambda x, y, i: F.layer_norm(x, (5,)),
        "group_norm": lambda x, y, i: F.group_norm(x, 2),
        "batch_norm": lambda x, y, i: F.batch_norm(x[:1], None, None, training=True),
        "attention": lambda x, y, i: F.scaled_dot_product_attention(x[None], x[None, :, :6], x[None]),
        "inverse": lambda x, y, i: torch.linalg.inv(x),
        "solve": lambda x, y, i: torch.linalg.solve(x @ y, y),
        "cholesky": lambda x, y, i: torch.linalg.cholesky(-(x @ x.mT)),
        "singular": lambda x, y, i: torch.linalg.inv(x[:3, :3] * 0),
        "out": lambda x, y, i: torch.add(i, 1, out=torch.zeros(6, dtype=torch.bool, device=x.device)),
        "inplace": lambda x, y, i: i.add_(1.5),
        "dtypes": lambda x, y, i: torch.mm(x, y.half()),
        "bitwise": lambda x, y, i: x & x,
    },
)

# Matrices that have no inverse, and others that are not what a function asks for.
_add(
    "matrices",
    lambda d: (
        torch.eye(4).index_fill(0, torch.tensor([2]), 0.0),
        d.normal(4, 2),
    ),
    {
        "inv": lambda x, y: torch.linalg.inv(x),
        "inverse": lambda x, y: x.inverse(),
        "inv-batch": lambda x, y: torch.linalg.inv(torch.stack([x + torch.eye(4, device=x.device), x])),
        "solve": lambda x, y: torch.linalg.solve(x, y),
        "solve-left": lambda x, y: torch.linalg.solve(x, y.mT, left=False),
        "lu_factor": lambda x, y: torch.linalg.lu_factor(x),
        "tensorinv": lambda x, y: torch.linalg.tensorinv(x.reshape(2, 2, 4), ind=2),
        "inv_ex": lambda x, y: torch.linalg.inv_ex(x, check_errors=True),
        "solve_ex": lambda x, y: torch.linalg.solve_ex(x, y, check_errors=True),
        "lu_factor_ex": lambda x, y: torch.linalg.lu_factor_ex(x, check_errors=True),
        "cholesky": lambda x, y: torch.linalg.cholesky(-x),
        "cholesky-old": lambda x, y: torch.cholesky(x - 2 * torch.eye(4, device=x.device)),
        "cholesky-batch": lambda x, y: torch.linalg.cholesky(torch.stack([x + torch.eye(4, device=x.device), -x])),
        "cholesky_ex": lambda x, y: torch.linalg.cholesky_ex(-x, check_errors=True),
        "power": lambda x, y: torch.linalg.matrix_power(x, -1),
        "det-side": lambda x, y: torch.linalg.det(y),
        "eigh-side": lambda x, y: torch.linalg.eigh(y),
        "integers": lambda x, y: torch.linalg.inv(x.long()),
    },
)
# Operands of another rank than the function's.
_add(
    "ranks",
    lambda d: (d.normal(3), d.normal(3, 3), d.normal(3, 3, 3)),
    {
        "dot": lambda v, m, c: torch.dot(m, m),
        "dot-column": lambda v, m, c: torch.dot(v, m[:, :1]),
        "vdot": lambda v, m, c: torch.vdot(v, m),
        "mv": lambda v, m, c: torch.mv(m, m),
        "mv-vector": lambda v, m, c: torch.mv(v, v),
        "mm": lambda v, m, c: torch.mm(m, c),
        "mm-vector": lambda v, m, c: torch.mm(m, v),
        "bmm": lambda v, m, c: torch.bmm(c, m),
        "outer": lambda v, m, c: torch.outer(m, v),
        "addmm": lambda v, m, c: torch.addmm(m, m, v),
        "addmv": lambda v, m, c: torch.addmv(m, m, m),
        "addr": lambda v, m, c: torch.addr(m, m, v),
        "baddbmm": lambda v, m, c: torch.baddbmm(c, m, m),
        "matmul": lambda v, m, c: v[0] @ v[1],
        "t": lambda v, m, c: c.t(),
        "tril": lambda v, m, c: torch.tril(v),
        "diag": lambda v, m, c: torch.diag(c),
        "trace": lambda v, m, c: torch.trace(v),
        "inverse": lambda v, m, c: torch.linalg.inv(v),
        "det": lambda v, m, c: torch.linalg.det(v),
        "cholesky": lambda v, m, c: torch.linalg.cholesky(v),
        "norm": lambda v, m, c: torch.linalg.matrix_norm(v),
        "linear": lambda v, m, c: F.linear(v, c),
        "bilinear": lambda v, m, c: F.bilinear(m, m, m),
        "embedding": lambda v, m, c: F.embedding(v.long(), v),
        "bag": lambda v, m, c: F.embedding_bag(c.long() * 0, m),
        "conv1d": lambda v, m, c: F.conv1d(m[0], c),
        "conv2d": lambda v, m, c: F.conv2d(c, c),
        "conv3d": lambda v, m, c: F.conv3d(c, c),
        "max_pool2d": lambda v, m, c: F.max_pool2d(m, 2),
        "avg_pool2d": lambda v, m, c: F.avg_pool2d(m, 2),
        "pad": lambda v, m, c: F.pad(m, (1, 1, 1, 1), mode="reflect"),
        "pads": lambda v, m, c: F.pad(v, (1, 1, 1, 1)),
        "interpolate": lambda v, m, c: F.interpolate(c, scale_factor=2, mode="bilinear"),
        "grid": lambda v, m, c: F.grid_sample(c, c),
        "batch_norm": lambda v, m, c: F.batch_norm(v, None, None, training=True),
        "layer_norm": lambda v, m, c: F.layer_norm(v, (3, 3)),
        "glu": lambda v, m, c: F.glu(m),
        "cross_entropy": lambda v, m, c: F.cross_entropy(m, m.long()),
        "nll": lambda v, m, c: F.nll_loss(v, m.long()),
        "fold": lambda v, m, c: F.fold(v, (2, 2), 1),
        "pixel": lambda v, m, c: F.pixel_shuffle(m, 1),
        "gather": lambda v, m, c: m.gather(0, v.long() * 0),
        "scatter": lambda v, m, c: m.scatter(0, v.long() * 0, 1.0),
        "index_add": lambda v, m, c: m.index_add(0, m.long() * 0, m),
        "index_select": lambda v, m, c: m.index_select(0, m.long() * 0),
        "places": lambda v, m, c: m[v.long() * 0, v.long() * 0, v.long() * 0],
        "searchsorted": lambda v, m, c: torch.searchsorted(c, m),
        "permute": lambda v, m, c: c.permute(0, 1),
        "transpose": lambda v, m, c: v.transpose(0, 1),
        "bincount": lambda v, m, c: torch.bincount(m.long().abs()),
        "multinomial": lambda v, m, c: torch.multinomial(c.abs(), 1),
        "cdist": lambda v, m, c: torch.cdist(v, m),
        "cross": lambda v, m, c: torch.linalg.cross(v, m[:2]),
        "kron": lambda v, m, c: torch.einsum("ij,jk", c, m),
        "stack": lambda v, m, c: torch.stack([v, m]),
        "cat": lambda v, m, c: torch.cat([v, m]),
    },
)
# Operands of another kind: floats where places stand, integers where numbers are averaged, bools that are subtracted.
_add(
    "kinds",
    _table,
    {
        "cross_entropy": lambda x, y, i: F.cross_entropy(x[:, :5], i[:5].to(x.dtype)),
        "nll": lambda x, y, i: F.nll_loss(x[:, :5], i[:5].to(x.dtype)),
        "cross_entropy-chances": lambda x, y, i: F.cross_entropy(x, x.long()),
        "embedding": lambda x, y, i: F.embedding(x, y),
        "one_hot": lambda x, y, i: F.one_hot(x),
        "index": lambda x, y, i: x[y[0, :2]],
        "index_select": lambda x, y, i: x.index_select(0, x[0]),
        "gather": lambda x, y, i: x.gather(0, x),
        "scatter": lambda x, y, i: x.scatter(0, x, 1.0),
        "scatter-source": lambda x, y, i: x.scatter(0, i[:, None].expand(6, 7)[:5] % 5, x.half()),
        "index_add": lambda x, y, i: x.index_add(0, i[:5] % 5, x.double().half()),
        "take": lambda x, y, i: x.take(x),
        "mean": lambda x, y, i: i.mean(),
        "var": lambda x, y, i: i.var(),
        "norm": lambda x, y, i: torch.linalg.vector_norm(i),
        "conv": lambda x, y, i: F.conv1d(x[None], x[:, :, None].half()),
        "linear": lambda x, y, i: F.linear(x, x.half()),
        "bmm": lambda x, y, i: torch.bmm(x[None], y[None].half()),
        "addmm": lambda x, y, i: torch.addmm(x.half(), x, y @ x),
        "attention": lambda x, y, i: F.scaled_dot_product_attention(x[None], x[None].half(), x[None]),
        "subtract": lambda x, y, i: (x > 0) - (x < 0),
        "negative": lambda x, y, i: -(x > 0),
        "lerp": lambda x, y, i: torch.lerp(x, x.half(), 0.5),
        "masked_fill": lambda x, y, i: x.masked_fill(x, 1.0),
        "where": lambda x, y, i: torch.where(x, x, x),
        "masked_select": lambda x, y, i: x.masked_select(x),
        "complex": lambda x, y, i: torch.complex(x, x.half()),
        "view_as_complex": lambda x, y, i: torch.view_as_complex(x),
        "clamp-complex": lambda x, y, i: torch.complex(x, x).clamp(0, 1),
        "floor-complex": lambda x, y, i: torch.complex(x, x).floor(),
        "into-integers": lambda x, y, i: i.add_(x[0, :6]),
        "into-bools": lambda x, y, i: (x > 0).add_(i[0]),
        "divided-into-integers": lambda x, y, i: i.div_(2),
        "gradient": lambda x, y, i: i.requires_grad_(),
    },
)
# Written to where several places are one, or read and written at once.
_add(
    "overlapping",
    _table,
    {
        "expanded-add": lambda x, y, i: x[:1].expand(5, 7).add_(1),
        "expanded-mul": lambda x, y, i: x[:, :1].expand(5, 7).mul_(x),
        "expanded-scatter": lambda x, y, i: x[:1].expand(5, 7).scatter_(0, i[:, None] % 5, 1.0),
        "expanded-out": lambda x, y, i: torch.add(x, 1, out=x[:1].expand(5, 7)),
        "shifted-add": lambda x, y, i: x.view(-1)[1:].add_(x.view(-1)[:-1]),
        "shifted-copy": lambda x, y, i: torch.mul(x.view(-1)[:-1], 2, out=x.view(-1)[1:]),
        "shifted-sum": lambda x, y, i: torch.cat([x[:2], x[2:3]], out=x[1:4]),
        "view-leaf": lambda x, y, i: x.requires_grad_().view(-1).add_(1),
        "leaf": lambda x, y, i: x.requires_grad_().mul_(2),
        "changed-since": lambda x, y, i: _changed_since(x),
        "twice": lambda x, y, i: _twice(x),
        "no-scalar": lambda x, y, i: x.requires_grad_().mul(2).backward(),
    },
)


def _changed_since(x: Any) -> Any:
    start = x.requires_grad_()
    y = start.exp()
    y.add_(1)
    y.sum().backward()
    return start.grad


def _twice(x: Any) -> Any:
    start = x.requires_grad_()
    y = start.exp().sum()
    y.backward()
    y.backward()
    return start.grad


def _layers(d: Any) -> Any:
    return d.normal(2, 4, 5, 6), d.normal(4, 4, 3, 3)


# Arguments of layers.
_LAYERS: dict[str, Any] = {
    "conv-channels": lambda x, w: F.conv2d(x[:, :3], w),
    "conv-kernel": lambda x, w: F.conv2d(x[..., :2], w),
    "conv-stride": lambda x, w: F.conv2d(x, w, stride=0),
    "conv-padding": lambda x, w: F.conv2d(x, w, padding=-1),
    "conv-dilation": lambda x, w: F.conv2d(x, w, dilation=0),
    "conv-groups": lambda x, w: F.conv2d(x, w, groups=3),
    "conv-bias": lambda x, w: F.conv2d(x, w, w[0, 0, 0]),
    "turned-channels": lambda x, w: F.conv_transpose2d(x[:, :3], w),
    "pool-kernel": lambda x, w: F.max_pool2d(x, 7),
    "pool-padding": lambda x, w: F.max_pool2d(x, 2, padding=2),
    "pool-stride": lambda x, w: F.avg_pool2d(x, 2, stride=-1),
    "pool-mean-padding": lambda x, w: F.avg_pool2d(x, 2, padding=2),
    "pool-divisor": lambda x, w: F.avg_pool2d(x, 2, divisor_override=0),
    "interpolate": lambda x, w: F.interpolate(x, (0, 3)),
    "reflect": lambda x, w: F.pad(x, (6, 0), mode="reflect"),
    "circular": lambda x, w: F.pad(x, (7, 0), mode="circular"),
    "cut": lambda x, w: F.pad(x, (-7, 0)),
    "fold": lambda x, w: F.fold(x[:, :, 0], (3, 3), 2),
    "unfold": lambda x, w: F.unfold(x, 7),
    "shuffle": lambda x, w: F.pixel_shuffle(x[:, :3], 2),
    "unshuffle": lambda x, w: F.pixel_unshuffle(x, 2),
    "glu": lambda x, w: F.glu(x, 2),
    "grid": lambda x, w: F.grid_sample(x, x[:1, :2, :, :2], align_corners=False),
    "norm-weights": lambda x, w: F.batch_norm(x, None, None, w[0, 0, 0], training=True),
}
for _rank, _turned in ((1, F.conv_transpose1d), (2, F.conv_transpose2d), (3, F.conv_transpose3d)):
    for _name, _more in (("stride", {"stride": 2}), ("dilation", {"dilation": 2}), ("neither", {})):
        _LAYERS[f"turned-{_rank}-{_name}"] = lambda x, w, rank=_rank, turned=_turned, more=_more: turned(
            x.reshape(2, 4, *(30,), *(1,) * (rank - 1)),
            w.reshape(4, 4, 9, *(1,) * (rank - 1)),
            output_padding=(2, *(0,) * (rank - 1)),
            **more,
        )
_add("layers", _layers, _LAYERS)

# Indices beyond a table: below its beginning, just past its end, far past it. Each reads or writes what is not its own.
_TABLE_ROWS = 5
_INDEXED: dict[str, Any] = {
    "index_select": lambda x, i: x.index_select(0, i),
    "index": lambda x, i: x[i],
    "index-two": lambda x, i: x[i, i * 0],
    "index_put": lambda x, i: x.index_put((i,), x[:2]),
    "setitem": lambda x, i: (x.__setitem__(i, 0), x)[1],
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "take": lambda x, i: x.take(i * 7),
    "put": lambda x, i: x.put_(i * 7, x[0, :2]),
    "scatter": lambda x, i: x.scatter(0, i[:, None], 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None], x),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i[:, None], x, "amax"),
    "index_add": lambda x, i: x.index_add(0, i, x[:2]),
    "index_copy": lambda x, i: x.index_copy(0, i, x[:2]),
    "index_fill": lambda x, i: x.index_fill(0, i, 7.0),
    "index_fill_": lambda x, i: x[1:4].index_fill_(0, i, 7.0),
    "embedding": lambda x, i: F.embedding(i, x),
    "bag": lambda x, i: F.embedding_bag(i[None], x, mode="sum"),
    "bag-mean": lambda x, i: F.embedding_bag(i, x, i * 0, mode="mean"),
    "bag-max": lambda x, i: F.embedding_bag(i[None], x, mode="max"),
    "nll": lambda x, i: F.nll_loss(x[:2, :5], i, ignore_index=-100),
    "cross_entropy": lambda x, i: F.cross_entropy(x[:2, :5], i),
    "one_hot": lambda x, i: F.one_hot(i, 5),
    "bincount": lambda x, i: torch.bincount(i - 9),
    "masked_scatter": lambda x, i: x.masked_scatter(x > -99, x[0]),
    "unpool": lambda x, i: F.max_unpool2d(x[None, None, :1, :2], 9 * i[None, None, None], 2),
    "unpool-3d": lambda x, i: F.max_unpool3d(x[None, None, None, :1, :2], 19 * i[None, None, None, None], 2),
    "unpool-1d": lambda x, i: F.max_unpool1d(x[None, :1, :2], 5 * i[None, None], 2),
}
# What is found wrong on the device stops CUDA for the whole process.
for _name, _wrong in (("below", (-_TABLE_ROWS - 1, 1)), ("past", (_TABLE_ROWS, 1)), ("far", (1, _TABLE_ROWS + 9))):
    _add(
        f"indices-{_name}",
        lambda d, wrong=_wrong: (d.normal(_TABLE_ROWS, 7), torch.tensor(wrong)),
        _INDEXED,
        devices=("mps", "cpu"),
    )
