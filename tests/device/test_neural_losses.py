"""Losses: weights, ignored targets, reductions, smoothing and every other argument by threes, with gradients."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.covering import covering, label

cases = Cases("neural")
REDUCTIONS = ("mean", "sum", "none")
LAYOUTS = ("plain", "transposed", "sliced", "expanded")
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _laid(x: torch.Tensor, layout: str) -> torch.Tensor:
    """Return x's values in another layout; expanded: its first row for all."""
    if layout == "transposed":
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "sliced":
        return torch.cat([x, x, x], dim=0)[x.shape[0] : 2 * x.shape[0]]
    return x[:1].expand(x.shape) if layout == "expanded" else x


def _derived(loss: Callable[..., torch.Tensor], *starts: torch.Tensor) -> Any:
    """Return the loss and its gradients, of an uneven output gradient where the loss is not one number."""
    leaves = [leaf(start) for start in starts]
    value = loss(*leaves)
    if value.dim() == 0:
        (value * 1.5).backward()
    else:
        ramp = torch.arange(value.numel(), device=value.device).reshape(value.shape).to(value.dtype)
        value.backward((ramp % 5 - 1) / 2)
    return value, [one.grad for one in leaves]


def _add(case_id: str, act: Any, make: Any, dtype: torch.dtype = torch.float32) -> None:
    cases.add(
        f"neural-{case_id}",
        act,
        make=make,
        terms=256 if dtype == torch.float32 else 16,
        factor=8,
        floor=0.25 if dtype == torch.float32 else 0.0,
        since="2.0",
        states=("fresh", "polluted"),
        deterministic=False,
        may_be_missing=True,
    )


# Cross entropy and the like.
_CLASSES: dict[str, tuple[Any, ...]] = {
    "loss": ("cross_entropy", "nll_loss"),
    "reduction": REDUCTIONS,
    "weight": (False, True),
    "ignore": (None, -100, 2, 1),
    "smoothing": (0.0, 0.25),
    "shape": ((6, 5), (3, 5, 4), (2, 5, 3, 4), (2, 4, 2, 3, 2), (7,)),
    "layout": LAYOUTS,
    "target": ("indices", "all_ignored", "chances", "strided"),
    "dtype": DTYPES,
}


def _classes_allowed(row: Any) -> bool:
    plain = row["loss"] == "nll_loss" or len(row["shape"]) == 1
    if row["target"] == "chances" and (row["ignore"] is not None or plain):
        return False
    if row["target"] == "all_ignored" and (row["ignore"] is None or row["reduction"] == "mean"):
        return False
    if len(row["shape"]) == 1 and row["layout"] != "plain":
        return False
    return row["loss"] == "cross_entropy" or row["smoothing"] == 0


def _classes(row: Any) -> Any:
    shape = row["shape"]

    def make(d: Any) -> Any:
        count = shape[1] if len(shape) > 1 else shape[0]
        spots = (shape[0], *shape[2:]) if len(shape) > 1 else ()
        chances = d.normal(*shape, dtype=row["dtype"]).float().softmax(1 if len(shape) > 1 else 0).to(row["dtype"])
        weight = d.uniform(0.25, 2, count, dtype=row["dtype"])
        return d.normal(*shape, dtype=row["dtype"]), d.integers(0, count, *spots), chances, weight

    def act(x: Any, target: Any, chances: Any, weight: Any) -> Any:
        options: dict[str, Any] = {"reduction": row["reduction"], "weight": weight if row["weight"] else None}
        if row["target"] != "chances" and row["ignore"] is not None:
            options["ignore_index"] = row["ignore"]
            target = torch.where(target == 0, row["ignore"], target)
        if row["target"] == "all_ignored":
            target = torch.full_like(target, row["ignore"])
        if row["target"] == "strided" and target.dim():
            target = torch.stack([target, target * 0], -1)[..., 0]
        if row["loss"] == "cross_entropy":
            options["label_smoothing"] = row["smoothing"]
        given = chances if row["target"] == "chances" else target
        return _derived(lambda start: getattr(F, row["loss"])(_laid(start, row["layout"]), given, **options), x)

    return act, make


for _number, _row in enumerate(covering("classes", _CLASSES, _classes_allowed)):
    _add(f"{_row['loss']}-{_number}-" + label({**_row, "loss": None}), *_classes(_row), dtype=_row["dtype"])

