"""Load torch and its companions and compute with them: run by the venv's own Python, which has nothing of ours.

usage: smoke.py RESULT.json [--expect-mps-kernels] NAME ...

What the operators answer is compared with plain Python, written from their definitions.
"""

from __future__ import annotations

import importlib
import json
import math
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Tuple  # noqa: UP035  # the venv's Python may be 3.8

Box = Tuple[float, float, float, float]  # noqa: UP006
# No ratio of small whole numbers: float32 and float64 then agree on which side an overlap lies.
THRESHOLDS = (0.2137, 0.4567, 0.7331)


def kept_boxes(boxes: Sequence[Box], scores: Sequence[float], threshold: float) -> list[int]:
    """Return what non-maximum suppression keeps: best first, and none that overlaps a better one by more."""
    kept: list[int] = []
    for index in sorted(range(len(boxes)), key=lambda each: -scores[each]):
        if all(overlap(boxes[index], boxes[better]) <= threshold for better in kept):
            kept.append(index)
    return kept


def overlap(one: Box, other: Box) -> float:
    """Return intersection over union of two boxes (x1, y1, x2, y2)."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(width, 0.0) * max(height, 0.0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return shared / (areas - shared)


def filtered(samples: Sequence[float], a: Sequence[float], b: Sequence[float]) -> list[float]:
    """Return a signal through the filter sum(a[k] y[n-k]) = sum(b[k] x[n-k])."""
    out: list[float] = []
    for n in range(len(samples)):
        forward = sum(b[k] * samples[n - k] for k in range(len(b)) if k <= n)
        back = sum(a[k] * out[n - k] for k in range(1, len(a)) if k <= n)
        out.append((forward - back) / a[0])
    return out


def draw_boxes(draw: random.Random, count: int) -> tuple[list[Box], list[float]]:
    """Return crowded boxes on whole numbers, which float32 holds exactly, and scores of which no two are equal."""
    corners = [(draw.randrange(60), draw.randrange(60)) for _ in range(count)]
    boxes = [(float(x), float(y), float(x + draw.randint(5, 40)), float(y + draw.randint(5, 40))) for x, y in corners]
    return boxes, [float(score) for score in draw.sample(range(10 * count), count)]


def check_nms(nms: Callable[[list[Box], list[float], float], list[int]], *, where: str) -> int:
    """Compare an implementation with the plain one; return how many cases agreed."""
    draw = random.Random(20261121)
    cases = 0
    for count in (1, 2, 17, 120):
        for threshold in THRESHOLDS:
            boxes, scores = draw_boxes(draw, count)
            found, wanted = nms(boxes, scores, threshold), kept_boxes(boxes, scores, threshold)
            if found != wanted:
                raise SystemExit(f"torchvision::nms on {where} keeps {found} of {count} boxes; right is {wanted}")
            cases += 1
    return cases


def check_filter(lfilter: Callable[[list[float], list[float], list[float]], list[float]], *, where: str) -> float:
    """Compare an implementation with the plain one; return the largest difference."""
    draw = random.Random(20261121)
    samples = [draw.uniform(-1, 1) for _ in range(300)]
    a, b = [1.0, -0.8, 0.2], [0.3, 0.4, 0.1]
    found, wanted = lfilter(samples, a, b), filtered(samples, a, b)
    if len(found) != len(wanted):
        raise SystemExit(f"{where} answers {len(found)} samples, not {len(wanted)}")
    worst = max(abs(one - other) for one, other in zip(found, wanted))  # noqa: B905  # torch 1.12's Python has no strict
    if not math.isfinite(worst) or worst > 1e-9:
        raise SystemExit(f"{where} differs from the plain filter by {worst}")
    return worst


def operators(torch: Any, namespace: str) -> list[str]:
    """Return the operators that a companion has registered."""
    names = {schema.name for schema in torch._C._jit_get_all_schemas()}
    found = sorted(name for name in names if name.startswith(f"{namespace}::"))
    if not found:
        raise SystemExit(f"no operator {namespace}::... is registered: its C++ was not loaded")
    return found


def smoke_torchvision(torch: Any, *, expect_mps: bool) -> dict[str, Any]:
    """Compare `torchvision::nms` with known boxes on the CPU and, if there is one, on MPS.

    Raises:
        SystemExit: the operator or its MPS kernel is missing, or it keeps the wrong boxes.
    """
    torchvision: Any = importlib.import_module("torchvision")
    found = operators(torch, "torchvision")
    if "torchvision::nms" not in found:
        raise SystemExit(f"torchvision::nms is not registered; there are: {', '.join(found)}")
    keys = [
        key for key in ("CPU", "MPS", "CUDA") if torch._C._dispatch_has_kernel_for_dispatch_key("torchvision::nms", key)
    ]
    if expect_mps and "MPS" not in keys:
        raise SystemExit(f"torchvision::nms has kernels for {', '.join(keys)}, and none for MPS (FORCE_MPS)")
    devices = ["cpu"]
    if "MPS" in keys and torch.backends.mps.is_available():
        devices.append("mps")
    cases = 0
    for device in devices:
        for operator in (torch.ops.torchvision.nms, torchvision.ops.nms):

            def nms(
                boxes: list[Box],
                scores: list[float],
                threshold: float,
                operator: Any = operator,
                device: str = device,
            ) -> list[int]:
                tensors = (torch.tensor(values, dtype=torch.float32, device=device) for values in (boxes, scores))
                answer: list[int] = operator(*tensors, threshold).tolist()
                return answer

            cases += check_nms(nms, where=device)
    return {"version": torchvision.__version__, "nms": keys, "devices": devices, "cases": cases, "operators": found}


def smoke_torchaudio(torch: Any, *, expect_mps: bool) -> dict[str, Any]:
    """Compare torchaudio's compiled filter with the plain recurrence in float64; return the largest difference.

    Raises:
        SystemExit: no filter is registered, or its answers differ.
    """
    del expect_mps  # it has no MPS kernels of its own
    torchaudio: Any = importlib.import_module("torchaudio")
    functional: Any = importlib.import_module("torchaudio.functional")
    # Loaded at first use; without it lfilter falls back to Python, and would be right all the same.
    tensors = [torch.tensor(values, dtype=torch.float64) for values in ([0.0, 1.0], [1.0, 0.5], [1.0, 0.0])]
    functional.lfilter(*tensors, clamp=False)
    found = operators(torch, "torchaudio")
    worst = check_filter(
        lambda samples, a, b: functional.lfilter(
            *(torch.tensor(values, dtype=torch.float64) for values in (samples, a, b)), clamp=False
        ).tolist(),
        where="torchaudio.functional.lfilter",
    )
    core = operator_of(torch, found)
    worst_core = check_filter(core, where="torchaudio's operator") if core else None
    if core is None:
        raise SystemExit(f"torchaudio has no operator that filters; there are: {', '.join(found)}")
    return {"version": torchaudio.__version__, "operators": found, "largest_difference": max(worst, worst_core or 0.0)}


def operator_of(torch: Any, found: list[str]) -> Callable[[list[float], list[float], list[float]], list[float]] | None:
    """Return torchaudio's C++ filter itself, in the form it has in this release; None if it has none."""

    def tensor(values: list[float]) -> Any:
        return torch.tensor([values], dtype=torch.float64)

    def whole(samples: list[float], a: list[float], b: list[float]) -> list[float]:
        answer = torch.ops.torchaudio._lfilter(tensor(samples)[None], tensor(a), tensor(b))
        out: list[float] = answer.flatten().tolist()
        return out

    def core(samples: list[float], a: list[float], b: list[float]) -> list[float]:
        """The recursive half: the caller has done the forward one, and brings room for the past."""
        order = len(a)
        forward = filtered(samples, [a[0]], b)
        padded = torch.zeros(1, 1, len(samples) + order - 1, dtype=torch.float64)
        flipped = torch.tensor([[each / a[0] for each in a]], dtype=torch.float64).flip(1)
        torch.ops.torchaudio._lfilter_core_loop(tensor(forward)[None], flipped, padded)
        out: list[float] = padded[0, 0, order - 1 :].tolist()
        return out

    if "torchaudio::_lfilter" in found:
        return whole
    return core if "torchaudio::_lfilter_core_loop" in found else None


SMOKES = {"torchvision": smoke_torchvision, "torchaudio": smoke_torchaudio}


def main() -> None:
    """Write what the companions computed, as JSON, into the file that the first argument names."""
    result, *arguments = sys.argv[1:]
    expect_mps = "--expect-mps-kernels" in arguments
    torch: Any = importlib.import_module("torch")
    facts: dict[str, Any] = {"torch": torch.__version__, "mps_built": bool(torch.backends.mps.is_built())}
    for name in arguments:
        if name in SMOKES:
            facts[name] = SMOKES[name](torch, expect_mps=expect_mps)
    Path(result).write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main()
