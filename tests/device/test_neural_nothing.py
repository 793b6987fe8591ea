"""Modules and losses of a batch of nothing, and parameters that want no gradient: each alone, with what it returns."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn

from device_suite import Cases
from device_suite.answers import attempt

cases = Cases("neural")
# A recurrent net has no backward outside of training there.
_OF_CUDNN = "in training mode"


def _filled(module: nn.Module, base: torch.Tensor) -> nn.Module:
    """Give a module the base's dtype and device, and parameters drawn from the base."""
    module = module.to(base.device, base.dtype)
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(
                base.roll(number).repeat(-(-parameter.numel() // base.numel()))[: parameter.numel()].view_as(parameter)
            )
    return module


# A module of width 8, and the shape of its input behind the batch.
_MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(8, 3), (8,)),
    "bilinear": (lambda: _Two(nn.Bilinear(8, 8, 3)), (8,)),
    "conv1d": (lambda: nn.Conv1d(4, 3, 3), (4, 8)),
    "conv2d": (lambda: nn.Conv2d(2, 3, 3, padding=1), (2, 5, 8)),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2), (2, 3, 4, 8)),
    "conv_transpose2d": (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2), (2, 4, 4)),
    "layer_norm": (lambda: nn.LayerNorm(8), (5, 8)),
    "layer_norm-two": (lambda: nn.LayerNorm((5, 8)), (5, 8)),
    "rms_norm": (lambda: nn.RMSNorm(8), (5, 8)),
    "group_norm": (lambda: nn.GroupNorm(2, 4), (4, 8)),
    "batch_norm": (lambda: nn.BatchNorm1d(4), (4, 8)),
    "batch_norm-2d": (lambda: nn.BatchNorm2d(4), (4, 3, 5)),
    "instance_norm": (lambda: nn.InstanceNorm1d(4, affine=True), (4, 8)),
    "prelu": (lambda: nn.PReLU(4), (4, 8)),
    "max_pool": (lambda: nn.MaxPool2d(2), (2, 4, 8)),
    "avg_pool": (lambda: nn.AvgPool2d(2), (2, 4, 8)),
    "adaptive": (lambda: nn.AdaptiveAvgPool2d(3), (2, 4, 8)),
    "upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (2, 4, 8)),
    "softmax": (lambda: nn.Softmax(-1), (5, 8)),
    "glu": (lambda: nn.GLU(), (5, 8)),
    "flatten": (lambda: nn.Flatten(), (5, 8)),
    "lstm": (lambda: nn.LSTM(8, 3, batch_first=True), (4, 8)),
    "gru": (lambda: nn.GRU(8, 3, batch_first=True), (4, 8)),
    "lstm_cell": (lambda: nn.LSTMCell(8, 3), (8,)),
    "attention": (lambda: _Masked(nn.MultiheadAttention(8, 2, batch_first=True), None), (5, 8)),
    "attention-mask": (lambda: _Masked(nn.MultiheadAttention(8, 2, batch_first=True), "bool"), (5, 8)),
    "attention-float": (lambda: _Masked(nn.MultiheadAttention(8, 2, batch_first=True), "float"), (5, 8)),
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), (5, 8)),
}


class _Two(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> Any:
        return self.inner(x, x.flip(-1))


class _Masked(nn.Module):
    def __init__(self, inner: nn.Module, kind: str | None) -> None:
        super().__init__()
        self.inner, self.kind = inner, kind

    def forward(self, x: torch.Tensor) -> Any:
        mask: Any = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        if self.kind == "float":
            mask = torch.zeros(mask.shape, dtype=x.dtype, device=x.device).masked_fill(mask, -2.0)
        return self.inner(x, x, x, attn_mask=mask if self.kind else None, need_weights=self.kind == "float")


def _leaves(answer: Any) -> list[torch.Tensor]:
    if isinstance(answer, torch.Tensor):
        return [answer]
    return [one for each in answer or () for one in _leaves(each)]


def _run(make: Callable[[], nn.Module], base: torch.Tensor, x: torch.Tensor, frozen: str, training: bool) -> Any:
    """Return the outputs, and the gradients of the input and of the parameters that want one."""
    module = _filled(make(), base).train(training)
    for place, parameter in enumerate(module.parameters()):
        parameter.requires_grad_({"none": True, "all": False, "even": place % 2 == 1, "odd": place % 2 == 0}[frozen])
    start = x.clone().requires_grad_(frozen != "input")
    outputs = _leaves(module(start))
    total = sum(one.square().sum() for one in outputs)
    if isinstance(total, torch.Tensor) and total.requires_grad:
        total.backward()
    return outputs, start.grad, [parameter.grad for parameter in module.parameters()]


def _nothing(make: Any, shape: tuple[int, ...]) -> Any:
    return lambda base: {
        f"{frozen}-{training}": attempt(
            lambda frozen=frozen, training=training: _run(make, base, base[:0].reshape(0, *shape), frozen, training),
            gap=_OF_CUDNN,
        )
        for frozen in ("none", "all")
        for training in (False, True)
    }


def _frozen(make: Any, shape: tuple[int, ...]) -> Any:
    def act(base: torch.Tensor, x: torch.Tensor) -> Any:
        return {
            f"{frozen}-{training}": attempt(
                lambda frozen=frozen, training=training: _run(make, base, x, frozen, training),
                gap=_OF_CUDNN,
            )
            for frozen in ("all", "even", "odd")
            for training in (False, True)
        }

    return act


def _has_parameters(make: Callable[[], nn.Module]) -> bool:
    """Say whether there is something to freeze, which is so of a module that this torch does not have yet."""
    try:
        return any(True for _ in make().parameters())
    except AttributeError:
        return True


for _name, (_make, _shape) in _MODULES.items():
    _fields: dict[str, Any] = {
        "terms": 256,
        "factor": 8.0,
        "floor": 0.5,
        "states": ("fresh",),
        "may_be_missing": True,
        "since": "2.4",
    }
    cases.add(f"neural-nothing-{_name}", _nothing(_make, _shape), make=lambda d: (d.normal(24) / 4,), **_fields)
    if _has_parameters(_make):
        cases.add(
            f"neural-frozen-{_name}",
            _frozen(_make, _shape),
            make=lambda d, shape=_shape: (d.normal(24) / 4, d.normal(3, *shape)),
            **_fields,
        )
