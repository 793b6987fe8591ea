"""Rules 1, 3 and 6: targets, weights and lengths at their ends, shapes that broadcast, two dtypes, gradients of both.

mse_loss lost its reduction where the target wants a gradient, https://github.com/pytorch/pytorch/issues/10009; two
dtypes, https://github.com/pytorch/pytorch/issues/121025; ctc_loss of no target,
https://github.com/pytorch/pytorch/issues/18215
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]
_HOW = ("none", "sum", "mean")

# Of two operands that both want a gradient, unless the name ends in "!".
_PAIRS: dict[str, Form] = {
    "mse": lambda x, y, **o: F.mse_loss(x, y, **o),
    "l1": lambda x, y, **o: F.l1_loss(x, y, **o),
    "smooth": lambda x, y, **o: F.smooth_l1_loss(x, y, **o),
    "smooth-0": lambda x, y, **o: F.smooth_l1_loss(x, y, beta=0, **o),
    "smooth-3": lambda x, y, **o: F.smooth_l1_loss(x, y, beta=3, **o),
    "huber": lambda x, y, **o: F.huber_loss(x, y, **o),
    "huber-quarter": lambda x, y, **o: F.huber_loss(x, y, delta=0.25, **o),
    "kl": lambda x, y, **o: F.kl_div(x, y, **o),
    "kl-log": lambda x, y, **o: F.kl_div(x, y, log_target=True, **o),
    "poisson": lambda x, y, **o: F.poisson_nll_loss(x, y, **o),
    "poisson-plain": lambda x, y, **o: F.poisson_nll_loss(x.exp(), y, log_input=False, eps=0.25, **o),
    "gaussian": lambda x, y, **o: F.gaussian_nll_loss(x, y, torch.full_like(x, 0.5), full=True, **o),
    "hinge!": lambda x, y, **o: F.hinge_embedding_loss(x, y.sign(), **o),
    "soft!": lambda x, y, **o: F.soft_margin_loss(x, y.sign(), **o),
    "bce!": lambda x, y, **o: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), **o),
    "logits": lambda x, y, **o: F.binary_cross_entropy_with_logits(x, y.sigmoid(), **o),
}
_SAME = ("bce!", "logits", "soft!")  # of one shape only
_SHAPES = (
    ((4, 1), (4,)),
    ((4,), (3, 4)),
    ((2, 1), (2, 1, 1, 1)),
    ((), (3,)),
    ((3, 2), ()),
    ((1,), (2, 3)),
    ((0, 2), (1, 2)),
    ((2, 1, 2), (1, 3, 1)),
)


def _of(loss: Form, name: str, x: torch.Tensor, y: torch.Tensor, how: str) -> Any:
    if name.endswith("!"):
        return derived(lambda a: loss(a, y, reduction=how), x)
    return derived(lambda a, b: loss(a, b, reduction=how), x, y)


def _cut(x: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    return x.flatten()[: torch.Size(shape).numel()].view(shape)


# gaussian has the logarithm of a half among what it adds up in float32: its dtypes are not met here.
# x, y: (3, 4), y positive and apart from x; h: like y, in half precision.
_MET: dict[str, Form] = {
    **{
        f"{name}-shapes-{number}-{how}": lambda x, y, h, name=name, one=one, two=two, how=how: _of(
            _PAIRS[name], name, _cut(x, one), _cut(y, two), how
        )
        for place, name in enumerate(_PAIRS)
        if name not in _SAME
        for number, (one, two) in enumerate(_SHAPES)
        for how in (_HOW[(number + place) % 3],)
    },
    **{
        f"{name}-dtypes-{how}-{turned}": lambda x, y, h, name=name, how=how, turned=turned: _of(
            _PAIRS[name], name, *((h, x) if turned else (x, h)), how
        )
        for place, name in enumerate(("mse", "l1", "smooth", "kl-log", "hinge!", "logits"))
        for turned in (False, True)
        for how in (_HOW[(place + turned) % 3],)
        if (name, turned) not in (("hinge!", True), ("logits", True))
    },
    **{
        f"{name}-old-{number}": lambda x, y, h, name=name, old=old: derived(lambda a: _PAIRS[name](a, y, **old), x)
        for name in ("mse", "l1", "smooth", "kl", "poisson", "hinge!", "soft!", "bce!", "logits")
        for number, old in enumerate(
            ({"size_average": False}, {"reduce": False}, {"size_average": True, "reduce": True})
        )
    },
    **{
        f"{name}-places-{how}": lambda x, y, h, name=name, how=how: _of(
            _PAIRS[name], name, torch.where(x > 0, y, x), y, how
        )
        for name, how in itertools.product(("mse", "smooth", "smooth-3", "huber", "huber-quarter", "kl"), _HOW)
    },
    "kl-0": lambda x, y, h: [derived(lambda a, how=how: F.kl_div(a, y * (x > 0), reduction=how), x) for how in _HOW],
    "kl-below": lambda x, y, h: F.kl_div(x, -y * (x > 0), reduction="none"),
    "poisson-ends": lambda x, y, h: [
        derived(lambda a, target=target: F.poisson_nll_loss(a, target, full=True, reduction="none"), x)
        for target in (y * 0, y * 0 + 1, y.ceil() + 1)
    ],
    "poisson-0": lambda x, y, h: [
        F.poisson_nll_loss(y * 0, target, log_input=False, reduction="none") for target in (y, y * 0)
    ],
    "gaussian-0": lambda x, y, h: [F.gaussian_nll_loss(x, x, y * 0, eps=eps, reduction="none") for eps in (0.25, 1)],
    "gaussian-number": lambda x, y, h: [F.gaussian_nll_loss(x, y, 0.5), F.gaussian_nll_loss(x, y, 2.0, full=True)],
    "gaussian-columns": lambda x, y, h: derived(lambda a, b, v: F.gaussian_nll_loss(a, b, v), x, y, y[:, :1]),
    "gaussian-rows": lambda x, y, h: derived(lambda a, b, v: F.gaussian_nll_loss(a, b, v), x, y, y[:, 0]),
    **{
        f"bce-ends-{one}-{target}": lambda x, y, h, one=one, target=target: derived(
            lambda a: F.binary_cross_entropy(a, y * 0 + target, reduction="none"), x * 0 + one
        )
        for one, target in itertools.product((0, 0.5, 1), (0, 0.25, 1))
    },
    "bce-weights": lambda x, y, h: [
        derived(lambda a, w=w, how=how: F.binary_cross_entropy(a.sigmoid(), y / 8, w, reduction=how), x)
        for w in (y[0], -y[:, :1], y * 0, y[0, 0])
        for how in _HOW
    ],
    "logits-weights": lambda x, y, h: [
        derived(partial(F.binary_cross_entropy_with_logits, target=y / 8, weight=w, pos_weight=p, reduction=how), x)
        for (w, p), how in zip(((y[0], y[:, :1]), (-y[:, :1], y), (None, y * 0), (y, y[0, 0]), (y * 0, None)), _HOW * 2)
    ],
    "logits-far": lambda x, y, h: [
        derived(lambda a, t=t: F.binary_cross_entropy_with_logits(a, t, reduction="none"), x.sign() * far)
        for far in (0, 100, 1e30)
        for t in (y * 0, y * 0 + 1, y / 8)
    ],
    **{
        f"cosine-{margin}": lambda x, y, h, margin=margin: [
            derived(partial(F.cosine_embedding_loss, target=sign, margin=margin, reduction=how), x, y)
            for sign in (x[:, 0].sign(), -torch.ones_like(x[:, 0]))
            for how in _HOW
        ]
        for margin in (0, 0.5)
    },
    "cosine-row": lambda x, y, h: derived(lambda a, b: F.cosine_embedding_loss(a, b, x[:, 0].sign()), x, y[:1]),
    "cosine-point": lambda x, y, h: derived(lambda a, b: F.cosine_embedding_loss(a, b, x[0, 0].sign()), x[0], y[0]),
    "cosine-neither": lambda x, y, h: F.cosine_embedding_loss(x, y, x[:, 0] * 0 + 0.5, reduction="none"),
    "ranking-row": lambda x, y, h: derived(lambda a, b: F.margin_ranking_loss(a, b, x.sign(), 0.25), x, y[:1]),
    "triplet-row": lambda x, y, h: derived(lambda a, b, c: F.triplet_margin_loss(a, b, c, 3.0), x, y[:1], -y),
    "triplet-line": lambda x, y, h: derived(lambda a, b, c: F.triplet_margin_loss(a, b, c, 9.0), x[0], y[0], -y[0]),
    "triplet-powers": lambda x, y, h: [
        derived(partial(F.triplet_margin_loss, margin=9.0, p=p, swap=swap), x, y, -y - 1)
        for p, swap in ((1.0, False), (3.0, True), (0.5, False))
    ],
}
add_table(
    cases,
    "loss-ends",
    _MET,
    lambda d: (
        d.distinct(3, 4) / 4 + 0.0625,
        d.distinct(3, 4) / 4 + 1.84375,
        (d.distinct(3, 4) / 4 + 1.875).half(),
    ),
    factor=16.0,
    deterministic=False,
)


def _margins(x: torch.Tensor, c: torch.Tensor, p: float, margin: float, sign: float, how: str) -> Any:
    w = (torch.arange(5, device=x.device).to(x.dtype) - 1) * sign if sign else None
    options = {"p": p, "margin": margin, "weight": w, "reduction": how}
    return [
        derived(lambda a: F.multi_margin_loss(a, c, **options), x),
        derived(lambda a: F.multi_margin_loss(a, c[0], **options), x[0]),
        derived(lambda a: F.multi_margin_loss(a, c[:1], **options), x[1]),
        derived(lambda a: F.multi_margin_loss(a, c, **options), x.t().contiguous().t()),
    ]


_LABELS = {
    "none": [-1, 0, 1, 2, 3],
    "first": [3, -1, 0, 0, 0],
    "two": [4, 0, -1, -1, 2],
    "all": [0, 1, 2, 3, 4],
    "turned": [4, 2, 0, 1, 3],
    "last": [1, 2, 3, 4, -1],
}


def _labelled(x: torch.Tensor, key: str, how: str) -> Any:
    rows = torch.tensor([_LABELS[key], _LABELS["two"], _LABELS["first"], _LABELS[key]], device=x.device)
    return [
        derived(lambda a: F.multilabel_margin_loss(a, rows, reduction=how), x),
        derived(lambda a: F.multilabel_margin_loss(a, rows[0], reduction=how), x[0]),
        torch.ops.aten.multilabel_margin_loss_forward(x, rows, 0)[1],
    ]


# Losses by number: both spellings, weights of zero and below, and numbers that are ignored, of any size.
def _numbered(x: torch.Tensor, c: torch.Tensor, ignored: int, weight: str, how: str, smooth: float) -> Any:
    w = torch.arange(5, device=x.device).to(x.dtype)
    w = {"none": None, "zero": w * 0, "some": w % 2, "both": w - 1.75}[weight]
    some = torch.where(c == 1, ignored, c)
    images = x.t().contiguous().view(1, 5, 2, 2)
    cross = lambda a, t: F.cross_entropy(a, t, w, None, ignored, None, how, smooth)  # noqa: E731
    nll = lambda a, t: F.nll_loss(a, t, w, None, ignored, None, how)  # noqa: E731
    found = [derived(lambda a: cross(a, some), x), derived(lambda a: cross(a, some.view(1, 2, 2)), images)]
    if not smooth:
        found += [derived(lambda a: nll(a, some), x), derived(lambda a: nll(a, some.view(1, 2, 2)), images)]
        found += [derived(lambda a: nll(a, some[0]), x[0])]
    return found


_NUMBERS: dict[str, Form] = {
    **{
        f"margins-{p}-{margin}-{sign}-{how}": lambda x, c, row=(p, margin, sign, how): _margins(x, c, *row)
        for number, (p, margin, sign) in enumerate(itertools.product((1, 2), (1.0, 0.25, -0.5, 3), (0, 1, -1)))
        for how in (_HOW[number % 3],)
    },
    **{
        f"labels-{key}-{how}": lambda x, c, key=key, how=how: _labelled(x, key, how)
        for key, how in itertools.product(_LABELS, _HOW)
    },
    **{
        f"numbers-{ignored}-{weight}-{how}-{smooth}": lambda x, c, row=(ignored, weight, how, smooth): _numbered(
            x, c, *row
        )
        for number, (ignored, weight, smooth) in enumerate(
            itertools.product((-100, 1, -(2**40), 2**32 + 2), ("none", "zero", "some", "both"), (0.0, 0.25))
        )
        for how in (_HOW[(number // 2) % 3],)
    },
    "small": lambda x, c: [
        derived(partial(F.nll_loss, target=c.to(torch.uint8), reduction=how, ignore_index=1), x) for how in _HOW
    ],
    **{
        f"shares-{key}-{how}": lambda x, c, shares=shares, how=how: derived(
            lambda a, b: F.cross_entropy(a, b, a.detach()[0], reduction=how, label_smoothing=0.5), x, shares(x)
        )
        for (key, shares), how in itertools.product(
            {
                "zero": lambda x: x * 0,
                "hot": lambda x: torch.eye(5, device=x.device, dtype=x.dtype)[:4],
                "many": lambda x: x * 0 + 1,
                "below": lambda x: -x,
            }.items(),
            _HOW,
        )
    },
    "no-classes": lambda x, c: [F.cross_entropy(x[:, :0], x[:, :0], reduction=how) for how in _HOW],
    "no-pixels": lambda x, c: [
        derived(partial(F.nll_loss, target=c.new_zeros(2, 0, 7), reduction=how), x.new_ones(2, 3, 0, 7)) for how in _HOW
    ],
    "no-pixels-weight": lambda x, c: [
        F.cross_entropy(x.new_ones(2, 3, 0), c.new_zeros(2, 0), x[0, :3], reduction=how) for how in _HOW
    ],
}


def _aligned(
    x: torch.Tensor, lengths: tuple[int, ...], steps: tuple[int, ...], options: dict[str, Any], flat: bool
) -> Any:
    """Align three rows with targets of some lengths, of which some have no way through."""
    scores = torch.stack([x.roll(n, 1) for n in range(8)])[:, :3]
    targets = torch.tensor([[1, 2, 1, 3], [3, 3, 2, 1], [2, 1, 1, 4]], device=x.device)
    if options.get("blank", 0):
        targets = (targets + 1 + options["blank"]) % 5
    if flat:
        targets = torch.cat([row[:n] for row, n in zip(targets, lengths)])
    sizes = (torch.tensor(steps), torch.tensor(lengths))
    return derived(lambda a: F.ctc_loss(a.log_softmax(-1), targets, *sizes, **options), scores)


_LENGTHS = ((0, 2, 4), (4, 0, 0), (1, 1, 1), (2, 3, 4), (0, 0, 0))
_STEPS = ((8, 8, 8), (8, 5, 6), (7, 8, 1), (8, 2, 8))
_NUMBERS |= {
    f"ctc-{number}-{place}-{how}": lambda x, c, lengths=lengths, steps=steps, how=how, n=number + place: _aligned(
        x, lengths, steps, {"reduction": how, "zero_infinity": True}, n % 4 < 2
    )
    for (number, lengths), (place, steps) in itertools.product(enumerate(_LENGTHS), enumerate(_STEPS))
    if (number + place) % 2 == 0 or number == 0
    for how in (_HOW[(number + place) % 3],)
}
_NUMBERS["ctc-plain"] = lambda x, c: _aligned(x, (1, 2, 3), (8, 7, 8), {}, False)
add_table(
    cases,
    "loss-numbers",
    _NUMBERS,
    # Steps of which no margin is a multiple: at a kink a gradient is open.
    lambda d: (d.distinct(4, 5) * (33 / 256) + 0.0625, torch.tensor([2, 0, 1, 3])),
    factor=64.0,
    deterministic=False,
    since="2.6",
)

# A number past the classes: what a kernel finds wrong stops CUDA for the whole process.
_PAST = (-1, -2, 5, 6, 2**31, -(2**40), 2**32, 2**32 + 1)
add_refused(
    cases,
    "loss-numbers",
    lambda d: (d.normal(4, 5), torch.tensor([2, 0, 1, 3])),
    {
        f"{name}-{at}": lambda x, c, act=act, at=at: act(x, torch.where(c == 1, at, c))
        for name, act in {
            "nll": lambda x, c: F.nll_loss(x, c, reduction="none"),
            "nll-mean": lambda x, c: F.nll_loss(x, c, x[0]),
            "nll-row": lambda x, c: F.nll_loss(x[2], c[2], reduction="sum"),
            "nll-images": lambda x, c: F.nll_loss(
                x.t().contiguous().view(1, 5, 2, 2), c.view(1, 2, 2), reduction="none"
            ),
            "nll-images-mean": lambda x, c: F.nll_loss(x.t().contiguous().view(1, 5, 2, 2), c.view(1, 2, 2)),
            "cross": lambda x, c: F.cross_entropy(x, c),
            "cross-smooth": lambda x, c: F.cross_entropy(x, c, label_smoothing=0.25),
            "cross-weight": lambda x, c: F.cross_entropy(x, c, x[0], reduction="sum"),
            "cross-line": lambda x, c: F.cross_entropy(x.t()[None], c[None], reduction="none"),
            "margins": lambda x, c: F.multi_margin_loss(x, c),
            "margins-none": lambda x, c: F.multi_margin_loss(x, c, p=2, reduction="none"),
            "margins-row": lambda x, c: F.multi_margin_loss(x[2], c[2]),
            "labels": lambda x, c: F.multilabel_margin_loss(x[:, :4], c.expand(4, 4), reduction="none"),
            "labels-row": lambda x, c: F.multilabel_margin_loss(x[0, :4], c, reduction="sum"),
            "hot": lambda x, c: F.one_hot(c, 5),
            "embedding": lambda x, c: F.embedding(c, x.t()),
        }.items()
        for at in _PAST
    },
    devices=("mps", "cpu"),
    since="2.13",
)
