"""Parts of torch that build on the operators: masked reductions, windows, nested tensors, hooks, NumPy."""

from __future__ import annotations

import io
from math import inf
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.limits import add_table

cases = Cases("conditions")


def _of_masked(name: str, *arguments: Any, **options: Any) -> Any:
    """Return a masked function by three masks: the whole, one row for all, none."""
    return lambda x, m: [getattr(torch.masked, name)(x, *arguments, mask=one, **options) for one in (m, m[:1], None)]


def _of_third(name: str, dim: int) -> Any:
    """Return a masked search that finds something in every row and column: of nothing, any place will do."""
    return lambda x, m: getattr(torch.masked, name)(
        x, dim, mask=torch.arange(x.numel(), device=x.device).view(x.shape) % 3 == 0
    )


def _mask(d: Any) -> torch.Tensor:
    """Return a mask that leaves nothing of one row, and two or more of others: of one, a variance is 0 / 0 or near."""
    mask = d.bools(5, 7).index_fill(1, torch.arange(2), True)
    return mask.index_fill(0, torch.tensor([2]), False)  # type: ignore[no-any-return]


# Of x and a mask.
_MASKED: dict[str, Any] = {
    f"{name}-{dim}": _of_masked(name, dim)
    for name in ("sum", "mean", "prod", "amax", "amin", "logsumexp", "median")
    for dim in (0, 1)
} | {
    **{f"{name}-{dim}": _of_third(name, dim) for name in ("argmax", "argmin") for dim in (0, 1)},
    **{
        f"{name}-{dim}": _of_masked(name, dim)
        for name in ("softmax", "softmin", "log_softmax", "cumsum", "cumprod")
        for dim in (0, -1)
    },
    **{f"{name}-{unbiased}": _of_masked(name, 1, unbiased) for name in ("var", "std") for unbiased in (True, False)},
    **{f"norm-{order}": _of_masked("norm", order, 1) for order in (1, 2, inf)},
    "normalize": _of_masked("normalize", 2.0, 1, eps=2.0**-9),
    "logaddexp": lambda x, m: torch.masked.logaddexp(x, x.flip(0), input_mask=m, other_mask=m.flip(0)),
    "whole": lambda x, m: (torch.masked.sum(x, mask=m), torch.masked.mean(x, mask=m), torch.masked.amax(x, mask=m)),
    "integers": lambda x, m: torch.masked.sum((x * 8).to(torch.int32), 1, mask=m),
    "derived": lambda x, m: _gradient(lambda y: torch.masked.softmax(y, 1, mask=m).nan_to_num().square(), x),
}


def _gradient(form: Any, x: torch.Tensor) -> Any:
    start = leaf(x)
    form(start).sum().backward()
    return start.grad


for _dtype in (torch.float32, torch.float16):
    add_table(
        cases,
        f"masked-{str(_dtype)[6:]}",
        _MASKED,
        lambda d, dtype=_dtype: (d.normal(5, 7, dtype=dtype), _mask(d)),
        terms=256,
    )
_SHAPED: dict[str, dict[str, Any]] = {
    "bartlett": {},
    "blackman": {},
    "cosine": {},
    "exponential": {"tau": 3.0},
    "gaussian": {"std": 2.5},
    "general_cosine": {"a": [0.46, 0.23, 0.31]},
    "general_hamming": {"alpha": 0.6},
    "hamming": {},
    "hann": {},
    "kaiser": {"beta": 9.0},
    "nuttall": {},
}


def _window(run: Any, name: str, options: dict[str, Any], count: int, sym: bool) -> torch.Tensor:
    form = getattr(torch.signal.windows, name)
    made: torch.Tensor = form(count, sym=sym, device=run.device, dtype=run.cast(torch.float32), **options)
    return made


cases.add(
    "condition-windows",
    lambda run: {
        f"{name}-{count}-{sym}": _window(run, name, options, count, sym)
        for name, options in _SHAPED.items()
        for count in (1, 2, 9, 16)
        for sym in (True, False)
    },
    terms=64,
    floor=1.0,
    states=("fresh",),
    may_be_missing=True,
    since="2.1",
)


def _rows(x: torch.Tensor) -> torch.Tensor:
    """Return rows of 4, 2 and 5 numbers as one nested tensor."""
    return torch.nested.nested_tensor([x[:4], x[4:6], x[1:]], layout=torch.jagged)


