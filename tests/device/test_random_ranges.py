"""Ranges of draws, to the last step of each dtype: a lower end that may come, an upper end that never does."""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.drawn import add_drawn

cases = Cases("random")
_COUNT = 1 << 17  # the last step below 1 comes 32 times in float16, 256 times in bfloat16


def test_case(case: Any, ask: Any) -> None:
    ask(case)


# What is drawn, its least value, the bound that it stays below, and whether it is a whole number.
_DRAWS: dict[str, tuple[Callable[[Any, Any], torch.Tensor], float, float, bool]] = {
    "rand": (lambda d, t: torch.rand(_COUNT, device=d, dtype=t), 0, 1, False),
    "rand_like": (lambda d, t: torch.rand_like(torch.empty(_COUNT // 8, 8, device=d, dtype=t)), 0, 1, False),
    "uniform": (lambda d, t: torch.empty(_COUNT, device=d, dtype=t).uniform_(), 0, 1, False),
    "uniform-wide": (lambda d, t: torch.empty(_COUNT, device=d, dtype=t).uniform_(-4, 12), -4, 12, False),
    "uniform-view": (lambda d, t: torch.empty(2 * _COUNT, device=d, dtype=t)[::2].uniform_(2, 3), 2, 3, False),
    "random": (lambda d, t: torch.empty(_COUNT, device=d, dtype=t).random_(3, 50), 3, 50, True),
    "random-to": (lambda d, t: torch.empty(_COUNT, device=d, dtype=t).random_(7), 0, 7, True),
    "randint": (lambda d, t: torch.randint(-2, 5, (_COUNT,), device=d, dtype=t), -2, 5, True),
}
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def _drawn(form: Any, dtype: torch.dtype) -> Any:
    def act(device: torch.device) -> Any:
        torch.manual_seed(83)
        return [form(device, dtype)]

    return act


def _judge(name: str, least: float, bound: float, is_whole: bool) -> Any:
    """Return a judge: every value is in the range, and the ends are reached (a whole number's exactly)."""
    near = 1.0 if is_whole else (bound - least) / 16

    def judge(drawn: Any) -> None:
        low, high = float(drawn[0].min()), float(drawn[0].max())
        assert least <= low and high < bound, f"{name}: {low} to {high}, not in [{least}, {bound})"
        assert low < least + near and high >= bound - near, f"{name}: only {low} to {high} of [{least}, {bound})"

    return judge


for _name, (_form, _least, _bound, _is_whole) in _DRAWS.items():
    for _dtype in (*_FLOATS, torch.int64, torch.int32) if _is_whole else _FLOATS:
        add_drawn(
            cases,
            f"random-range-{_name}-{str(_dtype)[6:]}",
            _drawn(_form, _dtype),
            _judge(_name, _least, _bound, _is_whole),
        )
