"""PyTorch's consistency sweep over the wheel's own OpInfo database: mps against the CPU, forward and first gradient.

The wheel carries the samples, the tolerances and the failures that PyTorch expects (`torch.testing._internal`: `op_db`,
the decorators for `TestConsistency`, `common_mps`), but not the test that uses them. This is that test: class and
functions have upstream's names, since decorators and the seed of the samples go by them. As upstream in 2026: samples
are drawn on mps, a short dtype that only mps has is held against float32, and an operator that draws random numbers
is held to shape, dtype and layout (https://github.com/pytorch/pytorch/pull/182903). Where an operator has no gradient,
only its forward is tested.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path

import torch
from torch.testing._internal import common_utils

common_utils.IS_MACOS, common_utils.IS_LINUX = True, False  # before the database: some expectations are of macOS alone

from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops  # noqa: E402
from torch.testing._internal.common_dtype import get_all_dtypes  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.testing._internal.common_mps import mps_ops_grad_modifier, mps_ops_modifier  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

DATABASE = copy.deepcopy(op_db)
DTYPES = [each for each in get_all_dtypes() if each not in (torch.float64, torch.complex128)]
GRADIENT_DTYPES = [torch.float16, torch.float32]
# What the CPU computes in where it does not have a short dtype that mps has; whole numbers it refuses, as expected.
UPCAST = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}
# Tolerances that stand in upstream's test file alone, as known in 2026 (https://github.com/pytorch/pytorch/pull/121754,
# https://github.com/pytorch/pytorch/pull/174411): (absolute, relative). The database's hold where these say nothing.
_NAMES = json.loads(Path(__file__).with_name("tolerances.json").read_text(encoding="utf-8"))
LOW_HALF, LOW_BFLOAT, PRODUCTS, LOW_FLOAT = map(frozenset, _NAMES.values())
BY_NAME = {
    "masked.mean": (7e-4, 2e-3),
    "native_layer_norm": (1e-4, 1.3e-5),
    **dict.fromkeys(("fft.rfftn", "fft.hfftn", "fft.hfft2", "fft.fft", "fft.fftn", "fft.rfft"), (3e-5, 3e-5)),
}
RANDOM = (
    *("normal", "uniform", "rand_like", "randn_like", "randint", "randint_like", "randn", "bernoulli", "exponential"),
    *("log_normal", "cauchy", "geometric", "multinomial"),
)


def _tolerances(op: object, dtype: torch.dtype) -> dict[str, float | None]:
    """Return the absolute and the relative tolerance; None: the database's, else those of the dtype."""
    half, bfloat = dtype == torch.float16, dtype == torch.bfloat16
    atol, rtol = BY_NAME.get(op.name, (None, None))
    if op.name in LOW_FLOAT and dtype in (torch.float32, torch.complex64):
        atol, rtol = 1e-4, 3e-5
    elif op.name in LOW_HALF and (half or bfloat):
        atol, rtol = (2e-2, 1e-2) if half else (5e-2, 5e-2)
    elif op.name in LOW_BFLOAT and bfloat:
        atol, rtol = 5e-2, 5e-2
    elif op.name in PRODUCTS and (half or bfloat):
        atol, rtol = 5e-2, 5e-2 if half else 1e-1
    elif op.name in ("linspace", "nn.functional.upsample_bilinear") and not (
        dtype.is_floating_point or dtype.is_complex
    ):
        atol, rtol = 1.0, 0.0
    elif op.name == "nn.functional.pad" and op.variant_test_name.startswith(("replicate", "reflect")) and half:
        atol, rtol = 1e-5, 1.5e-3
    elif op.name == "index_reduce" and op.variant_test_name in ("mean", "prod") and (half or bfloat):
        atol, rtol = 1e-2, 1e-2
    return {"atol": atol, "rtol": rtol}


def _is_random(name: str) -> bool:
    return name in RANDOM or (name.startswith("nn.functional.") and "dropout" in name)


def _upcast(op: object, dtype: torch.dtype) -> torch.dtype | None:
    """Return what the CPU computes in where it does not have this dtype."""
    # Of whole numbers these alone are no failure that upstream expects.
    other = torch.float32 if op.name == "histc" else None
    return None if op.supports_dtype(dtype, "cpu") else UPCAST.get(dtype, other)