_NESTED: dict[str, Any] = {
    "padded": lambda x: torch.nested.to_padded_tensor(_rows(x), -1.0),
    "unary": lambda x: (_rows(x).sin() * 2 + 1).values(),
    "itself": lambda x: ((y := _rows(x)) * y.cos()).values(),
    "linear": lambda x: F.linear(_rows(x), x[:4]).values(),
    "parts": lambda x: list((_rows(x) - 1).unbind()),
    "offsets": lambda x: _rows(x).offsets(),
    "sum": lambda x: _rows(x).sum(-1).values(),
    "mean": lambda x: _rows(x).mean(1),
    "softmax": lambda x: _rows(x).softmax(-1).values(),
    "normed": lambda x: F.layer_norm(_rows(x), (6,)).values(),
    "half": lambda x: _rows(x.half()).to(x.dtype).values(),
    "from-padded": lambda x: (
        torch.nested.narrow(
            x[None].repeat(3, 1, 1), 1, *torch.tensor([[0, 1, 0], [2, 3, 6]], device=x.device), layout=torch.jagged
        )
        .contiguous()
        .values()
    ),
    "strided": lambda x: torch.nested.nested_tensor([x[:4], x[4:6]]).to_padded_tensor(2.0),
    "derived": lambda x: _gradient(lambda y: _rows_of(y).sin().values(), x),
}


def _rows_of(y: torch.Tensor) -> torch.Tensor:
    return torch.nested.as_nested_tensor([y[:4], y[4:6], y[1:]], layout=torch.jagged)


add_table(cases, "nested", _NESTED, lambda d: d.normal(6, 6), since="2.4", terms=256)


def _packed(x: torch.Tensor, around: Any) -> Any:
    start = leaf(x)
    with around:
        answer = (start.sin() * start.exp()).softmax(1).square()
    answer.sum().backward()
    return [answer, start.grad]


def _doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.is_floating_point() else x


