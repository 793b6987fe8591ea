"""Complex64 as a layer of its own: conjugate and negated views, products, reductions, Fourier, indexing, gradients."""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.host_views import VIEWS
from device_suite.layout_cases import tensors_of

cases = Cases("complex")

# How an operand of (6, 7) is made of its base; lazy conjugation is a layout of its own.
_LAID: dict[str, tuple[tuple[int, ...], Callable[[torch.Tensor], torch.Tensor]]] = {
    **{name: VIEWS[name] for name in ("dense", "rows", "columns", "gapped", "transposed", "expanded_rows")},
    "conjugated": ((6, 7), lambda x: x.conj()),
    "adjoint": ((7, 6), lambda x: x.mH),
    "conjugated_rows": ((9, 7), lambda x: x.conj()[2:8]),
    "negated": ((6, 7), lambda x: torch._neg_view(x)),
    "resolved": ((6, 7), lambda x: x.conj().resolve_conj()),
}
_OPERATORS: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda x, y: [x + y, x - y, x * y, x / y, x + 1.5, 2 * x, x * (1 + 2j), x * y.real, -x],
    "alpha": lambda x, y: [
        torch.add(x, y, alpha=2),
        torch.sub(x, y, alpha=0.5j),
        torch.addcmul(x, x, y),
        x.lerp(y, 0.25),
    ],
    "parts": lambda x, y: [x.real + 0, x.imag + 0, x.abs(), x.angle(), torch.view_as_real(x.resolve_conj()) * 2],
    "conjugates": lambda x, y: [x.conj() * y, x.conj_physical(), x.conj().imag + 0, x.mH + y.mH, x.conj().clone()],
    "powers": lambda x, y: [x * x, x.pow(2), x.square(), x.reciprocal(), x.sqrt(), x.sgn()],
    "functions": lambda x, y: [x.exp(), x.sin(), x.cos(), x.tanh(), x.sigmoid(), (x + 4).log()],
    "comparisons": lambda x, y: [x == y, x != y, x == x.clone(), torch.isclose(x, x + 0), x.isfinite(), x.bool()],
    "sums": lambda x, y: [x.sum(), x.sum(0), x.mean(1), x.cumsum(0), x.prod(1), x.norm(), x.flip(0).sum(-1)],
    "products": lambda x, y: [x @ y.mT, x @ y.mH, x.conj() @ y.mT, x.mT @ y, torch.mv(x, y[0]), torch.dot(x[0], y[1])],
    "inner": lambda x, y: [torch.vdot(x[0], y[1]), torch.outer(x[0], y[1]), torch.einsum("ij,kj->ik", x, y.conj())],
    "batched": lambda x, y: [torch.bmm(x.expand(2, 6, 7), y.mH.expand(2, 7, 6)), torch.addmm(x[:, :6], x, y.mT)],
    "moved": lambda x, y: [
        x.t().contiguous(),
        x.flip(1),
        x.roll(2, 0),
        torch.cat([x, y.conj()], 1),
        torch.stack([x, y]),
        x.repeat(2, 1),
    ],
    "indexed": lambda x, y: [
        x[[3, 0, 3]],
        x[:, 2:5] + 0,
        x.index_select(1, torch.tensor([4, 1], device=x.device)),
        x[x.real > 0],
    ],
    "gathered": lambda x, y: [
        x.gather(1, torch.tensor([[1, 5], [0, 2]], device=x.device)),
        x.take(torch.tensor([7, 3], device=x.device)),
    ],
    "selected": lambda x, y: [
        torch.where(x.real > 0, x, y),
        x.masked_fill(x.imag > 0, 1 - 2j),
        x.tril(),
        x.diagonal() + 0,
    ],
    "fourier": lambda x, y: [
        torch.fft.fft(x),
        torch.fft.ifft(x, dim=0),
        torch.fft.fft2(x.contiguous() if x.device.type == "cpu" else x),  # MKL: see operators/fourier.py
        torch.fft.fftshift(x),
        torch.fft.fft(x, 9),
    ],
    "real_fourier": lambda x, y: [
        torch.fft.rfft(x.real),
        torch.fft.irfft(x, 9),
        torch.fft.irfft2(x, (6, 10)),
        torch.fft.rfft2(y.imag),
    ],
    "scaled_fourier": lambda x, y: [
        torch.fft.fft(x, norm="ortho"),
        torch.fft.ifft(x, norm="forward"),
        torch.fft.hfft(x, 11),
    ],
    "made": lambda x, y: [
        torch.complex(x.real, y.imag),
        torch.polar(x.abs(), y.angle()),
        torch.zeros_like(x) + y,
        torch.full_like(x, 2 - 1j),
    ],
    "converted": lambda x, y: [
        x.to(torch.complex64) * 1,
        x.real.to(torch.complex64),
        x.imag.half().float(),
        x.real + y,
    ],
    "linear": lambda x, y: [torch.nn.functional.linear(x, y), torch.nn.functional.linear(x, y, y[:, 0]), x.trace()],
}
_WRITES: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda x, y: x.add_(y).mul_(2 - 1j).sub_(y, alpha=2).div_(1j),
    "parts": lambda x, y: (x.real.mul_(2), x.imag.add_(1), x.real[1:3].zero_(), x.imag.copy_(y.real)),
    "conjugate": lambda x, y: (x.conj().mul_(y), x.mH.add_(1j), x.conj().copy_(y.conj())),
    "fills": lambda x, y: (x.fill_(1 + 2j), x[1].zero_(), x[:, 2].copy_(y[:, 3]), x.masked_fill_(y.real > 0, 3j)),
    "index": lambda x, y: x.index_add_(0, torch.tensor([4, 1, 2], device=x.device), y[:3], alpha=2).index_fill_(
        1, torch.tensor([3], device=x.device), 1j
    ),
    "put": lambda x, y: x.index_put_((torch.tensor([1, 1, 4], device=x.device),), y[:3], accumulate=True),
    "scatter": lambda x, y: x.scatter_add_(0, torch.tensor([[0, 2, 1]], device=x.device), y[:1, :3]),
    "copy": lambda x, y: x.copy_(y.conj()),
    "real": lambda x, y: x.copy_(y.real).add_(y.imag),
}


