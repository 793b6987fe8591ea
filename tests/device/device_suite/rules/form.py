"""Rule 5: dtype, shape, strides, storage offset and shared memory of every result, beside the CPU's."""

from __future__ import annotations

from typing import Any

import torch

from ..overloads.asking import kept_places, wanted_answers
from .asked import calls_of
from .asking import Called, compare_each

# Results that nobody asked for: a buffer of the CPU's gradient, counts and inverses that the call did not want.
_UNASKED = {"log_sigmoid_forward": (1,), "_unique2": (1, 2), "unique_consecutive": (1, 2), "unique_dim": (1, 2)}
# float64 is the CPU's: MPS has none, and answers in another dtype.
_WIDE = (torch.float64, torch.complex128)
# The change of a call whose strides are a back end's own choice: neither a view, nor made by code that all share.
FREE = ["free"]


def ask_form(overloads: list[Any], bench: Any) -> None:
    """Compare what results are besides their values.

    Raises:
        Mismatch: some differ; the message names the first few.
        Refused: none could be asked.
    """

    def ask(one: Called, run: Any) -> Any:
        return form_of(one.func, one.call, run, strides=FREE not in one.changes)

    def differ(_: Called, found: Any, mine: Any) -> str:
        return "" if _agree(found, mine) else _differing(found, mine)

    compare_each((Called(*one) for one in calls_of(overloads)), bench, ask, differ)


def _differing(found: list[Any], mine: list[Any]) -> str:
    differ = [f"{got}, the CPU has {want}" for got, want in zip(found, mine) if got != want]
    return "; ".join(differ) or f"{len(found)} results, not {len(mine)}"


def _agree(found: list[Any], mine: list[Any]) -> bool:
    return len(found) == len(mine) and all(
        got == want or (isinstance(want, tuple) and isinstance(got, tuple) and want[0] in _WIDE and got[1:] == want[1:])
        for got, want in zip(found, mine)
    )


def form_of(func: Any, call: Any, run: Any, *, strides: bool) -> list[Any] | Exception:
    """Return (dtype, shape, strides, offset, which operand's memory) of each result, or what the call raised."""
    copies = run.copy(call.bases)
    with run:
        try:
            bases = run.bring(copies)
            args, kwargs = call.arguments(bases, run.device, run.cast)
            answers = wanted_answers(func, args, kwargs)
            kept = {*kept_places(func, len(answers)), *_UNASKED.get(func._schema.name.split("::")[1], ())}
            return [_form(one, bases, strides) for place, one in enumerate(answers) if place not in kept]
        except Exception as raised:
            return raised


def _form(one: Any, bases: list[torch.Tensor], strides: bool) -> Any:
    if not isinstance(one, torch.Tensor) or one.layout != torch.strided:
        return type(one).__name__
    memory = one.untyped_storage().data_ptr()
    shared = next((n for n, base in enumerate(bases) if base.untyped_storage().data_ptr() == memory), None)
    if not one.numel():
        shared = None  # no memory: no address
    steps = tuple(step for side, step in zip(one.shape, one.stride()) if side > 1) if one.numel() else ()
    told = steps if strides or shared is not None else "any strides"
    return one.dtype, tuple(one.shape), told, one.storage_offset(), shared
