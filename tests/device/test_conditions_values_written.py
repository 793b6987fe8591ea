"""Rules 1 and 3: values of every shape that broadcasts, and of some that do not, written at places of any rank.

Values that broadcast were refused, https://github.com/pytorch/pytorch/issues/144539; values with one dimension more
were taken, https://github.com/pytorch/pytorch/issues/77406
"""

from __future__ import annotations

import itertools
from typing import Any

import torch

from device_suite import Cases
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")

# What stands in the brackets, of a target of (4, 3, 2, 5): places in one dimension and in two, slices beside them.
_PLACES: dict[str, Any] = {
    "one": lambda i: (i[:3],),
    "one-last": lambda i: (..., i[:3] % 4),
    "one-second": lambda i: (slice(None), i[:2] % 3),
    "square": lambda i: (i[:6].view(2, 3),),
    "square-second": lambda i: (slice(None), i[:6].view(3, 2) % 3),
    "two": lambda i: (i[:3], i[3:6] % 3),
    "two-apart": lambda i: (i[:3], slice(None), i[3:6] % 2),
    "two-squares": lambda i: (i[:6].view(2, 3), i[:6].view(2, 3).flip(0) % 3),
    "crossed": lambda i: (i[:3, None], i[:2] % 3),
    "three": lambda i: (i[:2], i[2:4] % 3, i[4:6] % 2),
    "all": lambda i: (i[:3], i[1:4] % 3, i[2:5] % 2, i[3:6] % 5),
    "mask": lambda i: (torch.arange(4, device=i.device) % 2 == 0,),
    "mask-second": lambda i: (slice(None), torch.arange(3, device=i.device) > 0),
    "mask-place": lambda i: (torch.arange(4, device=i.device) > 1, 2),
    "number": lambda i: (i[:3], 1),
    "none": lambda i: (i[:0],),
    "alone": lambda i: (i[0],),
    "alone-beside": lambda i: (slice(None), 0, i[0] % 2),
    "alone-twice": lambda i: (i[0], slice(None), i[2] % 2),
}


def _shapes(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return shapes that broadcast to one, each way once: sides left out, sides of 1; and some that do not."""
    found = {shape[start:] for start in range(len(shape) + 1)}
    found |= {tuple(1 if place == one else n for place, n in enumerate(shape)) for one in range(len(shape))}
    found |= {(1, *shape), (1, 1, *shape), (*shape, 1), (1,), (1,) * len(shape)}
    return sorted(
        found | ({(2, *shape), (shape[0] + 1, *shape[1:])} if shape else set()), key=lambda one: (len(one), one)
    )


def _repeats(index: tuple[Any, ...]) -> bool:
    return any(isinstance(one, torch.Tensor) and one.numel() > 5 for one in index) and len(index) < 3


def _written(places: Any, place: int, way: str, x: torch.Tensor, i: torch.Tensor) -> Any:
    index = places(i)
    if way != "added" and _repeats(index):  # which of two values stays is open
        return x[:0]
    shapes = _shapes(tuple(x[index].shape))
    if place >= len(shapes):
        return x[:0]
    count = torch.Size(shapes[place]).numel()
    values, target = x.flatten().repeat(3)[7 : 7 + count].reshape(shapes[place]), x.clone()
    if way == "assigned":
        target[index] = values
    else:
        whole = [None if isinstance(one, slice) else one for one in index]
        if not all(one is None or isinstance(one, torch.Tensor) for one in whole):
            return x[:0]
        target.index_put_(tuple(whole), values, accumulate=way == "added")  # type: ignore[arg-type]
    return target


for _dtype in (torch.float32, *HALVES, torch.int64):
    _asked = {
        f"{name}-{place}-{way}": lambda x, i, name=name, place=place, way=way: _written(_PLACES[name], place, way, x, i)
        for name, place, way in itertools.product(_PLACES, range(14), ("assigned", "put", "added"))
        if _dtype == torch.float32 or (place + len(name)) % 5 == 0
    }
    # Each place once, or the order of what is written and added there would be free.
    _make = lambda d, dtype=_dtype: (  # noqa: E731
        (d.distinct(4, 3, 2, 5) if dtype.is_floating_point else d.integers(-9, 9, 4, 3, 2, 5)).to(dtype),
        torch.tensor([2, 0, 3, 1, 2, 0, 1]),
    )
    add_table(cases, f"values-written-{str(_dtype)[6:]}", _asked, _make, deterministic=False)
    if _dtype == torch.float32:
        add_refused(cases, "values-written", _make, _asked)


def _into_steps(bench: Any) -> None:
    """Write what is made into every other place of a line, and leave what lies between."""
    with bench.device_run() as run:
        base = torch.full((40,), -7.0, device=run.device)
        whole = torch.full((40,), -7, dtype=torch.int64, device=run.device)
        run.seed(bench.seed)
        torch.randperm(20, out=whole[::2])
        torch.arange(20, out=base[::2])
        drawn, made = whole.cpu().clone(), base.cpu().clone()
        torch.linspace(0, 19, 20, out=base[1::2])
        torch.eye(4, out=whole[:32].view(4, 8)[:, ::2])
        spaced, unit = base.cpu(), whole.cpu()
    assert drawn[::2].sort()[0].tolist() == list(range(20)), f"randperm wrote {drawn.tolist()}"
    assert set(drawn[1::2].tolist()) == {-7} == {int(one) for one in made[1::2].tolist()}, "what lies between is not -7"
    assert made[::2].tolist() == list(range(20)), f"arange wrote {made.tolist()}"
    assert bool(torch.isclose(spaced[1::2], torch.arange(20.0)).all()), f"linspace wrote {spaced.tolist()}"
    assert torch.equal(unit[:32].view(4, 8)[:, ::2], torch.eye(4, dtype=torch.int64)), f"eye wrote {unit.tolist()}"


cases.add("condition-limit-values-made-in-steps", _into_steps, check=True)