def _derived(form: Any, *starts: torch.Tensor) -> Any:
    leaves = [leaf(start) for start in starts]
    results = tensors_of(form(*leaves))
    wanted = [result for result in results if result.requires_grad]
    grads = [
        (
            (torch.arange(one.numel(), device=one.device) % 5).reshape(one.shape)
            * (0.5 - 0.25j if one.is_complex() else 0.5)
        )
        for one in wanted
    ]
    torch.autograd.backward(wanted, [grad.to(one.dtype) for grad, one in zip(grads, wanted)])
    return results, [one.grad for one in leaves]


def _add(case_id: str, act: Any, make: Any, factor: float = 16) -> None:
    cases.add(
        case_id,
        act,
        make=make,
        terms=64,
        factor=factor,
        floor=0.25,
        since="2.1",
        states=("fresh",),
        may_be_missing=True,
    )


_BARE = ("comparisons", "made")
for _kind, _form in _OPERATORS.items():
    for _name, (_shape, _cut) in _LAID.items():
        _make = lambda d, shape=_shape: (d.of(torch.complex64, *shape), d.of(torch.complex64, *shape))  # noqa: E731
        _add(
            f"complex-{_kind}-{_name}",
            lambda x, y, form=_form, cut=_cut: [form(cut(x), cut(y)), form(cut(x), cut(y).clone())],
            _make,
        )
        if _kind not in _BARE:
            _add(
                f"complex-{_kind}-{_name}-grad",
                lambda x, y, form=_form, cut=_cut: _derived(lambda a, b: form(cut(a), cut(b)), x, y),
                _make,
            )

for _kind, _form in _WRITES.items():
    for _name, (_shape, _cut) in _LAID.items():
        if _name in ("expanded_rows", "resolved"):
            continue
        _add(
            f"complex-write-{_kind}-{_name}",
            lambda x, y, form=_form, cut=_cut: (form(cut(x), cut(y)), 0)[1],
            lambda d, shape=_shape: (d.of(torch.complex64, *shape), d.of(torch.complex64, *shape)),
        )

for _rank in range(7):
    _add(
        f"complex-rank-{_rank}",
        lambda x, y: [
            x + y.conj(),
            x * y,
            x.abs(),
            x.sum(),
            (x.permute(tuple(reversed(range(x.dim())))) * 2j).contiguous(),
            x.exp(),
        ],
        lambda d, rank=_rank: (
            d.of(torch.complex64, *(3, 2, 2, 3, 2, 2)[:rank]),
            d.of(torch.complex64, *(3, 2, 2, 3, 2, 2)[:rank]),
        ),
    )
_add(
    "complex-empty",
    lambda x: [x + x, x.conj() * 2, x.sum(), x.abs(), torch.cat([x, x]), x.real + 1],
    lambda d: (d.of(torch.complex64, 0, 3),),
)
