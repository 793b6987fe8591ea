"""Up to 16 dimensions, einsum's equations, and Fourier transforms along each dimension."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table, assigned

cases = Cases("conditions")


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
    "written": lambda x, m: [x.clone().copy_(m), x.clone().add_(m), x.scatter_add(1, torch.zeros_like(x).long(), m)],
    "expanded": lambda x, m: [(x[:, :1].expand_as(x) + m).contiguous(), x.sum(1, keepdim=True) * m],
    "converted": lambda x, m: [x.half(), m.long(), (m > 0).float(), m.to(torch.int32)],
    "products": lambda x, m: [x @ x.mT, torch.linalg.vector_norm(m, dim=1), F.linear(x, x.new_ones(4, x.shape[-1]))],
    "nets": lambda x, m: [F.gelu(m), F.layer_norm(x, x.shape[-2:]), F.pad(x, (1, 0, 2, 1)), F.dropout(m, 0.0)],
    "derived": lambda x, m: [derived(lambda y: (y * m).sum(1), x), derived(lambda y: y.transpose(1, -2).exp(), x)],
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
        f"{number}": lambda *x, equation=equation, number=number: derived(
            lambda *y: torch.einsum(equation, *y), *x[0][number]
        )
        for number, equation in enumerate(_EQUATIONS)
    },
    lambda d: ([[d.normal(*shape) for shape in shapes] for shapes in _EQUATIONS.values()],),
)

# Every Fourier transform along every dimension of many.
add_table(
    cases,
    "transforms",
    {
        f"{name}-{rank}": lambda x, name=name, rank=rank: [
            _real(getattr(torch.fft, name)(_operand(name, x[rank]), dim=dim)) for dim in range(-rank, rank)
        ]
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
        for rank in (1, 2, 4, 5, 6)
    },
    lambda d: ({rank: d.normal(*(3, 2, 4, 3, 2, 3)[:rank]) for rank in (1, 2, 4, 5, 6)},),
    factor=16.0,
)
add_table(
    cases,
    "transforms-together",
    {
        f"{name}-{rank}": lambda x, name=name, rank=rank: [
            _real(getattr(torch.fft, name)(_operand(name, x[rank]), dim=dims, norm=norm))
            for dims, norm in (((0, 1), None), ((-1, 0), "ortho"), ((1, -1), "forward"), (None, "backward"))
            if rank > 2 or dims != (1, -1)
        ]
        for name in ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")
        for rank in (2, 4, 5)
    },
    lambda d: ({rank: d.normal(*(3, 2, 4, 2, 3)[:rank]) for rank in (2, 4, 5)},),
    factor=32.0,
)


def _operand(name: str, x: torch.Tensor) -> torch.Tensor:
    """Return a complex operand where the transform takes one."""
    return x if name.startswith(("rfft", "ihfft")) else torch.complex(x, x.flip(0))


def _real(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