class _Scaled(torch.autograd.Function):
    """A function with a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x.abs()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return 2 * ctx.saved_tensors[0].abs() * grads[0]


class _Named(torch.Tensor):
    """A subclass: what is done to it stays of its kind."""


def _stored(x: torch.Tensor) -> torch.Tensor:
    file = io.BytesIO()
    torch.save({"x": x, "part": x[1:, ::2]}, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    return torch.cat([loaded["x"].flatten(), loaded["part"].flatten()])


_AROUND: dict[str, Any] = {
    "to-host": lambda x: _packed(x, torch.autograd.graph.save_on_cpu()),
    "doubled": lambda x: _packed(x, torch.autograd.graph.saved_tensors_hooks(_doubled, lambda one: one / 2)),
    "anomaly": lambda x: _packed(x, torch.autograd.set_detect_anomaly(True)),
    "function": lambda x: _gradient(_Scaled.apply, x),
    "twice": lambda x: _gradient(lambda y: torch.autograd.grad(y.sin().sum(), y, create_graph=True)[0].square(), x),
    "unused": lambda x: torch.autograd.grad(leaf(x).sum() + (y := leaf(x)).sin().sum(), y)[0],
    "batched": lambda x: torch.autograd.grad(
        (y := leaf(x)).sin(), y, torch.stack([x, x.flip(0)]), is_grads_batched=True
    )[0],
    "subclass": lambda x: [
        (x.as_subclass(_Named) * 2)[1:].sum(0).as_subclass(torch.Tensor),
        x.as_subclass(_Named).T + 0,
    ],
    "array": lambda x: torch.from_numpy(x.cpu().numpy()[::2].copy()) * 2,
    "bytes": lambda x: torch.tensor(list(bytes(x.half().cpu().untyped_storage()))[:16]),
    "copied-storage": lambda x: torch.empty(0, dtype=x.dtype, device=x.device).set_(
        x.untyped_storage(), 3, (4, 2), (2, 1)
    ),
    "stored": _stored,
    "symmetric": lambda x: torch.linalg.ldl_solve(*torch.linalg.ldl_factor(x @ x.mT + x.new_ones(6, 6)), x[:, :2]),
    "iterated": lambda x: [row.sum() for row in x],
    "unpacked": lambda x: torch.stack([*x][::-1]),
}
add_table(cases, "around", _AROUND, lambda d: d.normal(6, 6), since="2.1", terms=256, anywhere=True)
_REFLECTED = torch.tensor([[1.0, 0, 0], [0.5, 1, 0], [-0.25, 0.75, 1], [0.5, -0.5, 0.25]])
_SELDOM: dict[str, Any] = {
    # Eigenvalues come in any order: the sums of their powers say which they are.
    "eigenvalues": lambda x: [((torch.linalg.eigvals(x) / 4) ** power).sum() for power in (1, 2, 3)],
    "eigenvectors": lambda x: _left_by(x, *torch.linalg.eig(x)),
    "reflected": lambda x: [
        torch.ormqr(_REFLECTED.to(x), x.new_tensor([1.25, 0.5, 1.5]), x[:4, :3], left=True, transpose=turned)
        for turned in (False, True)
    ],
    "frequencies": lambda x: [
        form(n, d=step, device=x.device)
        for form in (torch.fft.fftfreq, torch.fft.rfftfreq)
        for n in (1, 8, 9)
        for step in (1.0, 0.5)
    ],
    "permuted": lambda x: list(torch.empty_permuted((2, 3, 4), (2, 0, 1), device=x.device).stride()),
    "channels": lambda x: torch.fake_quantize_per_channel_affine(
        x.float(), x[0].abs().float() + 0.1, torch.arange(6, device=x.device, dtype=torch.int32), 1, 0, 255
    ),
    "fractional": lambda x: _gradient(
        lambda y: F.fractional_max_pool3d(
            y.view(1, 1, 4, 3, 3), 2, output_size=(2, 1, 1), _random_samples=x.new_full((1, 1, 3), 0.4)
        ),
        x,
    ),
    "lists": lambda x: [
        *torch._foreach_acos([x.sin(), x[0].cos()]),
        *torch._foreach_asin([x.sin()]),
        *torch._foreach_atan([x, x[1]]),
        *torch._foreach_lgamma([x, x[2]]),
    ],
}


def _left_by(x: torch.Tensor, values: torch.Tensor, vectors: torch.Tensor) -> Any:
    """Return what eigenvectors leave: nothing but rounding, and their lengths."""
    return [(x.to(vectors.dtype) @ vectors - vectors * values).abs().amax() < 1e-3, vectors.abs().square().sum(0)]


add_table(cases, "seldom", _SELDOM, lambda d: d.normal(6, 6), terms=1024, factor=16.0)
# Matrices with more than 2**16 rows: what works in a square of them has no room.
_TALL: dict[str, Any] = {
    "qr": lambda x: [torch.linalg.qr(x)[1].abs(), torch.linalg.qr(x, mode="r")[1].abs(), _product(*torch.linalg.qr(x))],
    "values": lambda x: [
        torch.linalg.svdvals(x),
        torch.linalg.svd(x, full_matrices=False)[1],
        torch.linalg.matrix_rank(x),
    ],
    "together": lambda x: _together(*torch.linalg.svd(x, full_matrices=False))[::9999],
    "wide": lambda x: [torch.linalg.svdvals(x.mT), torch.linalg.qr(x.mT[:, :9])[1].abs()],
    "solved": lambda x: torch.linalg.lstsq(x, x[:, :1] * 2 + 1)[0],
    "inverse": lambda x: torch.linalg.pinv(x) @ x,
    "gram": lambda x: [x.mT @ x, torch.linalg.cholesky(x.mT @ x), x.mT.cov(), x.mT.corrcoef()],
    "norms": lambda x: [torch.linalg.matrix_norm(x, order) for order in ("fro", "nuc", 1, inf, 2)],
    "triangle": lambda x: torch.linalg.solve_triangular((x.mT @ x).tril(), x.mT, upper=False)[:, ::9999],
    "distances": lambda x: torch.cdist(x[None, :70_000], x[None, :2])[0, ::9999],
}


def _product(q: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    return (q @ r)[::9999]


def _together(u: torch.Tensor, values: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    return (u * values.unsqueeze(-2)) @ vectors


def _of_symmetric(x: torch.Tensor) -> Any:
    values, vectors = torch.linalg.eigh(x + x.mT)
    return [values, torch.linalg.eigvalsh(x + x.mT), _together(vectors, values, vectors.mT)]


add_table(cases, "tall", _TALL, lambda d: d.normal(70_001, 2), terms=1 << 17, factor=16.0)
# Small matrices by the hundred: more numbers than one group of threads has room for.
_MANY: dict[str, Any] = {
    "svd": lambda x: [torch.linalg.svdvals(x), _together(*torch.linalg.svd(x))],
    "eigh": _of_symmetric,
    "qr": lambda x: [torch.linalg.qr(x)[1].abs(), torch.matmul(*torch.linalg.qr(x))],
    "cholesky": lambda x: torch.linalg.cholesky(x @ x.mT),
    "solved": lambda x: [torch.linalg.solve(x, x.flip(0)), torch.linalg.solve_triangular(x.tril(), x, upper=False)],
    "least": lambda x: torch.linalg.lstsq(x, x.flip(0))[0],
    "inverse": lambda x: [torch.linalg.inv(x), torch.linalg.pinv(x)],
    "lu": lambda x: [torch.linalg.lu_factor(x)[0], _put_together(*torch.linalg.lu(x))],
    "determinant": lambda x: [torch.linalg.det(x / 8), *torch.linalg.slogdet(x)],
    "functions": lambda x: [torch.linalg.matrix_exp(x / 32), torch.linalg.matrix_power(x / 8, 3)],
    "norms": lambda x: [torch.linalg.matrix_norm(x, order) for order in ("fro", "nuc", 1, inf, 2)],
    "gauges": lambda x: [torch.linalg.cond(x), torch.linalg.matrix_rank(x)],
}


def _put_together(p: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    return p @ lower @ upper


add_table(cases, "matrices-many", _MANY, lambda d: d.normal(140, 8, 8) + 9 * torch.eye(8), terms=256, factor=16.0)
