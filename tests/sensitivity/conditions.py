"""Under which conditions the suite calls each overload: recorded inside every device run, as the touch map is.

A condition is an overload with a dtype of one operand, a value class of one argument, a layout, a rank or a size of one
operand. What could be reached beside it: conditions_reach.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterator

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

LAYOUTS = ("dense", "transposed", "offset", "step", "expanded", "channels_last", "no_dimensions", "empty")
DTYPES = {
    str(dtype)[6:]: dtype
    for dtype in (
        *(torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32),
        *(torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64),
    )
}
SIZES = ("0", "1", "odd", "prime", "x4", "x16", "x32", ">1024", ">65535")
RANKS = range(7)
# Arguments that say where a tensor lies or who draws, not what is computed.
PLACES = ("layout", "device", "pin_memory", "generator", "memory_format", "non_blocking")
_KEPT_ELEMENTS, _KEPT_SAMPLES = 2_000, 5


@dataclass
class Facts:
    """What one overload has met: operand number with dtype or layout, ranks, sizes, argument with value class."""

    dtypes: set[tuple[int, str]] = field(default_factory=set)
    layouts: set[tuple[int, str]] = field(default_factory=set)
    sizes: set[str] = field(default_factory=set)
    arguments: set[tuple[str, str]] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    samples: dict[Any, Any] = field(default_factory=dict)


class Conditions(TorchDispatchMode):
    """Records what each overload is called with; calls of one form count once."""

    def __init__(self) -> None:
        super().__init__()
        self.facts: dict[Any, Facts] = {}
        self.keys: set[Any] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # Read before the call, which may write to its operands; taken after it: a call that is refused meets nothing.
        met = self._met(func, args, kwargs) if func.namespace == "aten" else None
        answer = func(*args, **kwargs)
        if met is not None:
            self._take(func, *met)
        return answer

    def _met(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, Facts] | None:
        tensors = list(tensors_of((args, list(kwargs.values()))))
        form = (func, *((x.dtype, x.shape, x.stride(), x.storage_offset()) for x in tensors), str_of(args, kwargs))
        if form in self.keys or any(x.layout != torch.strided for x in tensors):
            return None
        met = Facts()
        for number, x in enumerate(tensors[:4]):
            met.dtypes.add((number, str(x.dtype)[6:]))
            met.layouts.add((number, layout_of(x)))
        if tensors:
            met.sizes |= sizes_of(tensors[0])
            met.values |= values_of(tensors[0])
        met.arguments |= arguments_of(func, args, kwargs)
        self._keep(met, self.facts.get(func, Facts()).samples, tensors, args, kwargs)
        return form, met

    def _take(self, func: Any, form: Any, met: Facts) -> None:
        self.keys.add(form)
        facts = self.facts.setdefault(func, Facts())
        for name in ("dtypes", "layouts", "sizes", "arguments", "values", "samples"):
            getattr(facts, name).update(getattr(met, name))

    def _keep(self, met: Facts, kept: dict[Any, Any], tensors: list[torch.Tensor], args: Any, kwargs: Any) -> None:
        """Keep a few calls of unlike form, to be asked again with another dtype, layout or size.

        Not those with a bare storage: it has no dtype or layout to change, and does not unpickle.
        """
        if any(isinstance(one, (torch.UntypedStorage, torch.TypedStorage)) for one in (*args, *kwargs.values())):
            return
        if len(kept) < _KEPT_SAMPLES and sum(x.numel() for x in tensors) < _KEPT_ELEMENTS:
            form = tuple((x.dtype.is_floating_point, x.dim()) for x in tensors), len(args), tuple(kwargs)
            if form not in kept:
                met.samples[form] = map_values((args, kwargs), lambda x: x.detach().clone())


class Transfers(TorchFunctionMode):
    """Records copies between host and device: direction, dtype, layout, change of dtype, non_blocking.

    In a rehearsal the device is written `cpu:0`, the host `cpu`, so a copy shows its direction.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, ...]] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.to or func is torch.Tensor.cpu:
            self._note(func, args, kwargs)
        return func(*args, **kwargs)

    def _note(self, func: Any, args: Any, kwargs: Any) -> None:
        x, given = args[0], [*args[1:], *kwargs.values()]
        places = [torch.device(one) for one in given if isinstance(one, (str, torch.device))]
        if x.layout != torch.strided or not (places or func is torch.Tensor.cpu):
            return
        where = "to device" if places and places[0].index == 0 else "to host"
        self.seen |= {(where, "dtype", str(x.dtype)[6:]), (where, "layout", layout_of(x))}
        if any(isinstance(one, torch.dtype) and one != x.dtype for one in given):
            self.seen.add((where, "argument", "dtype"))
        if kwargs.get("non_blocking") or any(one is True for one in given):
            self.seen.add((where, "argument", "non_blocking"))


