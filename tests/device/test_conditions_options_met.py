"""Rules 1 and 3: options that meet, with gradients: bags, limits, groups, wider dtypes, output sizes, long targets.

Bags as rows lacked the last one beside include_last_offset, https://github.com/pytorch/pytorch/issues/167974; sizes of
outputs were reckoned without the dilation, https://github.com/pytorch/pytorch/issues/14272
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived, filled
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")

# w: (4, 3); i: seven places below 4.
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
        pool(line + 3 if norm == 3 else line, norm, kernel),  # cubes that nearly cancel have no root to speak of
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
