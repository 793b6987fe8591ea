"""The fault that each rule over all overloads is for: `test_rules.py` plants it on the device run."""

from __future__ import annotations

import math
from typing import Any, Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
Fault = Callable[[Any, Any, Any], Any]


class Faulty(TorchDispatchMode):
    """Answers as a fault does; `fault` gets (overload, positional arguments, the others)."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self._fault = fault

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._fault(func, list(args), dict(kwargs or {}))


def right(func: Any, args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs)


def clamps_places(func: Any, args: Any, kwargs: Any) -> Any:
    if func is aten.index_select.default:
        args[2] = args[2].clamp(0, args[0].shape[args[1]] - 1)
    return func(*args, **kwargs)


def takes_any_bias(func: Any, args: Any, kwargs: Any) -> Any:
    try:
        return func(*args, **kwargs)
    except RuntimeError:
        if func is not aten.native_layer_norm.default:
            raise
        return args[0], args[0], args[0]


def writes_before_it_refuses(func: Any, args: Any, kwargs: Any) -> Any:
    try:
        return func(*args, **kwargs)
    except RuntimeError:
        if func is aten.addmm.default:
            args[1].zero_()
        raise


def loses_nan(func: Any, args: Any, kwargs: Any) -> Any:
    if func is aten.addmm.default:
        args[2] = args[2].nan_to_num(0.0)
    return func(*args, **kwargs)


def stale() -> Fault:
    """Keep a constant of the first call with these shapes and dtypes: the graph's key lacks `alpha`."""
    known: dict[Any, Any] = {}

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        if func is aten.add.Tensor:
            key = tuple((x.shape, x.dtype) for x in args if isinstance(x, torch.Tensor))
            kwargs["alpha"] = known.setdefault(key, kwargs.get("alpha", 1))
        return func(*args, **kwargs)

    return fault


