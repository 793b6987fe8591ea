"""A healthy device that chooses otherwise where PyTorch leaves the choice to it.

No plant: a row that changes its answer under this mode has no one answer, so it must not be asked. Writes to one place
happen in the opposite order, equal values are sorted the other way round, and a number that an integer cannot hold
becomes another integer.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from unasked import UNASKED, contradicts, of_finite_matrices

# What a back end makes of a number that the integer dtype cannot hold: no CPU gives this one on purpose.
_OTHER_NUMBER = 77
# More summands than this, one by one, leave half precision without a defined sum.
_MOST_ADDED = 64
_HALVES = (torch.float16, torch.bfloat16)


class ChoosesOtherwise(TorchDispatchMode):
    """Answers as a device may: other order of writes, other order of ties, other out-of-range conversions.

    `choices`: by the operator's name; all, unless told.
    """

    def __init__(self, choices: dict[str, Callable[..., Any]] | None = None) -> None:
        super().__init__()
        self._choices = _CHOICES if choices is None else choices

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.split("::")[1]
        choose = self._choices.get(name.rstrip("_"))
        answer = choose(func, list(args), dict(kwargs)) if choose is not None else func(*args, **kwargs)
        converts = choose is None and isinstance(kwargs.get("dtype"), torch.dtype) and isinstance(answer, torch.Tensor)
        if converts and args and isinstance(args[0], torch.Tensor) and not bool(_fits(args[0], answer.dtype).all()):
            answer.fill_(_OTHER_NUMBER)  # a sum or a product that converts first
        return answer


def _scatter(func: Any, args: Any, kwargs: Any) -> Any:
    """Write from the other end along the dimension; half precision stands still after many additions."""
    target, dim, index = args[0], args[1], args[2]
    if index.dim():
        source = args[3] if len(args) > 3 else kwargs.get("src")
        if isinstance(source, torch.Tensor) and source.dim() == index.dim():
            part = source[tuple(slice(0, side) for side in index.shape)]
            kwargs.pop("src", None)
            args[3:4] = [part.flip(dim)]
        args[2] = index.flip(dim)
    answer = func(target, *args[1:], **kwargs)
    if "reduce" in kwargs and target.dtype in _HALVES and index.numel() and index.dim():
        _, repeats = index.reshape(-1).unique(return_counts=True)
        if int(repeats.max()) // max(index.numel() // max(index.shape[dim], 1), 1) > _MOST_ADDED:
            answer.zero_()
    return answer


def _copy_along(func: Any, args: Any, kwargs: Any) -> Any:
    dim, index, source = args[1:4]
    if index.dim() and source.dim():
        args[2], args[3] = index.flip(0), source.flip(dim)
    return func(*args, **kwargs)


def _put_by_index(func: Any, args: Any, kwargs: Any) -> Any:
    target, indices, values = args[:3]
    if (len(args) > 3 and args[3]) or kwargs.get("accumulate"):
        return func(*args, **kwargs)
    healthy = func(*args, **kwargs)
    written = target if func._schema.is_mutable else healthy
    places = torch.arange(target.numel()).reshape(target.shape)
    where = torch.ops.aten.index.Tensor(places, indices).reshape(-1)
    if where.unique().numel() < where.numel():
        spread = values.broadcast_to(torch.ops.aten.index.Tensor(places, indices).shape).reshape(-1).flip(0)
        flat = written.reshape(-1).clone()
        for place, value in zip(where.flip(0).tolist(), spread):
            flat[place] = value
        written.copy_(flat.reshape(written.shape))
    return healthy


def _put(func: Any, args: Any, kwargs: Any) -> Any:
    if not ((len(args) > 3 and args[3]) or kwargs.get("accumulate")):
        args[1], args[2] = args[1].reshape(-1).flip(0), args[2].reshape(-1).flip(0)
    return func(*args, **kwargs)


def _sort(func: Any, args: Any, kwargs: Any) -> Any:
    """Sort equal values the other way round, unless a stable order is asked for."""
    stable = kwargs.get("stable") or ("stable" in func._overloadname and len(args) > 1 and args[1])
    if stable or not args[0].dim():
        return func(*args, **kwargs)
    rest = args[2:] if "stable" in func._overloadname else args[1:]
    dim = kwargs.get("dim", rest[0] if rest else -1)
    return _put_out(_turned(args[0], dim, kwargs.get("descending", rest[1] if len(rest) > 1 else False)), kwargs)


def _topk(func: Any, args: Any, kwargs: Any) -> Any:
    """Choose the last among equal values."""
    given = dict(zip(("self", "k", "dim", "largest", "sorted"), args)) | kwargs
    if not given["self"].dim():
        return func(*args, **kwargs)
    dim = given.get("dim", -1)
    found, order = _turned(given["self"], dim, given.get("largest", True))
    return _put_out((found.narrow(dim, 0, given["k"]), order.narrow(dim, 0, given["k"])), kwargs)


def _turned(values: torch.Tensor, dim: int, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Sort from the end of a dimension, and count the indices from there."""
    found, order = torch.ops.aten.sort.stable(values.flip(dim), stable=True, dim=dim, descending=descending)
    return found, values.shape[dim] - 1 - order


def _put_out(found: tuple[torch.Tensor, torch.Tensor], kwargs: Any) -> Any:
    if "indices" not in kwargs:
        return found
    for out, one in zip((kwargs["values"], kwargs["indices"]), found):
        out.resize_(one.shape).copy_(one)
    return kwargs["values"], kwargs["indices"]


