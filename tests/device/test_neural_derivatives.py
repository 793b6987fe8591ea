"""Derivatives asked otherwise than of everything once: of some operands alone, and of a derivative."""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.answers import attempt

cases = Cases("neural")
# An operator of MPS's own has no second derivative: its registration says so, and an exception.
_OF_MPS = "mps"

# Each takes x of (3, 4, 6), w of (4, 6), v of (6,), and is smooth where it is asked.
_PLAIN: dict[str, Callable[..., Any]] = {
    "mul": lambda x, w, v: x * w,
    "div": lambda x, w, v: x / (w.square() + 1),
    "pow": lambda x, w, v: (x.square() + 1) ** w,
    "atan2": lambda x, w, v: torch.atan2(x, w + 3),
    "lerp": lambda x, w, v: torch.lerp(x, w, v.sigmoid()),
    "addcmul": lambda x, w, v: torch.addcmul(x, w, v, value=2),
    "addcdiv": lambda x, w, v: torch.addcdiv(x, w, v.square() + 1, value=2),
    "where": lambda x, w, v: torch.where(v > 0, x, w),
    "masked_fill": lambda x, w, v: x.masked_fill(w > 0, 2.0) * v,
    "prod": lambda x, w, v: (x * w).prod(1) * v,
    "cumsum": lambda x, w, v: (x * w).cumsum(1) * v,
    "cumprod": lambda x, w, v: (x * w).cumprod(-1) * v,
    "logsumexp": lambda x, w, v: torch.logsumexp(x * w, (0, 2)) * v.sum(),
    "softmax": lambda x, w, v: (x * w).softmax(-1) * v,
    "log_softmax": lambda x, w, v: (x * w).log_softmax(1) * v,
    "norm": lambda x, w, v: torch.linalg.vector_norm(x * w, dim=1) * v,
    "var": lambda x, w, v: (x * w).var(1) * v,
    "std": lambda x, w, v: (x * w).std((0, 1)) * v,
    "mean": lambda x, w, v: (x * w).square().mean(1) * v,
    "gather": lambda x, w, v: (x * w).gather(2, (x > 0).long()) * w[:, :1],
    "scatter": lambda x, w, v: x.scatter(1, (x[:, :1] > 0).long(), (w * v).sum().expand(3, 1, 6)),
    "scatter_add": lambda x, w, v: x.scatter_add(0, (x > 0).long(), (x * w).square()) * v,
    "index_select": lambda x, w, v: x.index_select(1, torch.tensor([3, 0, 3], device=x.device)) * v * w[:3],
    "index_add": lambda x, w, v: x.index_add(
        1, torch.tensor([1, 1], device=x.device), (w[:2] * v)[None].expand(3, 2, 6)
    ),
    "index_put": lambda x, w, v: (x * 1).index_put((torch.tensor([2, 0], device=x.device),), w * v, accumulate=True),
    "take_along": lambda x, w, v: torch.take_along_dim(x * v, (x > 0).long(), 1) * w,
    "roll": lambda x, w, v: (x * w).roll((1, -2), (0, 2)) * v,
    "flip": lambda x, w, v: (x * w).flip(0, 2) * v,
    "cat": lambda x, w, v: torch.cat([x * v, w[None]], 0).square(),
    "split": lambda x, w, v: torch.stack([a * b for a, b in zip(x.chunk(2, 1), (v * w).split(2))]),
    "expand": lambda x, w, v: (v.expand(4, 6) * w).expand_as(x) * x,
    "matmul": lambda x, w, v: x @ w.mT @ w,
    "bmm": lambda x, w, v: torch.bmm(x, (x * v).mT) @ w,
    "addmm": lambda x, w, v: torch.addmm(w, x[0] * v, w.t() @ w, beta=0.5, alpha=2),
    "addmv": lambda x, w, v: torch.addmv(x[0, :, 0], w, v, beta=0.5),
    "einsum": lambda x, w, v: torch.einsum("bij,kj,j->bik", x, w, v),
    "linear": lambda x, w, v: F.linear(x, w * v, w[:, 0]),
    "bilinear": lambda x, w, v: F.bilinear(x, x * v, w[:2, :, None] * w[0], w[:2, 0]),
    "conv1d": lambda x, w, v: F.conv1d(x, w.reshape(2, 4, 3), v[:2], padding=1),
    "conv1d-groups": lambda x, w, v: F.conv1d(x, w.reshape(4, 2, 3), v[:4], stride=2, groups=2),
    "conv_transpose1d": lambda x, w, v: F.conv_transpose1d(x, w.reshape(4, 2, 3), v[:2], stride=2),
    "conv2d": lambda x, w, v: F.conv2d(x[:, None], w.reshape(3, 1, 4, 2), v[:3], padding=1),
    "conv_transpose2d": lambda x, w, v: F.conv_transpose2d(x[:, None], w.reshape(1, 3, 4, 2), v[:3]),
    "conv3d": lambda x, w, v: F.conv3d(x.reshape(1, 3, 4, 3, 2), w.reshape(2, 3, 2, 2, 1), v[:2]),
    "layer_norm": lambda x, w, v: F.layer_norm(x, (6,), v, w[0]),
    "layer_norm-two": lambda x, w, v: F.layer_norm(x, (4, 6), w, w * v),
    "rms_norm": lambda x, w, v: F.rms_norm(x * w, (6,), v),
    "group_norm": lambda x, w, v: F.group_norm(x, 2, w[:, 0], w[:, 1] * v[0]),
    "batch_norm": lambda x, w, v: F.batch_norm(x, None, None, w[:, 0], w[:, 1] * v[0], training=True),
    "batch_norm-kept": lambda x, w, v: F.batch_norm(x, v[:4].detach(), v[:4].detach() ** 2 + 1, w[:, 0], w[:, 1]) * v,
    "instance_norm": lambda x, w, v: F.instance_norm(x, None, None, w[:, 0], w[:, 1]) * v,
    "gelu": lambda x, w, v: F.gelu(x * w) * v,
    "gelu-tanh": lambda x, w, v: F.gelu(x * w, approximate="tanh") * v,
    "silu": lambda x, w, v: F.silu(x * w) * v,
    "mish": lambda x, w, v: F.mish(x * w) * v,
    "softplus": lambda x, w, v: F.softplus(x * w, 2) * v,
    "elu": lambda x, w, v: F.elu(x * w, 0.7) * v,
    "logsigmoid": lambda x, w, v: F.logsigmoid(x * w) * v,
    "glu": lambda x, w, v: F.glu(x * w) * v[:3],
    "tanh": lambda x, w, v: (x * w).tanh() * v,
    "rsqrt": lambda x, w, v: (x.square() + w.square() + 1).rsqrt() * v,
    "leaky_relu": lambda x, w, v: F.leaky_relu(x * w, 0.1) * v.square(),
    "avg_pool1d": lambda x, w, v: F.avg_pool1d((x * w).square(), 2) * v[:3],
    "avg_pool2d": lambda x, w, v: F.avg_pool2d((x * w).square(), 2) * v[:3],
    "interpolate": lambda x, w, v: F.interpolate((x * w)[None], (7, 9), mode="bilinear") * v[0],
    "pad": lambda x, w, v: F.pad(x * w, (2, 1), mode="reflect").square() * v[1],
    "pixel_shuffle": lambda x, w, v: F.pixel_shuffle((x * w).reshape(2, 4, 3, 3), 2).square() * v[0],
    "unfold": lambda x, w, v: F.unfold((x * w)[:, None], (2, 3)).square() * v[:, None][:6],
    "mse": lambda x, w, v: F.mse_loss(x * v, w.expand_as(x), reduction="none"),
    "huber": lambda x, w, v: F.huber_loss(x * v, w.expand_as(x), delta=0.5),
    "bce": lambda x, w, v: (
        F.binary_cross_entropy_with_logits(x, w.sigmoid().expand_as(x), pos_weight=v.detach().square()) * v.sum()
    ),
    "cross_entropy": lambda x, w, v: (
        F.cross_entropy(x * w, (x[:, 0] > 0).long(), v[:4].detach().square() + 0.1) * v.sum()
    ),
    "kl_div": lambda x, w, v: F.kl_div(
        x.log_softmax(-1), (w * v).log_softmax(-1).expand_as(x), reduction="sum", log_target=True
    ),
    "cosine": lambda x, w, v: F.cosine_similarity(x, w * v, dim=-1),
    "cdist": lambda x, w, v: torch.cdist(x, (w * v).expand_as(x) + 4),
    "solve": lambda x, w, v: torch.linalg.solve(w @ w.t() + 4 * torch.eye(4, device=w.device), x) * v,
    "det": lambda x, w, v: torch.linalg.det(x @ x.mT / 8 + torch.eye(4, device=x.device)) * (w * v).sum(),
    "cholesky": lambda x, w, v: torch.linalg.cholesky(x @ x.mT + 4 * torch.eye(4, device=x.device)) * (w @ v),
    "embedding": lambda x, w, v: F.embedding(torch.tensor([[1, 3, 1]], device=x.device), w * v) * x[:, :3],
}
_NAMES = ("x", "w", "v")


