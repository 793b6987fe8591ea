"""Inside a test's process: `mps` as the CPU, or each operator's answer checked against the CPU's. Needs torch alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

# The largest difference of a result, as a part of its largest number, that is no difference.
_TOLERANCES = {"torch.float16": 1e-2, "torch.bfloat16": 5e-2, "torch.complex32": 1e-2}
_TOLERANCE = 1e-3
_MOST = 20  # operators that are named for one test


@dataclass(slots=True)
class Checked:
    """What was seen while a test ran: operators that differ, that mps lacks, and that cannot be compared, with why."""

    differ: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)


def map_to_cpu() -> None:
    """Let every function of torch that is given the device `mps` take the CPU, in this thread, until the process ends.

    torch.backends.mps still says what is there. Other threads, C++ of extensions and programs that a test starts are as
    they were.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    def mapped(value: Any) -> Any:
        if isinstance(value, str):
            return "cpu" if value == "mps" or value.startswith("mps:") else value
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type == "mps" else value
        return type(value)(map(mapped, value)) if type(value) in (list, tuple) else value

    class ToCpu(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = {name: mapped(value) for name, value in (kwargs or {}).items()}
            return func(*(mapped(value) for value in args), **kwargs)

    ToCpu().__enter__()
    torch.Generator = _generators(torch.Generator, mapped)
    for holder, name in ((torch.amp, "autocast"), (torch.amp, "GradScaler")):
        if hasattr(holder, name):
            _take_mapped(getattr(holder, name), mapped)
    # What was saved on mps: torch's own way goes by a storage, which no mode sees.
    torch.serialization.register_package(
        0, lambda _: None, lambda given, place: given if str(place).partition(":")[0] == "mps" else None
    )


def _generators(plain: Any, mapped: Callable[[Any], Any]) -> type:
    class OfGenerators(type):
        def __call__(cls, device: Any = "cpu") -> Any:
            return plain(mapped(device))

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, plain)

        def __getattr__(cls, name: str) -> Any:
            return getattr(plain, name)

    return OfGenerators("Generator", (), {"__module__": plain.__module__, "__doc__": plain.__doc__})


def _take_mapped(kind: Any, mapped: Callable[[Any], Any]) -> None:
    made = kind.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *map(mapped, args), **{name: mapped(value) for name, value in kwargs.items()})

    kind.__init__ = init


