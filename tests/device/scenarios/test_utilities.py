"""What stands around a model: nn.utils, parametrizations, initial values, hooks, averages, batches."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import rnn as packed

from engine import Cases
from engine.acts import filled, leaf, learned
from engine.answers import each

cases = Cases("scenarios")


def _hooked(x: torch.Tensor) -> Any:
    seen: list[Any] = []
    module = filled(nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)), x)
    module[0].register_forward_hook(lambda _, given, out: seen.append(out.detach().clone()))
    module[1].register_full_backward_hook(lambda _, inward, outward: seen.append(outward[0].detach().clone()))
    module[2].register_forward_pre_hook(lambda _, given: (given[0] * 2,))
    start = leaf(x)
    start.register_hook(lambda grad: grad * 3)
    middle = module[0](start)
    middle.retain_grad()
    module[2](module[1](middle)).sum().backward(retain_graph=True)
    return [seen, start.grad, middle.grad]


def _scheduled(x: torch.Tensor) -> Any:
    module = filled(nn.Linear(5, 4), x)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.5, momentum=0.5)
    planned = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.5, total_steps=4)
    for _ in range(3):
        optimiser.zero_grad()
        module(x).square().mean().backward()
        norm = nn.utils.clip_grad_norm_(module.parameters(), 0.5)
        nn.utils.clip_grad_value_(module.parameters(), 0.25)
        optimiser.step()
        planned.step()
    return [list(module.parameters()), norm, planned.get_last_lr()]


def _grown(x: torch.Tensor) -> Any:
    scale, steps = torch.full((1,), 8.0, device=x.device), torch.zeros(1, dtype=torch.int32, device=x.device)
    seen = []
    for found in (0.0, 0.0, 1.0, 0.0, 0.0, 0.0):
        torch._amp_update_scale_(scale, steps, torch.full((1,), found, device=x.device), 2.0, 0.5, 2)
        seen += [scale.clone(), steps.clone()]
    return seen


def _batches(x: torch.Tensor) -> Any:
    data = torch.utils.data.TensorDataset(x.cpu(), torch.arange(len(x)))
    loaded = torch.utils.data.DataLoader(data, batch_size=3)
    return [[one.to(x.device, non_blocking=True) * 2 for one in batch] for batch in loaded]


def _sequences(x: torch.Tensor) -> Any:
    rows = [x[0, :3], x[1, :5], x[2, :1]]
    padded = packed.pad_sequence(rows, batch_first=True, padding_value=-1)
    lengths = torch.tensor([3, 5, 1])
    one = packed.pack_sequence(rows, enforce_sorted=False)
    back, sizes = packed.pad_packed_sequence(one, batch_first=True)
    return [padded, one.data, back, sizes, *packed.unpad_sequence(padded, lengths, batch_first=True)]


_WRAPPED: dict[str, Any] = {
    "hooks": _hooked,
    "schedule": _scheduled,
    "grown": _grown,
    "batches": _batches,
    "sequences": _sequences,
    "state": lambda x: filled(nn.LSTM(5, 3), x).load_state_dict(
        {n: p.cpu() * 2 for n, p in filled(nn.LSTM(5, 3), x).state_dict().items()}
    ),
}
_MODULES: dict[str, Any] = {
    "ctc": lambda x: F.ctc_loss(
        x.log_softmax(1)[:, None], torch.tensor([[1, 2]]), torch.tensor([6]), torch.tensor([2]), reduction="none"
    ),
    "fractional": lambda x: F.fractional_max_pool2d(
        x[None, None], 2, output_size=(3, 2), _random_samples=torch.full((1, 1, 2), 0.4, dtype=x.dtype, device=x.device)
    ),
    "embedding_bag": lambda x: learned(_Bag(filled(nn.EmbeddingBag(6, 3, mode="sum"), x)), x[:, :2].abs()),
}


class _Bag(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, weights: torch.Tensor) -> Any:
        places = torch.arange(weights.numel(), device=weights.device).reshape(weights.shape) % 6
        return self.inner(places, per_sample_weights=weights)


for _name, _table in (("around", _WRAPPED), ("modules", _MODULES)):
    cases.add(
        f"neural-utilities-{_name}",
        lambda x, table=_table: each(table, x),
        make=lambda d: (d.normal(6, 5),),
        terms=256,
        factor=16.0,
        floor=1.0,
        states=("fresh",),
        deterministic=False,
        may_be_missing=True,
        since="2.4",
        anywhere=True,
    )
