"""No transform of two dimensions and more is asked of the CPU with steps: MKL would write past its own memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from suite_in_process import Suite


class _Steps(TorchDispatchMode):
    """Counts such calls, and answers them without steps."""

    seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._fft_c2c.default and len(args[1]) > 1:
            steps = [args[0].stride(dim) for dim, side in enumerate(args[0].shape) if side > 1]
            if len(steps) > 1 and min(steps) > 1:
                self.seen += 1
                args = (args[0].contiguous(), *args[1:])
        return func(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite()


def _steps(act: Any) -> int:
    mode = _Steps()
    with mode:
        act()
    return mode.seen


def test_steps_are_seen() -> None:
    x = torch.randn(3, 8, dtype=torch.complex64)[:, ::2]

    assert _steps(lambda: torch.fft.fft2(x)) == 1
    assert _steps(lambda: torch.fft.fft2(x.contiguous())) == 0


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"])
def test_no_case_asks_the_cpu_for_a_transform_with_steps(name: str, suite: Suite) -> None:
    cases = [case for case in suite.cases if case.id.startswith((f"condition-fft_{name}-", "complex-fourier"))]

    assert len(cases) > 2
    assert _steps(lambda: [suite.ask(case) for case in cases]) == 0
