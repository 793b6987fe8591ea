"""Ways to call what is right otherwise: many dimensions, in inference, deterministic, masked, printed, by equation."""

from __future__ import annotations

import copy
import re
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import backward, leaf
from device_suite.limits import add_table, assigned

cases = Cases("conditions")


def test_case(case: Any, ask: Any) -> None:
    ask(case)


def _derived(form: Any, *operands: torch.Tensor) -> Any:
    starts = [leaf(one) for one in operands]
    y = form(*starts)
    return backward(y, *starts, grad=torch.linspace(-1, 1, y.numel(), device=y.device).to(y.dtype).reshape(y.shape))


# More dimensions than a kernel's table of strides may have: x of 7, 9, 12 and 16, sides of 1 among them.
_SHAPES = {
    7: (2, 1, 3, 2, 1, 2, 2),
    9: (2, 2, 1, 2, 1, 2, 2, 1, 3),
    12: (1, 2, 1, 2, 2, 1, 2, 1, 2, 1, 3, 1),
    16: (1, 2, 1, 1, 2, 1, 2, 1, 1, 2, 1, 1, 2, 1, 3, 1),
}
_RANKED: dict[str, Any] = {
    "arithmetic": lambda x, m: [x + x.flip(0), x * m, x - m.sum(), x / 2, x > m, torch.where(x > 0, x, m), x.exp()],
    "turned": lambda x, m: [m + 1, m * x.permute(*range(x.dim())), m.contiguous(), m.clone(), m.exp(), -m],
    "moved": lambda x, m: [x.flip(-1), x.roll(1, 1), x.transpose(1, -2).contiguous(), x.reshape(-1), m.flatten(1, -2)],
    "joined": lambda x, m: [torch.cat([x, m], 1), torch.stack([x, m], 2), x.repeat(*(1,) * (x.dim() - 1), 2)],
    "reduced": lambda x, m: [
        x.sum(-2),
        x.mean((1, -2)),
        x.amax(1),
        m.sum(),
        m.argmax(1),
        x.std(-2),
        m.prod(1),
        x.any(1),
    ],
    "scanned": lambda x, m: [x.cumsum(1), m.cumprod(1), x.sort(-2)[0], m.topk(1, 1)[0], x.softmax(-2), x.logsumexp(1)],
    "indexed": lambda x, m: [
        x.index_select(-2, torch.tensor([0], device=x.device)),
        x[..., -1],
        x[:, 1:2],
        x[x > 0],
        x.masked_fill(m > 0, 2.0),
        m.gather(1, torch.zeros_like(m, dtype=torch.int64)),
        assigned(x, (slice(None), 0), 3.0),
        assigned(m, m > 0, 3.0),
        x.index_put((torch.tensor([0], device=x.device),), x[:1] * 2),
    ],
    "written": lambda x, m: [x.clone().copy_(m), x.clone().add_(m), x.scatter(1, torch.zeros_like(x).long(), m)],
    "expanded": lambda x, m: [(x[:, :1].expand_as(x) + m).contiguous(), x.sum(1, keepdim=True) * m],
    "converted": lambda x, m: [x.half(), m.long(), (m > 0).float(), m.to(torch.int32)],
    "products": lambda x, m: [x @ x.mT, torch.linalg.vector_norm(m, dim=1), F.linear(x, x.new_ones(4, x.shape[-1]))],
    "nets": lambda x, m: [F.gelu(m), F.layer_norm(x, x.shape[-2:]), F.pad(x, (1, 0, 2, 1)), F.dropout(m, 0.0)],
    "derived": lambda x, m: [_derived(lambda y: (y * m).sum(1), x), _derived(lambda y: y.transpose(1, -2).exp(), x)],
}
for _rank, _shape in _SHAPES.items():
    add_table(
        cases,
        f"rank-{_rank}-dimensions",
        _RANKED,
        lambda d, shape=_shape: (
            d.distinct(*shape) / 32,
            d.distinct(*shape[::-1]).permute(*range(len(shape) - 1, -1, -1)) / 32,
        ),
    )