def _wanted(form: Any, given: Any, wanted: tuple[int, ...]) -> Any:
    """Return the gradients of the operands that want one, the others being constants."""
    leaves = [leaf(one) if place in wanted else one.detach() for place, one in enumerate(given)]
    form(*leaves).square().sum().backward()
    return [one.grad for one in leaves]


def _each_wanted(form: Any) -> Any:
    """Ask for the gradients of each operand alone, and of each two: what the others want must not matter."""
    subsets = [which for count in (1, 2) for which in itertools.combinations(range(len(_NAMES)), count)]
    return lambda *given: {
        "-".join(_NAMES[place] for place in which): attempt(lambda which=which: _wanted(form, given, which))
        for which in subsets
    }


def _second(form: Any) -> Any:
    """Ask for the gradient of the gradient's square, towards every operand, of the value and of what came back."""

    def act(*given: torch.Tensor) -> Any:
        def answer() -> Any:
            leaves = [leaf(one) for one in given]
            value = form(*leaves)
            back = leaf(torch.ones_like(value))
            first = torch.autograd.grad(value, leaves, back, create_graph=True, allow_unused=True)
            total = sum(one.square().sum() for one in first if one is not None)
            return torch.autograd.grad(total, (*leaves, back), allow_unused=True)

        return attempt(answer, gap=_OF_MPS)

    return act


for _name, _form in _PLAIN.items():
    # No back end has a second derivative of cdist.
    for _kind, _make in (("wanted", _each_wanted), *((("second", _second),) if _name != "cdist" else ())):
        cases.add(
            f"neural-{_kind}-{_name}",
            _make(_form),
            make=lambda d: (d.normal(3, 4, 6), d.normal(4, 6), d.normal(6)),
            terms=64,
            factor=16.0,
            floor=1.0,
            states=("fresh",),
            may_be_missing=True,
        )
