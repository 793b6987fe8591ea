"""Are two results the same computation? Asked before anything is timed: a wrong kernel may be a fast one."""

from __future__ import annotations

from typing import Dict

import torch

Results = Dict[str, torch.Tensor]
# Largest relative error of a whole tensor (its 2-norm), and of its largest element. Gradients of a deep network pile
# rounding up; bfloat16 keeps 8 bits.
_BOUNDS: dict[str, dict[str, tuple[float, float]]] = {
    "float32": {"out": (1e-3, 1e-2), "grad": (2e-2, 1e-1), "loss": (1e-3, 1e-3)},
    "bfloat16": {"out": (5e-2, 2e-1), "grad": (2e-1, 5e-1), "loss": (2e-2, 2e-2)},
}
# A gradient that is nothing beside the others (a key's bias has none in truth) is held against the largest instead.
_NEGLIGIBLE = 1e-5


def disagreement(actual: Results, expected: Results, dtype: str) -> tuple[float, list[str]]:
    """Return the largest share of its bound that any result uses, and a line for each that is over it.

    Names begin with what they are: `out`, `loss`, or `grad:` and the parameter's name.
    """
    norms = {name: float(torch.linalg.vector_norm(tensor.float())) for name, tensor in expected.items()}
    largest_grad = max([norm for name, norm in norms.items() if name.startswith("grad")] or [0.0])
    worst, lines = 0.0, []
    for name, reference in expected.items():
        kind = name.partition(":")[0]
        whole, element = _BOUNDS[dtype][kind]
        share, line = _held_against(
            actual[name].float(),
            reference.float(),
            norms[name],
            largest_grad if kind == "grad" else 0.0,
            whole,
            element,
        )
        worst = max(worst, share)
        if share > 1:
            lines.append(f"{name}: {line}")
    return worst, lines


def _held_against(
    actual: torch.Tensor, reference: torch.Tensor, norm: float, largest: float, whole: float, element: float
) -> tuple[float, str]:
    if actual.shape != reference.shape:
        return float("inf"), f"has the shape {tuple(actual.shape)}, not {tuple(reference.shape)}"
    if not bool(torch.isfinite(actual).all()):
        return float("inf"), "holds values that are not finite"
    difference = actual - reference
    scale = max(norm, largest * _NEGLIGIBLE, 1e-30)
    relative = float(torch.linalg.vector_norm(difference)) / scale
    if norm < largest * _NEGLIGIBLE:
        return relative * _NEGLIGIBLE / whole, f"off by {relative * _NEGLIGIBLE:.3g} of the largest gradient"
    peak = float(difference.abs().max()) / max(float(reference.abs().max()), 1e-30)
    share = max(relative / whole, peak / element)
    return share, f"off by {relative:.3g} as a whole (allowed {whole:g}), {peak:.3g} at most (allowed {element:g})"
