"""Rule 3: numbers that are all shifted: what takes away the largest one, or the mean, is what it was.

log_softmax of float16 near -20000 along another dimension than the last was -inf: the largest number was looked for
from zero on, https://github.com/pytorch/pytorch/issues/158310
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import ONCE, each

cases = Cases("conditions")
_SIDES = (4, 3, 5)


Form = Callable[[torch.Tensor], Any]


def _softened() -> dict[str, Form]:
    """Ask along each dimension; gradients too."""
    forms: dict[str, Form] = {
        "cross_entropy": lambda x: derived(lambda y: F.cross_entropy(y.reshape(12, 5), _places(y, 12, 5)), x),
        "images": lambda x: F.cross_entropy(x, _places(x, 20, 3).view(4, 5), reduction="none"),
        "smoothed": lambda x: F.cross_entropy(x.reshape(12, 5), _places(x, 12, 5), label_smoothing=0.25),
    }
    for dim in range(3):
        forms[f"softmax-{dim}"] = lambda x, dim=dim: derived(lambda y: y.softmax(dim), x)
        forms[f"log_softmax-{dim}"] = lambda x, dim=dim: derived(lambda y: y.log_softmax(dim), x)
        forms[f"softmin-{dim}"] = lambda x, dim=dim: F.softmin(x, dim)
        # Beside the largest number: else its own size is the scale, and hides the rest.
        forms[f"logsumexp-{dim}"] = lambda x, dim=dim: x.logsumexp(dim) - x.amax(dim)
        forms[f"largest-{dim}"] = lambda x, dim=dim: [x.amax(dim), x.max(dim)[0], x.amin(dim), x.cummax(dim)[0]]
    return forms


def _places(x: torch.Tensor, count: int, classes: int) -> torch.Tensor:
    return torch.arange(count, device=x.device) % classes


def _normed() -> dict[str, Form]:
    forms: dict[str, Form] = {
        "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
        "group_norm": lambda x: F.group_norm(x, 1),
        "instance_norm": F.instance_norm,
        "all": lambda x: [x.var(), x.std()],
        "cov": lambda x: torch.cov(x.reshape(4, 15)),
        "corrcoef": lambda x: torch.corrcoef(x.reshape(4, 15)),
    }
    for dim in (0, 1, 2, (0, 2), (1, 2), (0, 1, 2)):
        forms[f"var-{dim}"] = lambda x, dim=dim: [x.var(dim), x.var(dim, correction=2, keepdim=True)]
        forms[f"std-{dim}"] = lambda x, dim=dim: x.std(dim, correction=0)
        forms[f"var_mean-{dim}"] = lambda x, dim=dim: torch.var_mean(x, dim, correction=0)[0]
    for dim in range(3):
        forms[f"layer_norm-{dim}"] = lambda x, dim=dim: F.layer_norm(x, x.shape[dim:])
    return forms


def _both_ways(forms: dict[str, Form], x: torch.Tensor) -> Any:
    return [each(forms, x), each(forms, x.permute(2, 0, 1).contiguous().permute(1, 2, 0))]


_SHIFTS = (0.0, 100.0, 1000.0, 20_000.0, -100.0, -1000.0, -20_000.0)


def _steps(shift: float, dtype: torch.dtype) -> Callable[[Any], tuple[torch.Tensor, ...]]:
    """Draw whole steps of what the dtype holds at the shift: the shifted numbers are exact."""
    step = max(2.0**-3, abs(shift) * torch.finfo(dtype).eps)
    step = 2.0 ** torch.tensor(step).log2().ceil().item()
    return lambda d: (((d.distinct(*_SIDES) % 9 - 4) * step + shift).to(dtype),)


for _dtype in (torch.float32, torch.float16, torch.bfloat16):
    for _kind, _forms in (("softmax", _softened()), ("norms", _normed())):
        # Squares of the halves' steps there are past float16, and their means are roundings: float32 alone.
        if _kind == "norms" and _dtype != torch.float32:
            continue
        for _shift in _SHIFTS:
            cases.add(
                f"condition-limit-shifted-{_kind}-{str(_dtype)[6:]}-{_shift:g}",
                lambda x, forms=_forms: _both_ways(forms, x),
                make=_steps(_shift, _dtype),
                terms=4,
                floor=1.0,
                # A mean is a rounding off, of the shift's own size; the largest number is exact.
                factor=64.0 + 4 * abs(_shift) if _kind == "norms" else 4.0,
                states=ONCE,
                may_be_missing=True,
            )