# Losses of two tensors of one shape: by name, their own options, the range of their inputs.
_PAIRED: dict[str, tuple[dict[str, tuple[Any, ...]], str]] = {
    "mse_loss": ({}, "normal"),
    "l1_loss": ({}, "normal"),
    "smooth_l1_loss": ({"beta": (None, 0.25, 2.0)}, "normal"),
    "huber_loss": ({"delta": (None, 0.25, 2.0)}, "normal"),
    "soft_margin_loss": ({}, "signs"),
    "hinge_embedding_loss": ({"margin": (None, 0.5)}, "signs"),
    "binary_cross_entropy": ({"weight": (None, "weight")}, "chances"),
    "binary_cross_entropy_with_logits": ({"weight": (None, "weight"), "pos_weight": (None, "row")}, "logits"),
    "kl_div": ({"log_target": (None, True)}, "logs"),
    "poisson_nll_loss": ({"log_input": (None, False), "full": (None, True)}, "positive"),
    "gaussian_nll_loss": ({"full": (None, True)}, "gaussian"),
    "multilabel_soft_margin_loss": ({"weight": (None, "row")}, "bits"),
    "cosine_embedding_loss": ({"margin": (None, 0.25)}, "vectors"),
    "margin_ranking_loss": ({"margin": (None, 0.5)}, "ranks"),
    "triplet_margin_loss": ({"p": (None, 1.0), "swap": (None, True), "margin": (None, 0.5)}, "triplet"),
    "multi_margin_loss": ({"p": (None, 2), "margin": (None, 0.5), "weight": (None, "row")}, "classes"),
}


def _paired(name: str, kind: str, row: Any) -> Any:
    dtype = row["dtype"]

    shape = row.get("shape", (6, 5))

    def make(d: Any) -> Any:
        draws = [d.normal(*shape, dtype=dtype) for _ in range(3)]
        return (*draws, d.uniform(0.125, 0.875, *shape, dtype=dtype), d.uniform(0.125, 0.875, *shape, dtype=dtype))

    def act(x: Any, y: Any, z: Any, p: Any, q: Any) -> Any:
        own = {key: row[key] for key in _PAIRED[name][0] if row[key] is not None}
        own = {
            key: {"weight": p, "row": q[0] if q.dim() and len(q) else q}.get(value, value)
            if isinstance(value, str)
            else value
            for key, value in own.items()
        }
        signs = torch.where(y > 0, 1.0, -1.0).to(x.dtype)
        starts, rest = {
            "normal": ((x, y), ()),
            "signs": ((x,), (signs,)),
            "chances": ((p,), (q,)),
            "logits": ((x,), (q,)),
            "logs": ((x, q.log() if row.get("log_target") else q), ()),
            "positive": ((p, q), ()),
            "gaussian": ((x, y, p), ()),
            "bits": ((x,), ((y > 0).to(x.dtype),)),
            "vectors": ((x, y), (signs[:, :1].squeeze(1) if signs.dim() > 1 else signs,)),
            "ranks": ((x, y), (signs,)),
            "triplet": ((x, y, z), ()),
            "classes": ((x,), (torch.arange(6, device=x.device) % 5,)),
        }[kind]

        def loss(*given: torch.Tensor) -> torch.Tensor:
            laid = [_laid(given[0], row["layout"]), *given[1:]]
            return getattr(F, name)(*laid, *rest, reduction=row["reduction"], **own)

        return _derived(loss, *starts)

    return act, make


# The CPU lacks half precision for one, and in the other rounding decides which side of a fold is taken.
_SINGLE = ("multi_margin_loss", "triplet_margin_loss")
for _name, (_own, _kind) in _PAIRED.items():
    _factors = {
        **_own,
        "reduction": REDUCTIONS,
        "layout": LAYOUTS[:3],
        "dtype": DTYPES if _name not in _SINGLE else DTYPES[:1],
    }
    for _row in covering(_name, _factors):
        _add(f"{_name}-" + label(_row), *_paired(_name, _kind, _row), dtype=_row["dtype"])

# Every rank, sides of 1, and nothing at all: each reduction with its gradient, alone and weighted.
_SHAPES = ((), (1,), (7,), (6, 1), (1, 6), (1, 1), (2, 3, 4), (2, 1, 3, 2), (2, 1, 3, 1, 2), (0,), (3, 0), (0, 5))
_OF_ANY_SHAPE = ("normal", "signs", "chances", "logits", "logs", "positive", "gaussian", "ranks")


def _each_reduction(name: str, kind: str, shape: tuple[int, ...], weighted: bool) -> tuple[Any, Any]:
    own = {key: values[-1] if weighted and "weight" in values else None for key, values in _PAIRED[name][0].items()}
    fields = {**own, "layout": "plain", "dtype": torch.float32, "shape": shape}
    pairs = [_paired(name, kind, {**fields, "reduction": reduction}) for reduction in REDUCTIONS]
    return lambda *bases: [act(*bases) for act, _ in pairs], pairs[0][1]


for _name, (_own, _kind) in _PAIRED.items():
    if _kind not in _OF_ANY_SHAPE:
        continue
    for _weighted in (False, True) if "weight" in _own else (False,):
        _every = [_each_reduction(_name, _kind, _shape, _weighted) for _shape in _SHAPES]
        _add(
            f"{_name}-shapes" + ("-weighted" if _weighted else ""),
            lambda *given, every=_every: [act(*bases) for (act, _), bases in zip(every, given)],
            lambda d, every=_every: tuple(make(d) for _, make in every),
        )