def dense(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    return answer.contiguous() if func is aten.exp.default else answer


def copies(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    return answer.clone() if func is aten.transpose.int else answer


def rounds_twice(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    if func is aten.lerp.Tensor and answer.dtype == torch.float16:
        return args[0] + args[2] * (args[1] - args[0])
    return answer


def answers_nan(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    return answer * math.nan if func is aten.lerp.Tensor and answer.dtype == torch.float16 else answer


def overwrites(func: Any, args: Any, kwargs: Any) -> Any:
    """Convert in the source's own memory: pytorch 189563."""
    answer = func(*args, **kwargs)
    if func is aten._to_copy.default and args[0].dtype == torch.float32 and answer.dtype == torch.float16:
        args[0].zero_()
    return answer


def own_generator(func: Any, args: Any, kwargs: Any) -> Any:
    """Draw from the default generator too, whatever generator is given."""
    if kwargs.get("generator") is not None:
        torch.rand(3)
    return func(*args, **kwargs)


def gathered_once() -> Fault:
    """Gather a view with gaps once, and answer the same for it from then on."""
    known: dict[Any, Any] = {}

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        answer = func(*args, **kwargs)
        if func is aten.clone.default and not args[0].is_contiguous():
            return known.setdefault((args[0].data_ptr(), args[0].stride()), answer).clone()
        return answer

    return fault


def written_once() -> Fault:
    """Lose what is written in place to a view that was written to before."""
    known = set()

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        if func is not aten.add_.Tensor:
            return func(*args, **kwargs)
        key = args[0].data_ptr(), args[0].stride()
        if key in known:
            return args[0]
        known.add(key)
        return func(*args, **kwargs)

    return fault


def first_of_its_form(which: Any, place: int) -> Fault:
    """Take an operand that a module keeps, of the first module that has it in this shape and dtype."""
    known: dict[Any, Any] = {}

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        if func is which:
            args[place] = known.setdefault((args[place].shape, args[place].dtype), args[place].clone())
        return func(*args, **kwargs)

    return fault


def steps_too_short(func: Any, args: Any, kwargs: Any) -> Any:
    """Make half an optimiser's step where a parameter is larger than the first module's."""
    if func is aten.add_.Tensor and kwargs.get("alpha", 1) < 0 and args[0].numel() > 25:
        kwargs["alpha"] /= 2
    return func(*args, **kwargs)


def drops_what_is_past(inner: int) -> Fault:
    """Leave out, of products with more than so many terms, what is behind them: pytorch 195163."""

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        if func is aten.mm.default and args[0].shape[1] > inner:
            return func(args[0][:, :inner], args[1][:inner])
        return func(*args, **kwargs)

    return fault


def looks_no_further_than(count: int) -> Fault:
    """Look for the largest in a line's first elements alone, as indices of 16 bits do."""

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        if func is aten.topk.default and args[0].shape[args[2]] > count:
            args[0] = args[0].narrow(args[2], 0, count)
        return func(*args, **kwargs)

    return fault


def takes_another_kernel(func: Any, args: Any, kwargs: Any) -> Any:
    """Take the kernel that was made for 16 channels for a multiple of it, without what it leaves out."""
    if func is aten.convolution.default and args[8] == 1 and args[1].dim() == 5 and args[1].shape[1] == 16:
        args[2] = None
    return func(*args, **kwargs)


def accepts(which: Any, answer: Callable[..., Any], *, if_: Callable[..., bool] = lambda *args: True) -> Fault:
    """Answer what is refused: something of the operands, where a condition holds."""

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except (IndexError, RuntimeError, ValueError):
            if func is not which or not if_(*args):
                raise
            return answer(*args, **kwargs)

    return fault


def _lower_half(x: torch.Tensor, target: torch.Tensor, reduction: int) -> Any:
    short = (target & 0xFFFFFFFF) % x.shape[-1]
    return aten.multilabel_margin_loss_forward.default(x, short, reduction)


def writes_densely(func: Any, args: Any, kwargs: Any) -> Any:
    """Write to an `out=` as if it had no gaps."""
    if func is not aten.mm.out:
        return func(*args, **kwargs)
    out = kwargs["out"]
    out.as_strided(out.shape, (out.shape[1], 1)).copy_(aten.mm.default(*args))
    return out


def in_rows(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    return answer.contiguous() if func is aten.nonzero.default else answer


def not_written_yet() -> Fault:
    """Read the answer of a comparison before it is there, in a reduction that follows at once."""
    known: list[torch.Tensor] = []

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        answer = func(*args, **kwargs)
        if func is aten.all.default and known and known[0] is args[0]:
            return torch.zeros_like(answer)
        known[:] = [answer] if func is aten.le.Tensor else []
        return answer

    return fault


def first_of_its_shapes() -> Fault:
    """Take the dilation of the first gradient with these shapes: a graph's key lacks it."""
    known: dict[Any, Any] = {}

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        if func is aten.convolution_backward.default:
            args[6] = known.setdefault(tuple(one.shape for one in args[:3]), args[6])
        return func(*args, **kwargs)

    return fault


def stops_at_nothing(func: Any, args: Any, kwargs: Any) -> Any:
    """Refuse a gradient without elements, with deterministic algorithms alone."""
    empty = func is aten.reflection_pad2d_backward.default and not args[0].numel()
    if empty and torch.are_deterministic_algorithms_enabled():
        raise RuntimeError("illegal memory access")
    return func(*args, **kwargs)


# A rule's case, and what it must notice.
FAULTS: list[tuple[str, Fault]] = [
    ("places-index_select", clamps_places),
    ("refused-native_layer_norm", takes_any_bias),
    ("refused-addmm", writes_before_it_refuses),
    ("special-addmm", loses_nan),
    ("turns-add", stale()),
    ("form-exp", dense),
    ("form-transpose", copies),
    ("rounding-lerp", rounds_twice),
    ("rounding-lerp", answers_nan),
    ("conversion-float32", overwrites),
    ("random-stream-rand", own_generator),
    ("chains-mul", gathered_once()),
    ("chains-add", written_once()),
    ("modules-Linear", first_of_its_form(aten.addmm.default, 2)),
    ("modules-BatchNorm2d", first_of_its_form(aten.native_batch_norm.default, 3)),
    ("modules-Linear", steps_too_short),
    ("threshold-inner-float32", drops_what_is_past(1 << 15)),
    ("threshold-line-chosen-float32", looks_no_further_than(1 << 16)),
    ("threshold-conv3d-float16", takes_another_kernel),
    ("options-pixel_shuffle", accepts(aten.pixel_shuffle.default, lambda x, *_: x.clone())),
    ("options-add", accepts(aten.add.out, lambda *_, out, **__: out)),
    ("indices-index_select", accepts(aten.index_select.default, lambda x, *_: x, if_=lambda x, *_: not x.numel())),
    (
        "indices-multilabel_margin_loss_forward",
        accepts(
            aten.multilabel_margin_loss_forward.default, _lower_half, if_=lambda x, y, *_: int(y.abs().max()) > 1 << 31
        ),
    ),
    (
        "indices-_embedding_bag",
        accepts(aten._embedding_bag.default, lambda x, *_: (x, x, x, x), if_=lambda x, y, z, *_: int(z[0]) > 0),
    ),
    (
        "misfits-multilabel_margin_loss_forward",
        accepts(aten.multilabel_margin_loss_forward.default, lambda x, *_: (x.sum(), x)),
    ),
    ("outs-mm", writes_densely),
    ("strides-nonzero", in_rows),
    ("handed-le", not_written_yet()),
    ("again-convolution", first_of_its_shapes()),
    ("deterministic-reflection_pad2d", stops_at_nothing),
]