@contextlib.contextmanager
def checked_operators() -> Iterator[Checked]:
    """Carry out each operator on mps and on the CPU within the block, and go on with the CPU's answer.

    So an operator's difference is its own, and no earlier one's; what mps lacks is the CPU's. Random numbers are mps's;
    views and new tensors are not compared.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = Checked()

    class OnBoth(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return _on_both(seen, func, args, kwargs or {})

    with OnBoth():
        yield seen


def _on_both(seen: Checked, func: Any, args: Any, kwargs: Any) -> Any:
    import torch
    from torch.utils._pytree import tree_flatten, tree_map

    def is_on_mps(value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.device.type == "mps"

    def to_cpu(value: Any) -> Any:
        if is_on_mps(value):
            return value.detach().to("cpu", copy=True)
        return torch.device("cpu") if isinstance(value, torch.device) and value.type == "mps" else value

    def to_mps(value: Any) -> Any:
        return value.to("mps") if isinstance(value, torch.Tensor) else value

    given = [value for value in tree_flatten((args, kwargs))[0] if is_on_mps(value)]
    name = func._schema.name
    is_random = torch.Tag.nondeterministic_seeded in func.tags
    if is_random and given:
        _note(seen.unknown, name, "random numbers")
    if not given or is_random or _is_view(func) or _is_unwritten(name):
        return func(*args, **kwargs)
    theirs, named = tree_map(to_cpu, args), tree_map(to_cpu, kwargs)
    try:
        found = func(*args, **kwargs)
    except (NotImplementedError, RuntimeError, TypeError) as error:
        try:
            answer = tree_map(to_mps, func(*theirs, **named))
        except Exception:
            raise error from None  # refused by the CPU too, or of a type that mps cannot hold
        _note(seen.absent, name, str(error).partition("\n")[0])
        for place, value in enumerate(args):
            if is_on_mps(value) and _is_written(func, place):
                value.copy_(theirs[place])
        return answer
    try:
        expected = _of_the_cpu(func)(*theirs, **named)
    except NotImplementedError as error:  # nothing to compare with
        _note(seen.unknown, name, str(error).partition("\n")[0])
        return found
    except Exception as error:
        _note(seen.differ, name, f"takes what the CPU refuses: {str(error).partition(chr(10))[0]}")
        raise
    pairs = [*zip(args, theirs, strict=True), *((kwargs[key], named[key]) for key in kwargs)]
    pairs = [pair for place, pair in enumerate(pairs) if place >= len(args) or _is_written(func, place)]
    pairs += zip(tree_flatten(found)[0], tree_flatten(expected)[0], strict=True)
    for one, other in pairs:
        if not (is_on_mps(one) and isinstance(other, torch.Tensor) and one.shape == other.shape):
            continue
        if difference := _difference(one.detach().to("cpu"), other):
            _note(seen.differ, name, difference)
            one.detach().copy_(other)
    return found


def _of_the_cpu(func: Any) -> Any:
    """Return the operator itself; of one that is mps's alone, such as attention's, the CPU's for the same."""
    import torch

    name = func._schema.name.removeprefix("aten::")
    other = getattr(torch.ops.aten, name.removesuffix("_for_mps"), None) if name.endswith("_for_mps") else None
    return other or func


def _note(into: dict[str, str], name: str, words: str) -> None:
    if len(into) < _MOST:
        into.setdefault(name, words)


def _is_view(func: Any) -> bool:
    return any(each.alias_info is not None and not each.alias_info.is_write for each in func._schema.returns)


def _is_unwritten(name: str) -> bool:
    """Whether an operator gives memory that nobody has written yet: there is nothing to compare.

    >>> [_is_unwritten(f"aten::{name}") for name in ("empty_like", "new_empty_strided", "resize_", "zeros_like")]
    [True, True, True, False]
    """
    return name.removeprefix("aten::").lstrip("_").startswith(("empty", "new_empty", "resize"))


def _is_written(func: Any, place: int) -> bool:
    arguments = func._schema.arguments
    return place < len(arguments) and arguments[place].alias_info is not None and arguments[place].alias_info.is_write


def _difference(found: Any, expected: Any) -> str:
    """Return in words by how much a result differs from the CPU's; nothing where it does not."""
    import torch

    kind = f"{str(found.dtype).removeprefix('torch.')} {list(found.shape)}"
    if found.dtype != expected.dtype:
        return f"{kind}, on the CPU {expected.dtype}"
    if found.numel() == 0:
        return ""
    if not (found.is_floating_point() or found.is_complex()):
        wrong = int((found != expected).sum())
        return f"{wrong} of {found.numel()} elements differ ({kind})" if wrong else ""
    wide = torch.complex128 if found.is_complex() else torch.float64
    one, other = found.to(wide), expected.to(wide)
    is_plain = torch.isfinite(one) & torch.isfinite(other)
    is_same = is_plain | (one == other) | (torch.isnan(one) & torch.isnan(other))
    if not bool(is_same.all()):
        return f"{int((~is_same).sum())} of {found.numel()} elements are infinite or NaN on one side alone ({kind})"
    if not bool(is_plain.any()):
        return ""
    most = float((one - other).abs()[is_plain].max())
    largest = float(other.abs()[is_plain].max())
    tolerance = _TOLERANCES.get(str(found.dtype), _TOLERANCE)
    return (
        f"differs by {most:.2g} where the largest number is {largest:.2g} ({kind})"
        if most > tolerance * largest
        else ""
    )
