"""Ways to call what is right otherwise: in inference, deterministic, by a default device, masked, read by Python."""

from __future__ import annotations

import copy
import re
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import filled, leaf
from device_suite.answers import attempt
from device_suite.limits import add_table

cases = Cases("conditions")


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
        F.scaled_dot_product_attention(x, x, x, attn_mask=_blind(x)),
        F.scaled_dot_product_attention(
            x, x, x, attn_mask=torch.zeros_like(x[0, 0, :, :5]).masked_fill(~_blind(x), -9.0)
        ),
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


def _blind(x: torch.Tensor) -> torch.Tensor:
    """Return a mask that hides everything from one query."""
    return torch.arange(5, device=x.device)[:, None].ne(1) & torch.ones(5, 5, dtype=torch.bool, device=x.device)


def _put(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor([3, 3, 0], device=x.device), x.flatten()[:3] * 2


def _recurrent(module: torch.nn.Module, x: torch.Tensor) -> list[Any]:
    answer = filled(module, x)(x[0, :3])
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
        terms=256,
        deterministic=False,
    )


# A default device: modules, optimisers, factories and drawn numbers without a word about where.
def _within(form: Any, run: Any, x: torch.Tensor) -> Any:
    with torch.device(run.device):
        return form(run.cast(torch.float32), x)


def _by_default(form: Any, run: Any, x: torch.Tensor) -> Any:
    torch.set_default_device(run.device)
    try:
        return form(run.cast(torch.float32), x)
    finally:
        torch.set_default_device(None)


def _trained(make: Any, dtype: torch.dtype, x: torch.Tensor) -> Any:
    module = torch.nn.Sequential(
        torch.nn.Linear(5, 4, dtype=dtype), torch.nn.ReLU(), torch.nn.LayerNorm(4, dtype=dtype)
    )
    with torch.no_grad():
        for number, one in enumerate(module.parameters()):
            one.copy_(torch.linspace(-0.5, 0.5, one.numel(), dtype=dtype).roll(number).view_as(one))
    optimiser = make(module.parameters())
    for _ in range(2):
        optimiser.zero_grad()
        module(x).square().sum().backward()
        optimiser.step()
    return [one.detach() for one in module.parameters()]


_BY_DEFAULT: dict[str, Any] = {
    "made": lambda dtype, x: [
        torch.zeros(2, 3, dtype=dtype) + x[:2, :3],
        torch.arange(5) + x[0].long(),
        torch.eye(4, dtype=dtype) @ x,
        torch.full((5,), 2.5, dtype=dtype) * x,
        torch.linspace(0, 1, 5, dtype=dtype) + x,
        torch.tensor([1.0, 2, 3, 4, 5], dtype=dtype) * x,
        torch.hann_window(5, dtype=dtype) * x,
        torch.tril_indices(3, 3),
        torch.empty(3, 5, dtype=dtype).copy_(x[:3]),
    ],
    "indexed": lambda dtype, x: [x[torch.tensor([2, 0])], x.index_select(1, torch.arange(3)), x[torch.ones(4).bool()]],
    "masked": lambda dtype, x: torch.where(torch.ones(4, 5).tril().bool(), x, torch.tensor(0.0, dtype=dtype)),
    "drawn": lambda dtype, x: [torch.rand(3, 4).shape, torch.randn(2).shape, torch.randperm(9).sort()[0]],
    "lost": lambda dtype, x: torch.nn.CrossEntropyLoss(weight=torch.ones(5, dtype=dtype))(x, torch.arange(4)),
    "decoded": lambda dtype, x: F.one_hot(torch.arange(4), 6),
    "attended": lambda dtype, x: F.scaled_dot_product_attention(
        x[None], x[None], x[None], torch.nn.Transformer.generate_square_subsequent_mask(4, dtype=dtype)
    ),
    "SGD": lambda dtype, x: _trained(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.5), dtype, x),
    "AdamW": lambda dtype, x: _trained(lambda p: torch.optim.AdamW(p, lr=0.1), dtype, x),
    "AdamW-single": lambda dtype, x: _trained(lambda p: torch.optim.AdamW(p, lr=0.1, foreach=False), dtype, x),
    "RMSprop": lambda dtype, x: _trained(lambda p: torch.optim.RMSprop(p, lr=0.1), dtype, x),
}
for _name, _set in (("within", _within), ("by-default", _by_default)):
    cases.add(
        f"condition-limit-way-device-{_name}",
        lambda run, x, set=_set: {
            name: attempt(lambda form=form: set(form, run, x)) for name, form in _BY_DEFAULT.items()
        },
        make=lambda d: (d.normal(4, 5),),
        terms=256,
        factor=16.0,
        floor=1.0,
        states=("fresh",),
        may_be_missing=True,
        since="2.1",
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