# Equations: traces, diagonals, batches by an ellipsis, sums of a letter, three operands, sides of 1.
_EQUATIONS: dict[str, tuple[tuple[int, ...], ...]] = {
    "ii->": ((4, 4),),
    "ii->i": ((4, 4),),
    "bii->bi": ((3, 4, 4),),
    "ij->ji": ((3, 4),),
    "ij->": ((3, 4),),
    "ijk->k": ((3, 4, 5),),
    "i,j->ij": ((3,), (4,)),
    "i,i->": ((4,), (4,)),
    "ij,j->i": ((3, 4), (4,)),
    "ij,ij->": ((3, 4), (3, 4)),
    "ij,ij->ij": ((3, 4), (3, 4)),
    "ij,jk": ((3, 4), (4, 5)),
    "ij,kj->ki": ((3, 4), (5, 4)),
    "ij,jk,kl->il": ((3, 4), (4, 5), (5, 2)),
    "bij,bjk->bik": ((2, 3, 4), (2, 4, 5)),
    "bij,bkj->bki": ((2, 3, 4), (2, 5, 4)),
    "bij,jk->bki": ((2, 3, 4), (4, 5)),
    "bhid,bhjd->bhij": ((2, 2, 3, 4), (2, 2, 5, 4)),
    "bhij,bhjd->bihd": ((2, 2, 3, 5), (2, 2, 5, 4)),
    "bihd,bjhd->bhij": ((2, 3, 2, 4), (2, 5, 2, 4)),
    "...ij,...jk->...ik": ((2, 3, 4), (2, 4, 5)),
    "...i,...i->...": ((2, 3, 4), (3, 4)),
    "b...d,d->b...": ((2, 3, 2, 4), (4,)),
    "...->...": ((2, 3),),
    "ijk,ilm,njm,nlk->": ((2, 3, 4), (2, 5, 3), (4, 3, 3), (4, 5, 4)),
    "abc,cd->abd": ((1, 3, 4), (4, 1)),
    "a,b,c->cab": ((2,), (3,), (4,)),
    "iij,jk->ik": ((3, 3, 4), (4, 2)),
    "bn,anm,bm->ba": ((2, 3), (4, 3, 5), (2, 5)),
}
add_table(
    cases,
    "equations",
    {
        f"{number}": lambda *x, equation=equation, number=number: _derived(
            lambda *y: torch.einsum(equation, *y), *x[0][number]
        )
        for number, equation in enumerate(_EQUATIONS)
    },
    lambda d: ([[d.normal(*shape) for shape in shapes] for shapes in _EQUATIONS.values()],),
)


