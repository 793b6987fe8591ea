"""What upstream itself expects of its samples on MPS: lists in wheels since 2.8, filled on a Mac only."""

from __future__ import annotations

import copy
from typing import Any

import torch

_TESTS = ("test_output_match", "test_output_grad_match")


def upstream_expects(op: Any, dtype: torch.dtype, device: str) -> str | None:
    """Return "expectedFailure" or "skip" where upstream's own comparison with the CPU says so; else None.

    A private interface: where it is absent or another, nothing is expected, and a wrong answer is a failure.
    """
    if device != "mps":  # TestConsistency is about MPS alone
        return None
    try:
        marks = [
            mark for test in _TESTS for mark in _marked(op).get_decorators("TestConsistency", test, device, dtype, {})
        ]
    except Exception:
        return None
    kinds = {_kind(mark) for mark in marks}
    return next((kind for kind in ("skip", "expectedFailure") if kind in kinds), None)


def _marked(op: Any) -> Any:
    from torch.testing._internal import common_mps

    (changed,) = common_mps.mps_ops_grad_modifier(common_mps.mps_ops_modifier([copy.copy(op)]))
    return changed


def _kind(mark: Any) -> str:
    # unittest.skip("...") is a closure called `skip.<locals>.decorator`.
    name = getattr(mark, "__qualname__", "")
    return "skip" if name == "skip" or name.startswith("skip.<locals>") else str(name)
