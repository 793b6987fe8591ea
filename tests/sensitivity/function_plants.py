"""Plants at public functions, above autograd: what a caller of torch.f, F.f or Tensor.f would get wrong."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_map

from generic_plants import changed

KINDS = ("scaled", "tail")


def name_of(func: Any) -> str:
    """Return the public name of a function, or "" for what has none (properties, dunders of C)."""
    try:
        return resolve_name(func) or ""
    except Exception:
        return ""


class FunctionRecorder(TorchFunctionMode):
    """Records which functions are called: `seen` those with a public name, `called` all, properties too."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, Any] = {}
        self.called: set[Any] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.called.add(func)
        name = name_of(func)
        if name and not name.endswith("__get__"):
            self.seen.setdefault(name, func)
        return func(*args, **(kwargs or {}))


class FunctionPlant(TorchFunctionMode):
    """One fault of one public function: its floating results x 1.01, or with the last element zeroed."""

    def __init__(self, target: Any, kind: str) -> None:
        super().__init__()
        self.target = target
        self.kind = kind
        self.changed = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return tree_map(self._altered, result) if func == self.target else result

    def _altered(self, x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or x.layout != torch.strided or x.numel() == 0:
            return x
        if self.kind == "scaled":
            wrong = x * 1.01 if x.is_floating_point() or x.is_complex() else x
        else:
            keep = torch.ones(x.numel(), dtype=x.dtype, device=x.device)
            keep[-1] = 0
            wrong = x & keep.view(x.shape) if x.dtype == torch.bool else x * keep.view(x.shape)
        self.changed += int(changed(x.detach(), wrong.detach()))
        return wrong
