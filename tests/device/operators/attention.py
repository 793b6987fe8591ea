"""Attention and softmax: masks of every shape, lengths and sizes of heads that kernels are chosen by."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.description import ABSENT, Table

t = Table()
BOTH = ("call", "grad")
# (batch, heads, queries, keys, size of a head)
SHAPES = {
    "main": (2, 3, 5, 7, 8),
    "one": (1, 1, 1, 1, 1),
    "query": (2, 4, 1, 33, 64),  # a step of decoding
    "keys": (1, 2, 33, 1, 8),
    "square": (2, 2, 33, 33, 33),
    "heads": (1, 33, 2, 4, 8),
    "batch": (33, 1, 3, 2, 8),
    "wide": (1, 2, 4, 33, 96),
    "broad": (1, 1, 8, 32, 128),
    "tiles": (1, 2, 32, 32, 64),
    "long": (1, 1, 100, 100, 8),
    "far": (1, 2, 1, 1031, 8),
    "thin": (2, 2, 9, 100, 1),
    "odd": (1, 3, 8, 9, 72),
    "empty": (0, 2, 5, 7, 8),
}
# The sides of a mask: of batch, of heads, of queries, of keys: each its own, or one for all.
SIDES = {
    "all": "bhqk",
    "head": "1hqk",
    "batch": "b1qk",
    "plain": "qk",
    "both": "11qk",
    "key": "11" + "1k",
    "keys of each": "b1" + "1k",
    "query": "11" + "q1",
    "one": "11",
}
KINDS = ("bool", "float", "alike", "causal", "all", "none", "row")


def _mask(c):
    """A mask of the sides and of the kind that the row names."""
    sides, kind = c.args["_sides"], c.args["_mask"]
    if kind is None:
        return None
    sizes = dict(zip("bhqk", c.shape))
    shape = tuple(sizes.get(side, 1) for side in SIDES[sides])
    if kind == "float":
        return c.draw("quarters", shape, values="plain")
    allowed = {
        "bool": lambda: c.indices(3, shape) > 0,
        "causal": lambda: torch.ones(shape).tril().bool(),
        "all": lambda: torch.ones(shape).bool(),
        "none": lambda: torch.zeros(shape).bool(),
        "row": lambda: (torch.arange(shape[-2])[:, None] != shape[-2] // 2).expand(shape).clone(),
        "alike": lambda: c.indices(3, shape) > 0,
    }[kind]()
    if kind != "alike":
        return allowed
    zero = c.draw("quarters", shape, values="plain") * 0
    return zero.masked_fill(~allowed, float("-inf"))


def _heads(c, place):
    """Keys or values, of as many heads as the groups leave."""
    heads = c.shape[1] // c.args.get("_groups", 1) if c.shape[1] % c.args.get("_groups", 1) == 0 else c.shape[1]
    side = c.shape[4] if place == 1 or not c.args.get("_narrow") else (c.shape[4] + 1) // 2
    return c.draw("unit", (c.shape[0], heads, c.shape[3], side))


ATTENTION = {"dtypes": "f", "values": ("plain",), "forms": BOTH, "terms": 64, "factor": 32.0, "floor": 0.25}
QUERY = lambda c: c.draw("any", (*c.shape[:3], c.shape[4]))
SCALE = (ABSENT, None, 1.0, 0.0, 0.05, -0.5)
t.add(
    "attention_masked",
    QUERY,
    lambda c: _heads(c, 1),
    lambda c: _heads(c, 2),
    _mask,
    act=lambda q, k, v, m, kind, sides, narrow, **o: F.scaled_dot_product_attention(
        q, k, v, m if m is None else m.detach(), **o
    ),
    _mask=(None, *KINDS),
    _sides=tuple(SIDES),
    _narrow=(False, True),
    scale=SCALE,
    dropout_p=(ABSENT, 0.0),
    sizes=SHAPES,
    layouts_of=(0, 1, 2, 3),
    **ATTENTION,
)
t.add(
    "attention_plain",
    QUERY,
    lambda c: _heads(c, 1),
    lambda c: _heads(c, 2),
    act=lambda q, k, v, narrow, groups, **o: F.scaled_dot_product_attention(
        q, k, v, **o, **({"enable_gqa": True} if groups > 1 else {})
    ),
    _narrow=(False, True),
    _groups=(1, 2, 4, 33),
    is_causal=(ABSENT, False, True),
    scale=SCALE,
    sizes=SHAPES,
    **ATTENTION,
)
t.add(
    "attention_grouped_masked",
    QUERY,
    lambda c: _heads(c, 1),
    lambda c: _heads(c, 2),
    _mask,
    act=lambda q, k, v, m, groups, kind, sides, **o: F.scaled_dot_product_attention(
        q, k, v, m if m is None else m.detach(), enable_gqa=True, **o
    ),
    _groups=(2, 1, 4),
    _mask=("bool", "float", None),
    _sides=tuple(SIDES),
    scale=SCALE[:3],
    sizes={key: size for key, size in SHAPES.items() if size[1] % 2 == 0},
    **ATTENTION,
)
# Other ranks than four: without a batch, without heads, with two of them; keys that a batch shares.
RANKS = {
    "none": ((), ()),
    "heads": ((3,), (3,)),
    "two": ((2, 1, 3), (2, 1, 3)),
    "shared": ((2, 3), (1, 1)),
    "each": ((1, 3), (2, 1)),
    "lent": ((2, 3), (3,)),
}
t.add(
    "attention_ranks",
    lambda c: c.draw("any", (*RANKS[c.args["_rank"]][0], c.shape[0], c.shape[2])),
    lambda c: c.draw("unit", (*RANKS[c.args["_rank"]][1], c.shape[1], c.shape[2])),
    lambda c: c.draw("unit", (*RANKS[c.args["_rank"]][1], c.shape[1], c.shape[2])),
    lambda c: (c.indices(3, c.shape[:2]) > 0) if c.args["_masked"] else None,
    act=lambda q, k, v, m, rank, masked, **o: F.scaled_dot_product_attention(q, k, v, m, **o),
    _rank=tuple(RANKS),
    _masked=(False, True),
    is_causal=(ABSENT, True),
    scale=SCALE[:4],
    sizes={"main": (5, 7, 8), "one": (1, 1, 1), "query": (1, 33, 64), "square": (33, 33, 9), "wide": (2, 100, 96)},
    layouts_of=(0, 1, 2),
    **ATTENTION,
)
t.add(
    "multi_head_attention_forward",
    lambda c: c.draw("any", (c.shape[2], c.shape[0], c.shape[1] * c.shape[4])),
    lambda c: c.draw("unit", (3 * c.shape[1] * c.shape[4], c.shape[1] * c.shape[4])),
    lambda c: c.draw("unit", (3 * c.shape[1] * c.shape[4],)),
    lambda c: c.draw("unit", (c.shape[1] * c.shape[4], c.shape[1] * c.shape[4])),
    lambda c: c.shape[1],
    act=lambda *given, **o: _many_heads(*given, **o),
    _hidden=(None, "keys", "queries", "both"),
    _added=(False, True),
    add_zero_attn=(False, True),
    _weights=(True, False),
    _averaged=(True, False),
    sizes={key: SHAPES[key] for key in ("main", "one", "square", "batch", "thin")},
    layouts_of=(0, 1, 3),
    **{**ATTENTION, "dtypes": "s", "terms": 256, "floor": 1.0},
)


def _many_heads(x, weight, bias, out, heads, hidden, added, shown, averaged, **options):
    steps, batch, width = x.shape
    keys = torch.arange(batch * steps, device=x.device).reshape(batch, steps) % 3 == 2
    later = torch.ones(steps, steps, device=x.device).triu(1).bool()
    extra = bias[:width].reshape(1, 1, width)
    return [
        one
        for one in F.multi_head_attention_forward(
            *(x, x, x, width, heads, weight, bias),
            *((extra, extra * 2) if added else (None, None)),
            options["add_zero_attn"],
            0.0,
            out,
            None,
            key_padding_mask=keys if hidden in ("keys", "both") else None,
            attn_mask=later if hidden in ("queries", "both") else None,
            need_weights=shown,
            average_attn_weights=averaged,
        )
        if one is not None
    ]


ROWS = {
    "main": (5, 7),
    "four": (2, 3, 4, 6),
    "column": (33, 1),
    "row": (1, 31),
    "long": (3, 1031),
    "rows": (20011, 4),
    "far": (2, 40009),
    "three": (4, 3, 32),
    "wide": (3, 4099),
}
for name in ("softmax", "log_softmax"):
    t.add(
        f"{name}_masked",
        "any",
        lambda c: _hidden(c),
        act=lambda x, m, which, fill, dim, name=name: getattr(torch, name)(x.masked_fill(m, fill), dim),
        _which=("some", "none", "all", "first", "last", "rows"),
        _fill=(float("-inf"), -1e4, float("inf")),
        _dim=(-1, 0, 1, -2),
        sizes=ROWS,
        dtypes="f",
        values=("plain", "zero", "wide"),
        forms=BOTH,
        factor=32.0,
    )


def _hidden(c):
    """A mask as large as the input, of the places that are left out."""
    shape, which = c.shape, c.args["_which"]
    last = torch.arange(shape[-1]).expand(shape)
    return {
        "some": lambda: c.indices(3, shape) == 0,
        "none": lambda: last < 0,
        "all": lambda: last >= 0,
        "first": lambda: last == 0,
        "last": lambda: last >= (shape[-1] + 1) // 2,
        "rows": lambda: (torch.arange(shape[0]) % 2 == 1).reshape(-1, *(1,) * (len(shape) - 1)).expand(shape),
    }[which]().clone()


t.add(
    "masked_softmax",
    lambda c: c.draw("any", c.shape),
    lambda c: (
        c.indices(3, c.shape) == 0
        if c.args["_type"] == 2
        else c.indices(3, (c.shape[0], c.shape[3]) if c.args["_type"] else c.shape[2:]) == 0
    ),
    act=lambda x, m, kind: torch._masked_softmax(x, m, -1, kind),
    _type=(0, 1, 2),
    sizes={
        "main": (2, 3, 5, 5),
        "one": (1, 1, 1, 1),
        "square": (1, 2, 33, 33),
        "many": (33, 2, 3, 3),
        "long": (1, 1, 100, 100),
    },
    dtypes="s",
    values=("plain", "zero", "wide"),
    forms=("call",),
    factor=32.0,
)
