"""Copies between views on the device: every layout into every other, conversions, DLPack, views of small dtypes."""

from __future__ import annotations

from typing import Any

import torch

from engine import Cases
from engine.answers import attempt
from engine.layouts import DTYPES, VIEWS, exact, short

cases = Cases("scenarios")
_SMALL = (torch.bool, torch.int8, torch.float16)


# Destinations of (6, 7): base and view.
_INTO = {name: VIEWS[name] for name in ("dense", "rows", "columns", "gapped", "row_gapped", "transposed")}
_FROM = {**_INTO, **{name: VIEWS[name] for name in ("transposed_columns", "expanded_rows", "expanded_columns")}}


def _add_pairs(dtype: torch.dtype) -> None:
    """Every source layout into every destination, of the same dtype and of another, as a whole and by slices."""
    other = {torch.float32: torch.float16, torch.int64: torch.int32, torch.bool: torch.uint8}.get(dtype, torch.float32)
    for name, (shape, cut) in _FROM.items():

        def act(x: Any, cut: Any = cut) -> Any:
            view, answers = cut(x), {}
            for into, (base, lay) in _INTO.items():
                whole, apart = (
                    torch.ones(base, dtype=dtype, device=x.device),
                    torch.ones(base, dtype=other, device=x.device),
                )
                lay(whole).copy_(view)
                if not dtype.is_complex:
                    lay(apart).copy_(view)
                rows = torch.ones(base, dtype=dtype, device=x.device)
                lay(rows)[1:5, 2:] = view[1:5, 2:]
                lay(rows)[:, 0] = view[:, 3]
                answers[into] = whole, apart, rows
            return (
                answers,
                view.contiguous(),
                view.clone(),
                view.clone(memory_format=torch.contiguous_format),
                view + view,
            )

        cases.add(
            f"transfer-on-device-{name}-{short(dtype)}",
            act,
            make=lambda d, shape=shape: (exact(d, dtype, *shape),),
            states=("fresh",),
            may_be_missing=True,
        )


def _add_conversions(name: str, dtype: torch.dtype) -> None:
    shape, cut = VIEWS[name]
    targets = [one for one in DTYPES if one.is_complex or not dtype.is_complex]

    def act(x: torch.Tensor) -> Any:
        view = cut(x)
        return {
            short(one): (view.to(one), view.type(one), torch.zeros(view.shape, dtype=one, device=x.device).copy_(view))
            for one in targets
        }

    cases.add(
        f"transfer-on-device-as-{name}-{short(dtype)}",
        act,
        make=lambda d: (exact(d, dtype, *shape),),
        states=("fresh",),
        may_be_missing=True,
    )


for _dtype in DTYPES:
    if _dtype in (torch.float32, torch.float16, torch.int64, torch.bool):
        _add_pairs(_dtype)
    for _name in ("rows", "gapped", "element"):
        _add_conversions(_name, _dtype)


def _exchanged(run: Any, view: torch.Tensor) -> Any:
    if run.device.type == "cpu":
        return torch.from_dlpack(view)
    try:  # DLPack of MPS tensors came late, and the refusal is worded by no one back end
        return torch.from_dlpack(view).to(view.device)
    except (RuntimeError, ValueError, BufferError, AttributeError, TypeError):
        return view


for _dtype in DTYPES:
    cases.add(
        f"transfer-dlpack-{short(_dtype)}",
        lambda run, *bases: [
            attempt(lambda name=name, base=base: _exchanged(run, VIEWS[name][1](base)) + 0)
            for name, base in zip(("dense", "gapped", "transposed", "channels_last", "rows"), bases)
        ],
        make=lambda d, dtype=_dtype: tuple(
            exact(d, dtype, *VIEWS[name][0]) for name in ("dense", "gapped", "transposed", "channels_last", "rows")
        ),
        states=("fresh",),
        since="2.0",
        may_be_missing=True,
    )


def _small_writes(x: torch.Tensor, y: torch.Tensor, offset: int, step: int) -> Any:
    """Write through views that begin within a word, by each family of kernels; the neighbours must stay."""
    device = x.device
    places = torch.tensor([0, 2, 5], device=device)
    mask = torch.tensor([True, False, True, True, False, False, True], device=device)

    def view(base: torch.Tensor) -> torch.Tensor:
        return base[offset : offset + 7 * step : step]

    values = view(y)
    writes: dict[str, Any] = {
        "fill": lambda v: v.fill_(1),
        "zero": lambda v: v.zero_(),
        "copy": lambda v: v.copy_(values),
        "put": lambda v: v.index_put_((places,), values[:3]),
        "scatter": lambda v: v.scatter_(0, places, values[:3]),
        "index_add": lambda v: v.index_add_(0, places, values[:3]),
        "masked_fill": lambda v: v.masked_fill_(mask, 1),
        "add": lambda v: v.add_(values),
        "out": lambda v: torch.mul(values, values, out=v),
        "set": lambda v: v.__setitem__(slice(2, 5), values[2:5]),
    }
    answers = {}
    for name, write in writes.items():
        base = x.clone()
        answers[name] = attempt(lambda write=write, base=base: (write(view(base)), base)[1])
    reads = [values.any(), values.all(), values.sum(), values.flip(0), values.clone(), torch.cat([values, view(x)])]
    reads += [
        values == view(x),
        values.nonzero(),
        values.unsqueeze(0).expand(3, 7).sum(0),
        values.max(),
        values.float(),
    ]
    return answers, reads, [attempt(lambda: view(x)[places]), attempt(lambda: values[mask]), values.tolist()]


for _number, _dtype in enumerate(_SMALL):
    for _offset, _step in (((1, 1), (2, 3))[_number % 2],):
        cases.add(
            f"transfer-small-view-{short(_dtype)}-{_offset}-{_step}",
            lambda x, y, offset=_offset, step=_step: _small_writes(x, y, offset, step),
            make=lambda d, dtype=_dtype: (exact(d, dtype, 32), exact(d, dtype, 32)),
            issues=("195074",),
            terms=16,
            states=("fresh",),
            may_be_missing=True,
        )


def _sources(x: Any) -> Any:
    """Return tensors that take another one's memory, a new stride, or a sparse form and back."""
    view = x[1:5, 2:]
    taken, emptied = torch.empty(0, dtype=x.dtype, device=x.device).set_(view), x.clone().set_()
    made = torch.empty_strided((4, 5), (9, 2), dtype=x.dtype, device=x.device).copy_(view)
    return {
        "taken": (taken, taken.is_set_to(view), taken.is_set_to(x), taken.stride() == view.stride()),
        "emptied": emptied.shape == (0,),
        "alias": torch.ops.aten._reshape_alias(x, (7, 6), (6, 1)),
        "made": (made, made.stride() == (9, 2)),
        "sparse": attempt(lambda: view.to_sparse().to_dense()),
        "sparse_rows": attempt(lambda: view.to_sparse(1).to_dense()),
        "checked": attempt(lambda: torch._assert_async(x.abs().amax() < 100)),
        "checked_with_text": attempt(lambda: torch._assert_async(x.abs().amax() < 100, "a text")),
    }


for _dtype in (torch.float32, torch.float16, torch.int64, torch.uint8):
    cases.add(
        f"transfer-sources-{short(_dtype)}",
        _sources,
        make=lambda d, dtype=_dtype: (exact(d, dtype, 6, 7),),
        states=("fresh",),
        since="2.1",
        may_be_missing=True,
    )
