"""Watches a training from within: where it runs, its first losses, its first gradients."""

from __future__ import annotations

import ctypes
import hashlib
from typing import Any, Mapping

import torch

from .events import Events
from .own_work import own_work


class Observer:
    """Sees every step after its backward pass.

    Args:
        compared: so many first losses and batches are kept.
        stop_after: `done` is true after so many steps.
    """

    def __init__(self, events: Events | None, *, compared: int, stop_after: int | None = None) -> None:
        self._events = events
        self._compared = compared
        self._stop_after = stop_after
        self.steps = 0
        self.losses: list[float] = []
        self.batches: list[str] = []
        self.gradients: dict[str, torch.Tensor] = {}

    @property
    def done(self) -> bool:
        return self._stop_after is not None and self.steps >= self._stop_after

    def saw(self, model: torch.nn.Module, batch: Any, loss: torch.Tensor) -> None:
        """Take one step in, its gradients there and the optimiser not yet called."""
        self.steps += 1
        if self.steps <= self._compared:
            value, fetched = float(loss.detach().item()), fetch(batch)
            with own_work("the observer"):
                self.losses.append(value)
                self.batches.append(fingerprint(fetched))
                self._tell("step", number=self.steps, loss=value)
        if self.steps == 1:
            self.gradients = {
                plain_name(name): parameter.grad.detach().cpu().clone()
                for name, parameter in model.named_parameters()
                if parameter.grad is not None
            }
        if self.steps in (1, self._compared):
            self._tell_where(model, batch, loss)

    def ended(self, model: torch.nn.Module, batch: Any, loss: torch.Tensor) -> None:
        """Take in where the last step ran: a model that was moved away meanwhile shows here."""
        self._tell_where(model, batch, loss)

    def _tell_where(self, model: torch.nn.Module, batch: Any, loss: torch.Tensor) -> None:
        with own_work("the observer"):
            self._tell("device", **where(model, batch, loss))

    def _tell(self, event: str, **facts: Any) -> None:
        if self._events is not None:
            self._events.tell(event, **facts)


def where(model: torch.nn.Module, batch: Any, loss: torch.Tensor) -> dict[str, Any]:
    """Return on which devices a step ran, and what its device's allocator says."""
    parameters = list(model.parameters())
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return {
        "parameters": sorted({str(parameter.device) for parameter in parameters}),
        "gradients": sorted({str(gradient.device) for gradient in gradients}),
        "batch": sorted(_devices(batch)),
        "loss": str(loss.device),
        "parameter_bytes": sum(parameter.numel() * parameter.element_size() for parameter in parameters),
        "allocated_bytes": allocated_bytes(loss.device.type),
    }


def allocated_bytes(device: str) -> int | None:
    """Return what the device's allocator has given out; None where this torch does not say (MPS before 2.0)."""
    if device == "cuda":
        return int(torch.cuda.memory_allocated())
    backend: Any = getattr(torch, "mps", None) if device == "mps" else None
    if backend is not None and hasattr(backend, "current_allocated_memory"):
        return int(backend.current_allocated_memory())
    return None


def fetch(batch: Any) -> dict[str, torch.Tensor]:
    """Return a batch's tensors on the CPU: the device's part of a comparison, whose errors are the device's."""
    return {name: tensor.detach().cpu() for name, tensor in _tensors(batch)}


def fingerprint(fetched: Mapping[str, torch.Tensor]) -> str:
    """Return a digest of a batch's values: two runs that saw other data cannot be compared."""
    digest = hashlib.sha256()
    for name, whole in sorted(fetched.items()):
        real = torch.view_as_real(whole) if whole.is_complex() else whole
        values = (real.float() if real.dtype.is_floating_point else real.long()).contiguous()
        digest.update(f"{name} {tuple(values.shape)}".encode())
        if values.numel():  # not by NumPy, which an environment with torch need not have
            digest.update((ctypes.c_char * (values.numel() * values.element_size())).from_address(values.data_ptr()))
    return digest.hexdigest()[:16]


def plain_name(name: str) -> str:
    """Return a parameter's name without what wrapping (DDP, torch.compile) put before it."""
    for prefix in ("module.", "_orig_mod."):
        if name.startswith(prefix):
            name = name[len(prefix) :]
    return name


def _tensors(batch: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        return [("", batch)]
    items = batch.items() if isinstance(batch, Mapping) else enumerate(batch)
    return [(str(name), value) for name, value in items if isinstance(value, torch.Tensor)]


def _devices(batch: Any) -> set[str]:
    return {str(tensor.device) for _, tensor in _tensors(batch)}