def _on_cpu(op: object, sample: object, dtype: torch.dtype) -> object:
    """Return the sample for the CPU; what the CPU does not have in this dtype it gets in the next larger one."""
    upcast = _upcast(op, dtype)

    def moved(value: object) -> object:
        if isinstance(value, torch.Tensor):
            to = upcast if value.dtype == dtype else None
            return value.detach().to("cpu", to).requires_grad_(value.requires_grad)
        return upcast if upcast is not None and value is dtype else value

    def placed(value: object) -> object:
        return (
            "cpu" if isinstance(value, torch.device) or (isinstance(value, str) and value.startswith("mps")) else value
        )

    made = sample.transform(moved)  # of tensors and dtypes alone; a factory would run on mps both times
    made.args = tuple(map(placed, made.args))
    made.kwargs = {name: placed(value) for name, value in made.kwargs.items()}
    return made


class TestConsistency(common_utils.TestCase):
    """Upstream's name: decorators of the database are for it."""

    def _forward(self, op: object, sample: object, dtype: torch.dtype) -> tuple[tuple, tuple]:
        on_cpu = _on_cpu(op, sample, dtype)
        there = ([sample.input, *sample.args], sample.kwargs)
        here = ([on_cpu.input, *on_cpu.args], on_cpu.kwargs)
        cpu, mps = op(*here[0], **here[1]), op(*there[0], **there[1])
        if _is_random(op.name):
            for ours, theirs in zip(pytree.tree_leaves(cpu), pytree.tree_leaves(mps), strict=True):
                if isinstance(ours, torch.Tensor):
                    kinds = [(each.shape, each.layout, each.dtype) for each in (ours, theirs)]
                    self.assertEqual(*kinds)
        elif not (op.name == "unique" and not sample.kwargs.get("sorted", True)):
            self.assertEqual(_rounded(op, dtype, cpu, mps), mps, **_tolerances(op, dtype))
        return (cpu, here), (mps, there)

    @ops(mps_ops_modifier(DATABASE), allowed_dtypes=DTYPES)
    def test_output_match(self, device: str, dtype: torch.dtype, op: object) -> None:
        requires_grad = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        for sample in op.sample_inputs(device, dtype, requires_grad=requires_grad):
            self._forward(op, sample, dtype)

    # The modifier of the forward has changed its argument: its expectations hold here too, as in upstream's file.
    @ops(mps_ops_grad_modifier(copy.deepcopy(DATABASE)), allowed_dtypes=GRADIENT_DTYPES)
    def test_output_grad_match(self, device: str, dtype: torch.dtype, op: object) -> None:
        for sample in op.sample_inputs(device, dtype, requires_grad=op.supports_autograd):
            cpu, mps = self._forward(op, sample, dtype)
            if op.name == "unique" and not sample.kwargs.get("sorted", True):
                continue
            outs, ins = zip(*(_differentiable(*each) for each in (cpu, mps)), strict=True)
            self.assertEqual(*map(len, outs))
            self.assertEqual(*map(len, ins))
            if not outs[0]:
                continue
            # Drawn in double, since not every dtype can be drawn.
            to_cpu = tuple(torch.rand_like(each, dtype=torch.float64).to(each.dtype) for each in outs[0])
            to_mps = tuple(each.to("mps", there.dtype) for each, there in zip(to_cpu, outs[1], strict=True))
            given = zip(outs, ins, (to_cpu, to_mps), strict=True)
            gradients = [torch.autograd.grad(a, b, grad_outputs=c, allow_unused=True) for a, b, c in given]
            self.assertEqual(_rounded(op, dtype, *gradients), gradients[1], **_tolerances(op, dtype))


def _rounded(op: object, dtype: torch.dtype, cpu: object, mps: object) -> object:
    """Return the CPU's answer in the dtypes of that of mps, where the CPU has it in a larger one alone."""
    if _upcast(op, dtype) is None:
        return cpu
    return pytree.tree_map(lambda ours, theirs: ours.to(theirs.dtype) if _is_tensor(ours, theirs) else ours, cpu, mps)


def _is_tensor(*values: object) -> bool:
    return all(isinstance(each, torch.Tensor) for each in values)


def _differentiable(out: object, given: object) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
    """Return the outputs and the inputs that have a gradient; only what is at the top of an output counts."""
    outs = (out,) if isinstance(out, torch.Tensor) else tuple(out)
    leaves = pytree.tree_leaves(given)
    has = lambda each: isinstance(each, torch.Tensor) and each.requires_grad  # noqa: E731
    return tuple(filter(has, outs)), tuple(filter(has, leaves))


instantiate_device_type_tests(TestConsistency, globals(), allow_mps=True, only_for="mps")
