"""Rules 1 and 3: values of every shape that broadcasts, and of some that do not, written at places of any rank.

Values that broadcast were refused, https://github.com/pytorch/pytorch/issues/144539; values with one dimension more
were taken, https://github.com/pytorch/pytorch/issues/77406
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived, filled
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

# Other options that meet: a layer of bags, a limit with a gradient, groups beyond the channels, a long target.
_BAGS: dict[str, Any] = {
    f"{mode}-{last}-{form}": lambda w, i, mode=mode, last=last, form=form: F.embedding_bag(
        *({"rows": (i[:6].view(3, 2), w, None), "offsets": (i, w, i.new_tensor([0, 2, 2, 7]))}[form]),
        mode=mode,
        include_last_offset=last,
    )
    for mode in ("sum", "mean", "max")
    for last in (False, True)
    for form in ("rows", "offsets")
}


def _limited(w: torch.Tensor, i: torch.Tensor, norm: float, padding: int | None, bags: bool) -> Any:
    table = w.clone().requires_grad_()
    if bags:
        y = F.embedding_bag(i[:6].view(3, 2), table, max_norm=norm, mode="sum")
    else:
        y = F.embedding(i, table, padding_idx=padding, max_norm=norm)
    (y * torch.arange(1, 1 + y.numel(), device=y.device).view_as(y)).sum().backward()
    return y, table, table.grad


def _pooled(w: torch.Tensor, norm: float, rank: int) -> Any:
    """Pool numbers of both signs, whose broken powers are none, and their magnitudes."""
    x = torch.cat([w, -w, w]).flatten()
    pool = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[rank - 1]
    kernel = 2 if rank == 1 else (2, *(1,) * (rank - 1))
    line = x[:21].view(1, 3, 7, *(1,) * (rank - 1))
    return [
        pool(line, norm, kernel),
        pool(line.abs(), norm, kernel, 1),
        pool(line.abs(), norm, kernel, 3, ceil_mode=True),
    ]


def _turned(w: torch.Tensor, rank: int, stride: int, padding: int, dilation: int) -> Any:
    """Ask a transposed convolution for each size that it can have."""
    module = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)[rank - 1]
    x = (
        torch.cat([w, -w]).flatten()[: 3**rank].view(1, 1, *(3,) * rank)
        if rank < 3
        else w.flatten()[:8].view(1, 1, 2, 2, 2)
    )
    layer = filled(module(1, 2, 2, stride=stride, padding=padding, dilation=dilation), x)
    least = (x.shape[2] - 1) * stride - 2 * padding + dilation + 1
    return [layer(x, output_size=[least + more] * rank) for more in range(max(stride, dilation))]


add_table(
    cases,
    "options-met",
    {
        **{f"bag-{name}": form for name, form in _BAGS.items()},
        **{
            f"limited-{norm}-{padding}-{bags}": lambda w, i, row=(norm, padding, bags): _limited(w, i, *row)
            for norm in (0.5, 2.0, 100.0)
            for padding in (None, 0)
            for bags in (False, True)
        },
        **{
            f"lp_pool-{norm}-{rank}": lambda w, i, norm=norm, rank=rank: _pooled(w, norm, rank)
            for norm in (1.0, 1.5, 2.0, 3.0)
            for rank in (1, 2, 3)
        },
        **{
            f"turned-{rank}-{options}": lambda w, i, rank=rank, options=options: _turned(w, rank, *options)
            for rank in (1, 2, 3)
            for options in ((2, 1, 1), (3, 0, 2), (2, 2, 3), (1, 1, 2), (3, 1, 1))
        },
        **{
            f"wider-{name}-{dim}-{str(dtype)[6:]}": lambda w, i, name=name, dim=dim, dtype=dtype: derived(
                lambda a: getattr(a, name)(dim, dtype=torch.float32), w.to(dtype).view(2, 2, 3)
            )
            for name in ("softmax", "log_softmax", "sum", "mean", "prod", "cumsum", "cumprod")
            for dim in (0, 1, 2)
            for dtype in HALVES
        },
        **{
            f"rrelu-{bound}": lambda w, i, bound=bound: derived(
                lambda a: F.rrelu(a - 1, bound, bound, training=True), w
            )
            for bound in (-2.5, -0.5, 0.0, 0.25, 1.5)
        },
        "masked-rows": lambda w, i: torch.ops.aten._unsafe_masked_index_put_accumulate(
            w, (i > 1)[:, None, None].expand(7, 2, 1), [i[:, None].expand(7, 2)], w[i][:, None].expand(7, 2, 3)
        ),
        **{f"shuffle-{n}": lambda w, i, n=n: torch.native_channel_shuffle(w.view(1, 4, 3, 1), n) for n in (1, 2, 4)},
        **{f"shuffled-{n}": lambda w, i, n=n: F.channel_shuffle(w.view(1, 4, 3, 1), n) for n in (1, 2, 4)},
    },
    lambda d: (d.distinct(4, 3) / 4 + 0.125, torch.tensor([2, 0, 3, 1, 2, 0, 1])),
    deterministic=False,
)
add_refused(
    cases,
    "options-met",
    lambda d: (d.normal(4, 3), torch.tensor([2, 0, 3, 1])),
    {
        f"{name}-{n}": lambda w, i, act=act, n=n: act(w.view(1, 4, 3, 1), n)
        for name, act in {"shuffle": torch.native_channel_shuffle, "public": F.channel_shuffle}.items()
        for n in (0, 3, 5, 8, -1)
    },
    since="2.13",  # older CPUs end their process, https://github.com/pytorch/pytorch/issues/158154
)


def _ctc(length: int, x: torch.Tensor) -> Any:
    """Return the loss of a target of this length, and its gradient: every so many of it."""
    steps = length + 40
    scores = x.repeat(-(-steps * 5 // len(x)))[: steps * 5].view(steps, 1, 5).clone().requires_grad_()
    target = torch.arange(length, device=x.device)[None] % 4 + 1
    sizes = (torch.tensor([steps]), torch.tensor([length]))
    loss = F.ctc_loss(scores.log_softmax(-1), target, *sizes, reduction="sum")
    loss.backward()
    assert scores.grad is not None
    return loss, scores.grad.flatten()[::13]


add_table(
    cases,
    "options-long-targets",
    {str(length): lambda x, length=length: _ctc(length, x) for length in (127, 257, 1025)},
    lambda d: (d.distinct(997) / 128,),
    terms=4096,
    since="2.0",
    deterministic=False,
)


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
