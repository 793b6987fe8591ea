"""Lists with members of every size: no element, no dimension, one element, many; of one dtype and of two."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.answers import attempt

cases = Cases("layouts")
_SIZES = ((0,), (), (5, 7), (0, 3), (1,), (70_001,), (3, 4))
_ONE = """abs neg exp sqrt log sin cos tan tanh sigmoid ceil floor round trunc frac reciprocal erf erfc expm1 log1p sign
zero norm max"""


def _lists(count: int) -> Any:
    return lambda d: tuple([d.uniform(0.25, 2, *shape) for shape in _SIZES] for _ in range(count))


def _asked(calls: Any) -> Any:
    def act(*lists: Any) -> Any:
        def told(call: Any, dtype: Any) -> Any:
            given = [
                [one.to(dtype if place % 2 else one.dtype, copy=True) for place, one in enumerate(line)]
                for line in lists
            ]
            answer = call(*given)
            return answer, given

        kinds = (lists[0][0].dtype, torch.float16)
        return {
            f"{name}-{kind}": attempt(lambda call=call, dtype=dtype: told(call, dtype))
            for name, call in calls.items()
            for kind, dtype in zip(("one", "two"), kinds)
        }

    return act


def _of(name: str, *more: Any, **options: Any) -> Any:
    return lambda *lists: getattr(torch, f"_foreach_{name}")(*lists, *more, **options)


_CALLS: dict[int, dict[str, Any]] = {
    1: {
        **{name: _of(name) for name in _ONE.split() if name not in ("max", "zero")},
        **{f"{name}_": _of(f"{name}_") for name in ("abs", "sqrt", "neg", "zero", "round")},
        **{f"{name}-number": _of(name, 1.5) for name in ("add", "sub", "mul", "div", "clamp_min", "clamp_max", "pow")},
        **{f"{name}-numbers": _of(name, [0.5 + n for n in range(len(_SIZES))]) for name in ("add", "mul_", "div")},
        "norm-1": _of("norm", 1.0),
        "norm-inf": lambda line: torch._foreach_norm([one for one in line if one.numel()], float("inf")),
        "max": lambda line: torch._foreach_max([one for one in line if one.numel()]),
    },
    2: {
        **{name: _of(name) for name in ("add", "sub", "mul", "div", "maximum", "minimum", "copy_", "add_", "mul_")},
        "add-alpha": _of("add", alpha=-0.5),
        "lerp": _of("lerp", 0.3),
    },
    3: {
        **{name: _of(name) for name in ("addcmul", "addcdiv", "addcmul_", "lerp")},
        "addcdiv-number": _of("addcdiv", 0.5),
    },
}
for _count, _calls in _CALLS.items():
    cases.add(
        f"layout-members-{_count}",
        _asked(_calls),
        make=_lists(_count),
        terms=1 << 17,
        floor=0.25,
        states=("fresh",),
        may_be_missing=True,
    )


# Gradients of a scaled loss are freed of the scale, and what is not finite is found, in each dtype and size.
def _unscaled(given: Any) -> Any:
    answers = {}
    for dtype in (torch.float32, torch.float16):
        for name, bad in (("finite", None), ("infinite", float("inf")), ("none", float("nan"))):
            for place in (2, 5):
                members = [one.to(dtype, copy=True) for one in given]
                if bad is not None:
                    members[place].view(-1)[-1] = bad
                found = torch.zeros((), device=members[0].device)
                scale = torch.full((), 0.25, device=members[0].device)

                def answer(members: Any = members, found: Any = found, scale: Any = scale) -> Any:
                    torch._amp_foreach_non_finite_check_and_unscale_(members, found, scale)
                    return found, members

                answers[f"{dtype}-{name}-{place}"] = attempt(answer)
    return answers


cases.add("layout-members-unscaled", _unscaled, make=_lists(1), states=("fresh",), may_be_missing=True)
