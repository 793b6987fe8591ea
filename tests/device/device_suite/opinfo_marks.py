"""What upstream itself expects of its operators: marks in the wheel, for MPS lists that are filled on a Mac only.

A private interface: where it is absent or another, nothing is expected, and a wrong answer is a failure.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

_TESTS = ("test_output_match", "test_output_grad_match")


def upstream_expects(op: Any, dtype: torch.dtype, device: str) -> str | None:
    """Return "expectedFailure" or "skip" where upstream's own comparison of MPS with the CPU says so; else None."""
    if device != "mps":  # TestConsistency is about MPS alone
        return None
    try:
        changed = _marked(op)
        kinds = {kind for test in _TESTS for kind in _kinds(changed, "TestConsistency", test, dtype, device)}
    except Exception:
        return None
    return next((kind for kind in ("skip", "expectedFailure") if kind in kinds), None)


def upstream_excuses_out(op: Any, dtype: torch.dtype, device: str) -> bool:
    """Say whether upstream's own test of `out=` is expected to fail: some kernels ignore the destination's strides.

    narrow_copy, avg_pool3d and linear on the CPU, for example: https://github.com/pytorch/pytorch/issues/84577
    """
    try:
        return bool({"skip", "expectedFailure"} & _kinds(op, "TestCommon", "test_out", dtype, device))
    except Exception:
        return False


def _marked(op: Any) -> Any:
    from torch.testing._internal import common_mps

    (changed,) = common_mps.mps_ops_grad_modifier(common_mps.mps_ops_modifier([copy.copy(op)]))
    return changed


def _kinds(op: Any, group: str, test: str, dtype: torch.dtype, device: str) -> set[str]:
    try:
        marks = op.get_decorators(group, test, device, dtype, {})
    except TypeError:  # up to 1.12 without the parameters of the test
        marks = op.get_decorators(group, test, device, dtype)
    return {_kind(mark) for mark in marks}


def _kind(mark: Any) -> str:
    # unittest.skip("...") is a closure called `skip.<locals>.decorator`.
    name = getattr(mark, "__qualname__", "")
    return "skip" if name == "skip" or name.startswith("skip.<locals>") else str(name)