def graph_key(form: Any) -> Any:
    """Return operator, dtypes, shapes and strides of a recorded form: what a Mac would compile once.

    >>> graph_key((torch.ops.aten.neg.default, (torch.bool, (2,), (1,), 5), "arguments"))[1]
    (torch.bool, (2,), (1,))
    """
    return (form[0], *(tensor[:3] for tensor in form[1:-1]))


def is_view(func: Any) -> bool:
    """Say whether an overload only makes a view: nothing is compiled or computed for it.

    >>> is_view(torch.ops.aten.transpose.int), is_view(torch.ops.aten.add_.Tensor), is_view(torch.ops.aten.add.out)
    (True, False, False)
    """
    schema = func._schema
    shared = any(one.alias_info is not None for one in schema.returns)
    return shared and not any(one.alias_info is not None and one.alias_info.is_write for one in schema.arguments)


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested arguments, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from tensors_of(each)
    elif isinstance(value, dict):
        yield from tensors_of(list(value.values()))


def map_values(value: Any, change: Any) -> Any:
    """Return nested arguments with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (tuple, list)):
        return type(value)(map_values(each, change) for each in value)
    return {key: map_values(each, change) for key, each in value.items()} if isinstance(value, dict) else value


def str_of(args: Any, kwargs: Any) -> str:
    """Return what is no tensor among the arguments, as one text."""
    return str(map_values((args, kwargs), lambda x: None))


def layout_of(x: torch.Tensor) -> str:
    """Return the layout class of a view: the first that fits, the odd ones before the plain."""
    if x.dim() == 0:
        return "no_dimensions"
    if x.numel() == 0:
        return "empty"
    wide = [(side, step) for side, step in zip(x.shape, x.stride()) if side > 1]
    if any(step == 0 for _, step in wide):
        return "expanded"
    if x.is_contiguous():
        return "offset" if x.storage_offset() else "dense"
    if x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last):
        return "channels_last"
    return "transposed" if [step for _, step in wide] != sorted((step for _, step in wide), reverse=True) else "step"


def sizes_of(x: torch.Tensor) -> set[str]:
    """Return the classes of an operand's rank and of its sides; the last class is of all its elements."""
    found = {f"rank {x.dim()}"} if x.dim() in RANKS else set()
    for side in x.shape:
        found |= {str(side)} if side < 2 else set()
        found |= {f"x{step}" for step in (4, 16, 32) if side and side % step == 0}
        found |= {"odd"} if side > 1 and side % 2 else set()
        found |= {"prime"} if side > 4 and all(side % one for one in range(2, int(side**0.5) + 1)) else set()
        found |= {">1024"} if side > 1024 else set()
    return found | ({">65535"} if x.numel() > 65535 else set())


def values_of(x: torch.Tensor) -> set[str]:
    """Return the classes of the values of a small operand."""
    if not 0 < x.numel() <= 4096 or x.dtype.is_complex or x._is_zerotensor():  # autograd's zeros have no memory
        return set()
    flat = x.detach().reshape(-1)
    if not x.is_floating_point():
        if x.dtype == torch.bool:
            return {"all true"} if bool(flat.all()) else {"all false"} if not bool(flat.any()) else set()
        wide, limits = flat.long(), torch.iinfo(x.dtype)
        found = {"beyond 2**24"} if bool((wide.abs() > 1 << 24).any()) else set()
        return found | {name for name in ("min", "max") if bool((wide == getattr(limits, name)).any())}
    found = {"nan"} if bool(flat.isnan().any()) else set()
    found |= {"inf"} if bool(flat.isinf().any()) else set()
    found |= {"-0"} if bool(((flat == 0) & flat.signbit()).any()) else set()
    size = flat.abs()[flat.isfinite() & (flat != 0)]
    if size.numel():
        found |= {"denormal"} if float(size.min()) < torch.finfo(x.dtype).tiny else set()
        found |= {"large spread"} if float(size.max()) > 1e6 * float(size.min()) else set()
    return found


def arguments_of(func: Any, args: Any, kwargs: Any) -> set[tuple[str, str]]:
    """Return which class of value each argument with a default got."""
    found = set()
    for number, argument in enumerate(func._schema.arguments):
        if argument.has_default_value():
            value = args[number] if number < len(args) else kwargs.get(argument.name, argument.default_value)
            found.add((argument.name, class_of(value, argument.default_value)))
    return found


def class_of(value: Any, default: Any) -> str:
    """Return `default` or what else an argument is: true, false, given, other.

    >>> class_of(True, False), class_of(None, None), class_of(2, 1), class_of([0], None)
    ('true', 'default', 'other', 'given')
    """
    if type(value) is type(default) and not isinstance(value, torch.Tensor) and value == default:
        return "default"
    if isinstance(value, bool):
        return str(value).lower()
    return "given" if default is None else "other"
