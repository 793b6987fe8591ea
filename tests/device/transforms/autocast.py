"""Under autocast: the answer's dtype is what the lists of the device say, its value that of float32."""

from __future__ import annotations

from typing import Any

import torch

from engine import comparison
from engine.compare import Error, Leaf, Mismatch, compare_leaf
from engine.description import Operator
from engine.reference import Truth, own_answers
from engine.runs import Bench
from engine.transformation import Call, Factor, Transformation


class _Autocast(Transformation):
    name, graphs, share = "autocast", 1.8, 0.7
    within = "torch.autocast(device, dtype={autocast}, enabled=cast)"

    def applies(self, operator: Operator) -> bool:
        return super().applies(operator) and torch.float32 in operator.kinds

    def factors(self, operator: Operator) -> list[Factor]:
        return [("@autocast", (torch.bfloat16, torch.float16))]

    def perform(self, call: Call, run: Any, truth: Truth | None) -> list[Any]:
        return super().perform(call.changed(dtype=torch.float32), run, None)

    def policy(self, call: Call, bench: Any, truth: Truth) -> Any:
        """Return answers whose dtypes are right on the device; None where they cannot be known."""
        own = own_answers(truth)
        if bench.device.type == "cpu":
            return own
        known = _by_policy(self, call, Bench(torch.device("cpu")), truth)
        if known is not None and _dtypes(known) != _dtypes(own):
            return None  # of what it is made of, as affine_grid, fake tensors see nothing
        return _by_policy(self, call, bench, truth)

    def dtypes(self, call: Call, bench: Any, truth: Truth, results: list[Any]) -> list[torch.dtype]:
        """Return the dtypes that a script demands: of the device's lists, or else of the CPU's."""
        policy = self.policy(call, bench, truth)
        known = results if policy is None else [one for one, _ in policy]
        return [one.dtype for one in known if isinstance(one, torch.Tensor)]

    def judge(self, call: Call, bench: Any, truth: Truth, answer: Any) -> Error:
        if isinstance(answer, Exception):
            return comparison.judge(call.operator, call.row, bench, truth, answer)
        low, own = call.levels["@autocast"], own_answers(truth)
        policy = self.policy(call, bench, truth)
        if len(answer) != len(truth.answers):
            raise Mismatch(f"{len(answer)} answers, the CPU gives {len(truth.answers)}")
        worst = Error()
        for number, ((got, _), want) in enumerate(zip(answer, truth.answers)):
            if not isinstance(got, torch.Tensor) or not got.dtype.is_floating_point:
                continue
            expected = policy[number][0].dtype if policy is not None else None
            if expected is not None and got.dtype != expected:
                raise Mismatch(f"answer {number}: dtype {got.dtype}, autocast's lists give {expected}")
            path = f"answer {number}"
            opinion = Leaf(path, own[number][0].to(low))
            error = compare_leaf(Leaf(path, got.to(low)), Leaf(path, want), lambda opinion=opinion: opinion, **_BOUNDS)
            worst = max(worst, error, key=lambda one: one.max_rel_scaled)
        return worst


_BOUNDS: Any = {"terms": 4, "factor": 16.0, "floor": 0.0}


def _by_policy(transformation: Transformation, call: Call, bench: Any, truth: Truth) -> Any:
    """Return what the call answers of fake tensors on the device: dtypes count. None where that cannot be known."""
    try:
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.utils._python_dispatch import TorchDispatchMode

        key = {"cuda": "CUDA", "mps": "MPS"}.get(bench.device.type, "CPU")
        made_of_others = []

        class Watched(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                made_of_others.append(func.namespace == "aten" and _is_made_of_others(func.name(), key))
                return func(*args, **(kwargs or {}))

        run = bench.device_run()
        with FakeTensorMode(allow_non_fake_inputs=True), Watched():
            found = [(one, "") for one in transformation.perform(call, run, truth)]
    except Exception:  # private modules, and a back end's own limits
        return None
    return None if any(made_of_others) else found


def _dtypes(answers: Any) -> list[Any]:
    return [getattr(one, "dtype", None) for one, _ in answers]


def _is_made_of_others(name: str, key: str) -> bool:
    """Say whether an operator calls others on a device, below autocast, as linalg_pinv does.

    On the device each of those is cast again; to fake tensors none of them is seen.
    """
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return bool(has(name, "CompositeExplicitAutogradNonFunctional") and not has(name, key))


transformation = _Autocast()
