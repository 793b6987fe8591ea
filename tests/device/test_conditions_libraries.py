"""Parts of torch that build on the operators: masked reductions, windows, nested tensors, hooks, NumPy."""

from __future__ import annotations

import io
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.limits import add_table

cases = Cases("conditions")


def test_case(case: Any, ask: Any) -> None:
    ask(case)


def _of_masked(name: str, *arguments: Any, **options: Any) -> Any:
    """Return a masked function by three masks: the whole, one row for all, none."""
    return lambda x, m: [getattr(torch.masked, name)(x, *arguments, mask=one, **options) for one in (m, m[:1], None)]


def _of_third(name: str, dim: int) -> Any:
    """Return a masked search that finds something in every row and column: of nothing, any place will do."""
    return lambda x, m: getattr(torch.masked, name)(
        x, dim, mask=torch.arange(x.numel(), device=x.device).view(x.shape) % 3 == 0
    )


# Of x and a mask that leaves nothing of one row.
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
    **{f"norm-{order}": _of_masked("norm", order, 1) for order in (1, 2, float("inf"))},
    "normalize": _of_masked("normalize", 2.0, 1, eps=2.0**-9),
    "logaddexp": lambda x, m: torch.masked.logaddexp(x, x.flip(0), input_mask=m, other_mask=m.flip(0)),
    "whole": lambda x, m: (torch.masked.sum(x, mask=m), torch.masked.mean(x, mask=m), torch.masked.amax(x, mask=m)),
    "integers": lambda x, m: torch.masked.sum((x * 9).to(torch.int32), 1, mask=m),
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
        lambda d, dtype=_dtype: (d.normal(5, 7, dtype=dtype), d.bools(5, 7).index_fill(0, torch.tensor([2]), False)),
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
            x[None].repeat(3, 1, 1), 1, torch.tensor([0, 1, 0]), torch.tensor([2, 3, 6]), layout=torch.jagged
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
