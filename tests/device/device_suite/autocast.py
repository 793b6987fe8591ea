"""Which dtype an answer has under autocast: what this torch's lists for the device say, not those for the CPU.

Each device has lists of its own (https://docs.pytorch.org/docs/stable/amp.html): vector_norm gives float32 on CUDA, and
on the CPU the dtype of its operand. Fake tensors pass the same dispatcher as real ones and compute nothing, so that the
lists are those of the release that is asked, wherever a function stands in them.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch

from .cases import Case
from .compare import Leaf, read_back
from .draws import map_tensors
from .runs import Bench, DeviceRun


def by_policy(case: Case, bench: Bench, draw: tuple[int, int]) -> dict[str, Leaf] | None:
    """Return what the case answers of fake tensors on the device under test, by path: dtypes and texts count.

    What a back end cannot do with them is not among the answers. None without autocast, and on the CPU, whose own
    answers show its lists.
    """
    return None if case.autocast is None or bench.device.type == "cpu" else fake_answers(case, bench, draw)


def fake_answers(case: Case, bench: Bench, draw: tuple[int, int]) -> dict[str, Leaf]:
    """Return what the case answers of fake tensors, by path."""
    bases = bench.bases(case, draw)
    run = DeviceRun(bench.device)
    try:
        from torch._subclasses.fake_tensor import FakeTensorMode

        with warnings.catch_warnings(), FakeTensorMode(), bench.device:  # modules too are made there
            warnings.simplefilter("ignore")
            brought = map_tensors(bases, lambda base: _fake(base, bench.device))
            leaves = read_back(case.act(run, *brought))
    except Exception:  # a private module, and a back end's own limits
        return {}
    return {leaf.path: leaf for leaf in leaves if isinstance(leaf.value, (torch.Tensor, str))}


def narrowed(leaf: Leaf, low: Any) -> Leaf:
    """Return an answer in autocast's dtype if it is wider: what it was computed of has been rounded to that."""
    value = leaf.value
    if leaf.path.startswith("base") or not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point:
        return leaf
    wider = torch.finfo(value.dtype).eps < torch.finfo(low).eps
    return leaf._replace(value=value.to(low)) if wider else leaf


def _fake(base: torch.Tensor, device: torch.device) -> torch.Tensor:
    return torch.empty_strided(base.shape, base.stride(), dtype=base.dtype, device=device)
