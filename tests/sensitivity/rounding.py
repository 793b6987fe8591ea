"""A healthy device that rounds otherwise: every computed number moves by a unit or so in its last place.

No fault: a suite that calls this wrong would call every other back end wrong. What moves data or chooses among it stays
exact, and so do whole numbers, which any hardware computes exactly while they are small, and what a sum, a product or a
quotient gives without rounding.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Operators whose results are some of their inputs, or drawn, or a step of one: nothing is rounded in them.
EXACT = frozenset(
    """_local_scalar_dense _reshape_copy _to_copy _unsafe_view abs alias amax amin arange argmax argmin bernoulli cat
    cauchy ceil clamp clamp_max clamp_min clone col2im complex constant_pad_nd copy copysign cummax cummin detach
    diag_embed diagonal_backward dropout embedding empty empty_strided exponential eye fill flip floor fmax fmin fmod
    frac frexp full gather geometric hardshrink
    hardtanh heaviside im2col imag index index_add index_copy index_fill index_put index_select kthvalue leaky_relu
    lift_fresh log_normal masked_fill masked_scatter masked_select max max_pool2d_with_indices
    max_pool3d_with_indices maximum median min minimum mode multinomial nan_to_num nanmedian native_dropout neg
    new_empty new_empty_strided new_full new_ones new_zeros nextafter normal one_hot ones pad poisson polar rand
    rand_like randint
    randint_like randn randn_like random randperm real reflection_pad1d reflection_pad2d reflection_pad3d relu
    repeat repeat_interleave replication_pad1d replication_pad2d replication_pad3d resize roll rot90 round
    scalar_tensor scatter
    scatter_reduce select_backward select_scatter set sgn sign slice_backward slice_scatter sort stack take
    threshold topk tril triu trunc unfold_backward uniform unsafe_chunk unsafe_split unsafe_split_with_sizes
    unique_consecutive upsample_nearest1d upsample_nearest2d
    upsample_nearest3d view_as_complex view_as_real where zero zeros
    """.split()  # noqa: SIM905 - a list of a hundred words reads better so
)
# Each is one operation of IEEE 754, rounded once: a result that needs no rounding has none on any hardware.
ONCE = frozenset({"add", "sub", "rsub", "mul", "div", "remainder"})


class RoundsOtherwise(TorchDispatchMode):
    """Scales what is computed by 1 + r `units` eps, r in [-1, 1] by place alone: equal calls stay equal.

    Attributes:
        computed: how many results had a fraction that could be rounded.
        moved: how many of those changed.
    """

    def __init__(self, units: float = 1.0) -> None:
        super().__init__()
        self.units, self.computed, self.moved = units, 0, 0
        self._unrounded: torch.Tensor | None = None
        self._noise: dict[tuple[torch.Size, torch.dtype], torch.Tensor] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        schema = func._schema
        name = schema.name.split("::")[1].rstrip("_").removeprefix("_foreach_")
        self._unrounded = _unrounded_of(func, args, kwargs) if name in ONCE and "foreach" not in schema.name else None
        answer = func(*args, **kwargs)
        if name in ("linalg_vector_norm", "norm") and len(args) > 1 and args[1] in (float("inf"), float("-inf")):
            return answer  # the largest of them, or the least
        if name in EXACT or any(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns):
            return answer
        if schema.is_mutable:
            for one, value in zip(schema.arguments, args):
                if one.alias_info is not None and one.alias_info.is_write:
                    self._move_in_place(value)
            for one in schema.arguments:
                if one.kwarg_only and one.alias_info is not None and one.alias_info.is_write:
                    self._move_in_place(kwargs.get(one.name))
            return answer
        return self._moved(answer)

    def _moved(self, value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(self._moved(each) for each in value)
        if not _is_computed(value):
            return value
        moved = value * (1 + self._noise_like(value) * torch.finfo(value.dtype).eps)
        whole = _is_whole(value)
        if self._unrounded is not None and self._unrounded.shape == value.shape:
            whole = whole | (self._unrounded == value)
        found = torch.where(whole, value, moved.to(value.dtype))
        with contextlib.suppress(RuntimeError):  # what is being traced has no value yet
            self.computed += not bool(whole.all())
            self.moved += bool((found != value)[~whole].any())
        return found

    def _move_in_place(self, value: Any) -> None:
        for each in value if isinstance(value, (tuple, list)) else (value,):
            if _is_computed(each):
                each.copy_(self._moved(each))

    def _noise_like(self, value: torch.Tensor) -> torch.Tensor:
        key = (value.shape, value.dtype)
        if key not in self._noise:
            generator = torch.Generator().manual_seed(value.numel())
            wide = torch.float64 if value.dtype == torch.float64 else torch.float32
            self._noise[key] = (torch.rand(value.shape, generator=generator, dtype=wide) * 2 - 1) * self.units
        return self._noise[key]


def _unrounded_of(func: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
    """Return what an operation gives of the same numbers in float64; None where nothing is to be said of it."""
    floating = [one for one in args if _is_computed(one)]
    if not floating or any(one.dtype == torch.float64 for one in floating):
        return None
    # Nothing but copies may be written to.
    if any(isinstance(one, torch.Tensor) for one in kwargs.values()) or not (
        _is_computed(args[0]) or not func._schema.is_mutable
    ):
        return None
    with contextlib.suppress(Exception):  # what is traced has no value yet, and what is refused will be
        return func(*(one.double() if _is_computed(one) else one for one in args), **kwargs)
    return None


def _is_computed(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.layout == torch.strided
        and not value.is_nested
        and value.dtype.is_floating_point
        and value.device.type != "meta"
        and not value._is_zerotensor()
    )


def _is_whole(value: torch.Tensor) -> torch.Tensor:
    return (value == value.round()) | ~torch.isfinite(value)


def _has_fraction(value: torch.Tensor) -> bool:
    return value.is_floating_point() or value.is_complex()


class ChoosesOtherwise(TorchDispatchMode):
    """A healthy device that decides otherwise what operators leave open.

    At ties it takes the last, it writes in the other order, and it makes 0 of what no whole number can hold.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        if name in ("aten::sort", "aten::topk") and func._overloadname == "default" and args[0].dim():
            place = 2 if name == "aten::topk" else 1
            dim = args[place] if len(args) > place else -1
            values, found = func(args[0].flip(dim), *args[1:], **kwargs or {})
            return values, args[0].shape[dim] - 1 - found
        if name in ("aten::scatter", "aten::index_copy") and len(args) == 4 and isinstance(args[3], torch.Tensor):
            x, dim, index, source = args
            line = dim if name == "aten::scatter" else 0
            if index.dim() and source.dim() and source.shape == index.shape:
                return func(x, dim, index.flip(line), source.flip(dim), **kwargs or {})
        if name == "aten::median" and func._overloadname == "dim" and args[0].dim():
            values, _ = func(args[0], args[1], True)
            first = ((args[0] == values) | (args[0] != args[0])).int().argmax(args[1], keepdim=True)
            return (values, first) if args[2:] == (True,) else (values.squeeze(args[1]), first.squeeze(args[1]))
        if name == "aten::max_pool3d_with_indices" and func._overloadname == "default":
            values, found = func(args[0].double().contiguous(), *args[1:], **kwargs or {})
            return values.to(args[0].dtype), found
        if name == "aten::sigmoid_" and args[0].is_complex():
            low, high = (one.exp() for one in (args[0], -args[0]))
            return args[0].copy_(torch.where(args[0].real < 0, low / (1 + low), 1 / (1 + high)))
        if name == "aten::sum" and (kwargs or {}).get("dtype") == torch.int64 and _has_fraction(args[0]):
            args = (args[0].masked_fill(~args[0].isfinite(), 0), *args[1:])
        answer = func(*args, **kwargs or {})
        if name == "aten::_to_copy" and _is_computed(args[0]) and not answer.is_floating_point():
            return answer.masked_fill(~args[0].isfinite(), 0) if answer.dtype != torch.bool else answer
        return answer
