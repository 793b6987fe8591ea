"""What one side of a row does again and again: a kernel on its inputs, or a model on its batch."""

from __future__ import annotations

import copy
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn


class Job:
    """What one side does: made on the CPU, moved once, then `step` again and again."""

    flops: float = 0.0
    bytes: float = 0.0
    slack: float = 1.0

    def round_to(self, dtype: torch.dtype) -> None:
        """Round what the work begins with, so that both sides begin with the same numbers."""
        raise NotImplementedError

    def to(self, device: torch.device, dtype: torch.dtype) -> Any:
        """Return this job on a device; the CPU's own side gets a copy too."""
        raise NotImplementedError

    def step(self) -> torch.Tensor:
        """Do the work once and return what can be read when it is done."""
        raise NotImplementedError

    def results(self) -> dict[str, torch.Tensor]:
        """Do the work once and return what it gave, on the CPU."""
        raise NotImplementedError

    def jittered(self) -> dict[str, torch.Tensor]:
        """Return the results where everything the work begins with is off by a rounding or two."""
        raise NotImplementedError


class KernelJob(Job):
    """One call of one function on inputs that stay where they are."""

    def __init__(
        self, call: Callable[..., torch.Tensor], inputs: list[torch.Tensor], *, flops: float, slack: float = 1.0
    ) -> None:
        self._call, self._inputs, self.flops, self.slack = call, inputs, flops, slack

    def round_to(self, dtype: torch.dtype) -> None:
        self._inputs = [each.to(dtype).float() for each in self._inputs]

    def to(self, device: torch.device, dtype: torch.dtype) -> KernelJob:
        moved = KernelJob(
            self._call,
            [each.to(device=device, dtype=dtype, copy=True) for each in self._inputs],
            flops=self.flops,
            slack=self.slack,
        )
        output = moved.step()
        moved.bytes = float(sum(each.numel() * each.element_size() for each in (*moved._inputs, output)))
        return moved

    def step(self) -> torch.Tensor:
        with torch.no_grad():
            return self._call(*self._inputs)

    def results(self) -> dict[str, torch.Tensor]:
        return {"out": self.step().cpu()}

    def jittered(self) -> dict[str, torch.Tensor]:
        with torch.no_grad():
            return {"out": self._call(*(_jitter(each) for each in self._inputs)).cpu()}


class ModelJob(Job):
    """A model with its batch; in training a whole step: gradients to nothing, forward, loss, backward, optimiser."""

    def __init__(self, model: nn.Module, given: torch.Tensor, wanted: torch.Tensor, mode: str, optimiser: str) -> None:
        self._model, self._given, self._wanted, self._mode = model, given, wanted, mode
        self._optimiser_name = optimiser
        self._optimiser: Any = None

    def round_to(self, dtype: torch.dtype) -> None:
        self._model.to(dtype).float()

    def to(self, device: torch.device, dtype: torch.dtype) -> ModelJob:
        given = self._given.to(device=device, dtype=dtype if self._given.is_floating_point() else None, copy=True)
        model = copy.deepcopy(self._model).to(device=device, dtype=dtype)
        moved = ModelJob(model, given, self._wanted.to(device), self._mode, self._optimiser_name)
        moved.flops, moved.slack = self.flops, self.slack
        model.train(self._mode == "training")
        if self._mode == "training":
            weights = list(model.parameters())
            moved._optimiser = {
                "SGD": lambda: torch.optim.SGD(weights, lr=1e-3, momentum=0.9),
                "Adam": lambda: torch.optim.Adam(weights, lr=1e-4),
                "AdamW": lambda: torch.optim.AdamW(weights, lr=1e-4),
            }[self._optimiser_name]()
        return moved

    def step(self) -> torch.Tensor:
        if self._mode == "inference":
            with torch.no_grad():
                return self._model(self._given)  # type: ignore[no-any-return]
        self._optimiser.zero_grad(set_to_none=True)
        self._loss(self._model(self._given)).backward()
        self._optimiser.step()
        return self._optimiser.param_groups[0]["params"][-1]  # type: ignore[no-any-return]

    def results(self) -> dict[str, torch.Tensor]:
        """Return the logits (a part of them where they are gigabytes); in training loss and gradients, no dropout."""
        if self._mode == "inference":
            return {"out": self._part(self.step())}
        drops = [module for module in self._model.modules() if isinstance(module, nn.Dropout)]
        shares = [module.p for module in drops]
        for module in drops:
            module.p = 0.0
        try:
            self._model.zero_grad(set_to_none=True)
            out = self._model(self._given)
            loss = self._loss(out)
            loss.backward()
        finally:
            for module, share in zip(drops, shares):
                module.p = share
        found = {"loss": loss.detach().reshape(1).cpu(), "out": self._part(out.detach())}
        for name, weight in self._model.named_parameters():
            found[f"grad:{name}"] = weight.grad.detach().cpu()  # type: ignore[union-attr]
        self._model.zero_grad(set_to_none=True)
        return found

    def jittered(self) -> dict[str, torch.Tensor]:
        kept = [weight.detach().clone() for weight in self._model.parameters()]
        with torch.no_grad():
            for weight in self._model.parameters():
                weight.copy_(_jitter(weight))
        try:
            return self.results()
        finally:
            with torch.no_grad():
                for weight, before in zip(self._model.parameters(), kept):
                    weight.copy_(before)

    def _loss(self, out: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(out.reshape(-1, out.shape[-1]).float(), self._wanted.reshape(-1))

    @staticmethod
    def _part(out: torch.Tensor) -> torch.Tensor:
        return out.reshape(-1, out.shape[-1])[:2048].cpu()


def _jitter(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * (1.0 + torch.finfo(tensor.dtype).eps * 4.0 * torch.randn_like(tensor))


def count_flops(model: nn.Module, given: torch.Tensor, *, training: bool) -> float:
    """Return the FLOPs of the convolutions and linear layers of one step (backward costs double the forward)."""
    total = [0.0]

    def count(module: Any, inputs: Any, out: torch.Tensor) -> None:
        if isinstance(module, nn.Conv2d):
            per_value = 2.0 * module.in_channels * module.kernel_size[0] * module.kernel_size[1]
            total[0] += per_value * out.numel()
        else:
            total[0] += 2.0 * module.in_features * out.numel()

    layers = [module for module in model.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    with torch.no_grad():
        model.eval()(given[:1])
    for hook in hooks:
        hook.remove()
    return total[0] * len(given) * (3.0 if training else 1.0)
