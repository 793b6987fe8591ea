"""Are two results the same computation? Compared before anything is timed: a wrong kernel may be a fast one."""

from __future__ import annotations

from typing import Callable, Dict

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
# A device rounds in every operation, the jitter only at the beginning.
_SPREADS = 10.0


def disagreement(
    actual: Results, expected: Results, dtype: str, *, jittered: Callable[[], Results] | None = None
) -> tuple[float, list[str]]:
    """Return the largest share of its bound that any result uses, and a line for each that is over it.

    Names begin with what they are: `out`, `loss`, or `grad:` and the parameter's name.

    Args:
        jittered: gives the reference again, from inputs and weights that are off by a rounding. Called only where a
            gradient is over its bound: a network that itself turns roundings into such differences proves nothing.
    """
    norms = {name: _norm(tensor) for name, tensor in expected.items()}
    largest = max([norm for name, norm in norms.items() if name.startswith("grad")] or [0.0])
    found = {
        name: _held_against(actual[name].float(), reference.float(), norms[name], largest, _BOUNDS[dtype][_kind(name)])
        for name, reference in expected.items()
    }
    over = [name for name, (share, _) in found.items() if share > 1]
    if jittered is not None and over and all(_kind(name) == "grad" for name in over):
        again = jittered()
        for name in over:
            share, line = found[name]
            spread = _norm(again[name].float() - expected[name].float()) / max(norms[name], largest * _NEGLIGIBLE)
            allowed = max(1.0, _SPREADS * spread / _BOUNDS[dtype]["grad"][0])
            found[name] = (share / allowed, f"{line}; roundings alone move it by {spread:.3g}")
    return max(share for share, _ in found.values()), [
        f"{name}: {line}" for name, (share, line) in found.items() if share > 1
    ]


def _kind(name: str) -> str:
    return name.partition(":")[0]


def _norm(tensor: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor.float()))


def _held_against(
    actual: torch.Tensor, reference: torch.Tensor, norm: float, largest: float, bounds: tuple[float, float]
) -> tuple[float, str]:
    whole, element = bounds
    largest = largest if norm < largest else 0.0
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