# One thing in four ways: with and without a tape, in inference, and where every operator has to be deterministic.
def _deterministic(form: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        return form(x, w)
    finally:
        torch.use_deterministic_algorithms(False)


def _in_inference(form: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
    with torch.inference_mode():
        return form(x * 1, w * 1)


def _without_tape(form: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
    with torch.no_grad():
        return form(leaf(x), leaf(w))


def _with_tape(form: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
    return form(leaf(x), leaf(w))


_CALLED: dict[str, Any] = {
    "linear": lambda x, w: F.linear(x[0, 0], w[0, 0, :, :3].mT.repeat(1, 2)),
    "products": lambda x, w: [x @ x.mT, torch.bmm(x[0], x[0].mT), torch.einsum("bchw,ochw->bo", x[..., :3, :3], w)],
    "convolution": lambda x, w: [F.conv2d(x, w), F.conv_transpose2d(x, w.transpose(0, 1).repeat(1, 1, 1, 1)[:4])],
    "last": lambda x, w: F.conv2d(x.contiguous(memory_format=torch.channels_last), w, padding=1),
    "norms": lambda x, w: [
        F.layer_norm(x, x.shape[2:]),
        F.group_norm(x, 2),
        F.batch_norm(x, None, None, training=True),
    ],
    "pools": lambda x, w: [
        F.max_pool2d(x, 2),
        F.avg_pool2d(x, 2),
        F.adaptive_avg_pool2d(x, 2),
        F.interpolate(x, (7, 9)),
    ],
    "attention": lambda x, w: [
        F.scaled_dot_product_attention(x, x, x),
        F.scaled_dot_product_attention(x, x, x, is_causal=True),
        F.multi_head_attention_forward(
            *(x[0].flatten(1).mT[:, None],) * 3,
            4,
            2,
            *(None,) * 2,
            None,
            None,
            False,
            0.0,
            x.new_ones(4, 4) / 4,
            None,
            training=False,
            use_separate_proj_weight=True,
            q_proj_weight=x.new_ones(4, 4) / 4,
            k_proj_weight=x.new_ones(4, 4) / 4,
            v_proj_weight=x.new_ones(4, 4) / 4,
        )[0],
    ],
    "gathered": lambda x, w: [
        x[0, 0].index_add(0, torch.tensor([0, 0, 1, 2], device=x.device), x[0, 0, :4]),
        x[0, 0].scatter_add(0, torch.zeros_like(x[0, 0], dtype=torch.int64), x[0, 0]),
        x[0, 0].index_put((torch.tensor([1, 1, 2], device=x.device),), x[0, 0, :3], accumulate=True),
        x.cumsum(2),
        torch.bincount((x.flatten() * 4).abs().long(), x.flatten()),
        x[0, 0].kthvalue(2, 1)[0],
        x.median(3)[0],
        F.embedding(torch.tensor([0, 2, 2], device=x.device), x[0, 0]),
    ],
    "filled": lambda x, w: [torch.zeros_like(x).masked_scatter(x > 0, x), x.clone().put_(*_put(x), accumulate=True)],
    "recurrent": lambda x, w: _recurrent(torch.nn.LSTM(6, 3), x) + _recurrent(torch.nn.GRU(6, 3, 2), x),
    "encoder": lambda x, w: _recurrent(torch.nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True).eval(), x),
    "padded": lambda x, w: [F.pad(x, (1, 2, 0, 1), mode=mode) for mode in ("constant", "reflect", "replicate")],
}


def _put(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor([3, 3, 0], device=x.device), x.flatten()[:3] * 2


def _recurrent(module: torch.nn.Module, x: torch.Tensor) -> list[Any]:
    module = module.to(x.device, x.dtype)
    with torch.no_grad():
        for number, one in enumerate(module.parameters()):
            one.copy_(torch.linspace(-0.5, 0.5, one.numel(), dtype=x.dtype).roll(number).view_as(one))
    answer = module(x[0, :3])
    return list(answer[:1]) if isinstance(answer, tuple) else [answer]


for _name, _way in (
    ("deterministic", _deterministic),
    ("inference", _in_inference),
    ("without-tape", _without_tape),
    ("with-tape", _with_tape),
):
    add_table(
        cases,
        f"way-{_name}",
        {name: lambda x, w, form=form, way=_way: way(form, x, w) for name, form in _CALLED.items()},
        lambda d: (d.normal(2, 4, 5, 6), d.normal(4, 4, 3, 3, scale=0.4)),
        deterministic=False,
    )

# torch.masked: what a mask leaves out counts for nothing.
add_table(
    cases,
    "masked",
    {
        name: lambda x, m, name=name: [
            getattr(torch.masked, name)(x, dim, mask=mask)
            if dim is not None
            else getattr(torch.masked, name)(x, mask=mask)
            for mask in (m, m[:1], None)
            for dim in ((0, 1) if name not in ("sum", "mean") else (0, 1, None))
        ]
        for name in ("sum", "mean", "amax", "amin", "argmax", "prod", "softmax", "log_softmax", "logsumexp", "cumsum")
    },
    lambda d: (
        d.distinct(4, 5) / 4,
        d.bools(4, 5) | torch.eye(4, 5, dtype=torch.bool) | torch.eye(4, 5).flip(0).bool(),
    ),
)


# What a user reads: printed tensors, Python numbers, lists, lengths, copies.
def _shown(x: torch.Tensor) -> str:
    return re.sub(r", (device|dtype)='?[a-z0-9:.]+'?", "", repr(x))


_READ: dict[str, Any] = {
    "shown": lambda x: [_shown(x), _shown(x[0]), _shown(x.mT), _shown(x[0, 0]), _shown(x[:0]), _shown(x[::2, 1:])],
    "numbers": lambda x: [
        x[1, 2].item(),
        float(x[0, 1]),
        int(x[2, 2]),
        bool(x[0, 0]),
        x.mT[1, 0].item(),
        len(x),
        x.numel(),
    ],
    "lists": lambda x: [x.tolist(), x.mT.tolist(), x[1:, ::2].tolist(), x[0, 0].tolist(), [float(one) for one in x[0]]],
    "copies": lambda x: [
        copy.copy(x),
        copy.deepcopy(x),
        copy.deepcopy(x.mT),
        x.__copy__() if hasattr(x, "__copy__") else 0,
    ],
    "walked": lambda x: [*x, *x.mT, *reversed(list(x)), max(x[0].tolist()), sorted(x[1].tolist())],
    "held": lambda x: [x[0, 1] in x, 999 in x, bool((x == x).all()), x.equal(x.clone()), torch.equal(x, x.mT), x is x],
    "places": lambda x: [x.mT[x[0].argmax()], x[int(x[0, 0].abs()) % 3], list(range(5))[x[0].argmin()]],
}
for _dtype in (torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool):
    add_table(
        cases,
        f"read-{str(_dtype)[6:]}",
        _READ,
        lambda d, dtype=_dtype: ((d.distinct(4, 5).abs() if dtype == torch.uint8 else d.distinct(4, 5)).to(dtype),),
    )
