"""Upstream's samples as bases and views: the whole storage travels, the view is made on the device.

`.to(device)` would drop offsets, gaps and expansion, which is what upstream's own test does and why it misses layouts.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Callable

import torch

from .layouts import LAYOUTS

# A fixed rule: enough to meet each kind of argument, small enough that a slow operator costs seconds.
_LISTED = 60
_ELEMENTS = 20_000
ODD_LAYOUTS = ("step2", "transposed")


@dataclass(frozen=True)
class Slot:
    """Where a tensor stood among the arguments: which base it is a view of, and how it is cut."""

    index: int
    size: Any
    stride: Any
    offset: int
    wants_gradient: bool

    def cut(self, bases: list[Any], *, gradients: bool) -> torch.Tensor:
        """Return the view, as a leaf where a gradient is wanted."""
        view = torch.as_strided(bases[self.index], self.size, self.stride, self.offset)
        return view.detach().requires_grad_() if gradients and self.wants_gradient else view


@dataclass(frozen=True)
class Sample:
    """One call: flat bases on the host, and its arguments with a slot for each tensor."""

    bases: list[Any]
    input: Any
    args: Any
    kwargs: Any
    process: Callable[[Any], Any]
    broadcasts_input: bool
    layout: str

    def arguments(self, run: Any, bases: list[Any], *, gradients: bool) -> Any:
        """Return (input, args, kwargs) for a run; dtypes and devices are the run's."""

        def fill(value: Any) -> Any:
            if isinstance(value, Slot):
                return value.cut(bases, gradients=gradients)
            if isinstance(value, torch.dtype):
                return run.cast(value)
            return run.device if isinstance(value, torch.device) else value

        kwargs = map_values(self.kwargs, fill)
        if "device" in kwargs:
            kwargs["device"] = run.device
        return map_values(self.input, fill), map_values(self.args, fill), kwargs

    @property
    def elements(self) -> int:
        """Return how many elements its largest base holds."""
        return max((int(base.numel()) for base in self.bases), default=0)


def draw_samples(op: Any, dtype: torch.dtype, count: int, *, seed: int) -> list[Sample]:
    """Return up to `count` of upstream's samples, evenly spaced, each as drawn and in another layout."""
    _seed_all(seed)
    gradients = bool(getattr(op, "supports_autograd", False)) and dtype.is_floating_point
    listed = []
    for drawn in op.sample_inputs("cpu", dtype, requires_grad=gradients):
        if _can_be_asked(drawn):
            listed.append(drawn)
        if len(listed) == _LISTED:
            break
    last = len(listed) - 1
    chosen = sorted({round(last * one / max(count - 1, 1)) for one in range(count)}) if listed else []
    samples = []
    for turn, place in enumerate(chosen):
        samples.append(_place(listed[place], "as drawn"))
        if samples[-1].bases:
            samples.append(_place(listed[place], ODD_LAYOUTS[turn % len(ODD_LAYOUTS)]))
    return samples


def map_values(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return nested arguments with every value changed; sizes and named tuples keep their type."""
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_values(item, change) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(map_values(item, change) for item in value)
    if isinstance(value, dict):
        return {key: map_values(item, change) for key, item in value.items()}
    return change(value)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return the tensors of nested values, in order."""
    found: list[torch.Tensor] = []
    map_values(value, lambda one: found.append(one) if isinstance(one, torch.Tensor) else None)
    return found


def _place(drawn: Any, layout: str) -> Sample:
    bases: list[Any] = []
    slot = _as_drawn if layout == "as drawn" else lambda tensor, into: _in_layout(tensor, into, layout)

    def change(value: Any) -> Any:
        return slot(value, bases) if isinstance(value, torch.Tensor) else value

    parts = map_values(drawn.input, change), map_values(drawn.args, change), map_values(drawn.kwargs, change)
    return Sample(bases, *parts, drawn.output_process_fn_grad, bool(drawn.broadcasts_input), layout)


def _as_drawn(tensor: torch.Tensor, bases: list[Any]) -> Slot:
    """Return the slot of a tensor in its own storage, from its first element to its last."""
    whole = tensor.detach()
    start = int(whole.storage_offset())
    reach = sum((side - 1) * step for side, step in zip(whole.shape, whole.stride()))
    end = start + reach + 1 if whole.numel() else start
    bases.append(torch.as_strided(whole, (end,), (1,), 0).clone())
    return Slot(len(bases) - 1, tuple(whole.shape), tuple(whole.stride()), start, bool(tensor.requires_grad))


def _in_layout(tensor: torch.Tensor, bases: list[Any], layout: str) -> Slot:
    """Return the slot of a tensor with the same values in a gapped or transposed view; between them lie others."""
    whole = tensor.detach()
    shape = tuple(whole.shape)
    place = LAYOUTS[layout]
    base = torch.ones(place.base(shape), dtype=whole.dtype)
    view = place.cut(base, shape)
    view.copy_(whole)
    flat = torch.as_strided(base, (base.numel(),), (1,), 0)
    bases.append(flat)
    return Slot(
        len(bases) - 1, tuple(view.shape), tuple(view.stride()), int(view.storage_offset()), bool(tensor.requires_grad)
    )


def _can_be_asked(drawn: Any) -> bool:
    """Say whether a sample is small and plain, and runs on the device at all."""
    tensors = tensors_in((drawn.input, drawn.args, drawn.kwargs))
    if not tensors:
        return "device" in drawn.kwargs
    return all(one.layout == torch.strided and not one.is_quantized and one.numel() <= _ELEMENTS for one in tensors)


def _seed_all(seed: int) -> None:
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    try:
        import numpy
    except ImportError:
        return
    numpy.random.seed(seed)