def _select(func: Any, args: Any, kwargs: Any) -> Any:
    """Name another place of the chosen value, the last or the first; of everything, a median has no index."""
    answer = func(*args, **kwargs)
    x = args[0]
    if not isinstance(answer, tuple) or not x.dim():
        return answer
    name = func._schema.name.split("::")[1]
    place = {"kthvalue": 2, "mode": 1}.get(name, 1)
    dim = kwargs.get("dim", args[place] if len(args) > place else -1)
    value = answer[0] if answer[0].dim() == x.dim() else answer[0].unsqueeze(dim)
    side = [x.shape[dim] if one == dim % x.dim() else 1 for one in range(x.dim())]
    same = (x == value) | ((x != x) & (value != value))
    keep = answer[1].dim() == x.dim()
    places = torch.arange(x.shape[dim]).reshape(side)
    last = (places * same).amax(dim, keepdim=keep)
    first = torch.where(same, places, x.shape[dim]).amin(dim, keepdim=keep)
    answer[1].copy_(torch.where(answer[1] == last, first, last))
    return answer


def _accumulated(func: Any, args: Any, kwargs: Any) -> Any:
    """Sum up in half precision: after thousands of steps no digit is left."""
    answer = func(*args, **kwargs)
    if answer.dtype in _HALVES and answer.numel() > 1 and bool(answer.isfinite().any()):
        dim = kwargs.get("dim", args[1])
        scale = answer.nan_to_num(0.0, 0.0, 0.0).abs().max()
        answer.add_(scale * torch.finfo(answer.dtype).eps * answer.shape[dim] ** 0.5 / 4)
    return answer


def _added(func: Any, args: Any, kwargs: Any) -> Any:
    """Add many numbers to one place in half precision, one by one."""
    answer = func(*args, **kwargs)
    index = args[2]
    if answer.dtype in _HALVES and index.numel() and index.dim():
        _, repeats = index.reshape(-1).unique(return_counts=True)
        if int(repeats.max()) // max(index.numel() // max(index.shape[args[1]], 1), 1) > _MOST_ADDED:
            answer.add_(answer.abs().max() * torch.finfo(answer.dtype).eps * _MOST_ADDED)
    return answer


def _nearest(func: Any, args: Any, kwargs: Any) -> Any:
    """Take the source of a pixel just below: where the exact place is a border, either side is right."""
    if contradicts(func, args, kwargs):
        return func(*args, **kwargs).fill_(_OTHER_NUMBER)
    backward = "backward" in func._schema.name
    size, shape = args[1], args[2] if backward else args[0].shape
    for place in range(len(size)):
        scale = args[3 - (not backward) + place] if len(args) > 3 - (not backward) + place else None
        exact = scale or size[place] / max(shape[2 + place], 1)
        step = Fraction(1 / scale) if scale else Fraction(shape[2 + place], max(size[place], 1))
        while len(args) <= 3 - (not backward) + place:
            args.append(None)
        args[3 - (not backward) + place] = exact * (1 if _holds(step) else 1 + 1e-6)
    return func(*args, **kwargs)


def _holds(step: Fraction) -> bool:
    """Say whether half precision holds a number exactly: then every place is exact too."""
    bits = step.denominator.bit_length() - 1
    return step.denominator == 1 << bits and step.numerator < 1024 and bits < 8


def _converted(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    source = args[1] if func._schema.name == "aten::copy_" else args[0]
    if isinstance(source, torch.Tensor) and isinstance(answer, torch.Tensor):
        _change_what_does_not_fit(source, answer)
    return answer


def _change_what_does_not_fit(source: torch.Tensor, answer: torch.Tensor) -> None:
    fits = _fits(source, answer.dtype)
    if not bool(fits.all()):
        answer.masked_fill_(~fits.broadcast_to(answer.shape), _OTHER_NUMBER)


def _vectors(func: Any, args: Any, kwargs: Any) -> Any:
    """Return the opposite vectors: they belong to the same values, and so does the product with both turned."""
    answer = func(*args, **kwargs)
    places = {"linalg_qr": (0, 1), "_linalg_svd": (0, 2), "_linalg_eigh": (1,)}[func._schema.name.split("::")[1]]
    for place in places:
        answer[place].neg_()
    return answer


def _fits(source: torch.Tensor, to: torch.dtype) -> torch.Tensor:
    """Say of each number whether a dtype can hold it, but for what is behind the point."""
    if not source.dtype.is_floating_point or to.is_floating_point or to.is_complex or to == torch.bool:
        return torch.ones((), dtype=torch.bool)
    facts, wide = torch.iinfo(to), source.detach().double()
    if to == torch.int64:
        return (wide >= -(2.0**63)) & (wide < 2.0**63)
    return (wide > facts.min - 1.0) & (wide < float(facts.max) + 1.0)


_CHOICES: dict[str, Callable[..., Any]] = {
    "scatter": _scatter,
    "index_copy": _copy_along,
    "index_put": _put_by_index,
    "_index_put_impl": _put_by_index,
    "put": _put,
    "sort": _sort,
    **dict.fromkeys(("kthvalue", "median", "nanmedian", "mode"), _select),
    "topk": _topk,
    **dict.fromkeys(("cumsum", "cumprod", "logcumsumexp"), _accumulated),
    **dict.fromkeys(("scatter_add", "index_add"), _added),
    **{
        f"{kind}{rank}d{back}": _nearest
        for kind in ("upsample_nearest", "_upsample_nearest_exact")
        for rank in (1, 2, 3)
        for back in ("", "_backward")
    },
    **dict.fromkeys(("_linalg_eigh", "_linalg_svd", "linalg_qr"), of_finite_matrices(_vectors)),
    "_to_copy": _converted,
    "copy": _converted,
    **UNASKED,
}
