"""Transfers: host to device and back, in every layout and dtype, converted, late, saved; what the host reads."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import torch

from engine import Cases
from engine.answers import Host, attempt
from engine.layouts import DTYPES, VIEWS, exact, short

cases = Cases("scenarios")


def _settled(run: Any, moved: torch.Tensor) -> torch.Tensor:
    """Return what a call with non_blocking=True gave once the device is done; the source is alive all the while."""
    run.synchronise()
    return moved


def _pinned(run: Any, view: torch.Tensor) -> torch.Tensor:
    """Return the view in pinned memory where this back end has it, else the view."""
    if run.device.type == "cpu":
        return view
    try:
        return view.pin_memory()
    except (RuntimeError, NotImplementedError, AssertionError):
        return view


def _moves(run: Any, view: torch.Tensor) -> Any:
    device, dtype = run.device, view.dtype
    like = torch.empty((), device=device, dtype=dtype)
    return {
        "to": view.to(device),
        "copy": view.to(device, copy=True),
        "to_dtype": view.to(device, dtype, copy=True),
        "keyword": view.to(device=device, dtype=dtype, non_blocking=False, copy=True),
        "contiguous": view.to(device, copy=True, memory_format=torch.contiguous_format),
        "like": view.to(like, copy=True),
        "late": _settled(run, view.to(device, non_blocking=True, copy=True)),
        "pinned": _settled(run, _pinned(run, view).to(device, non_blocking=True, copy=True)),
        "tensor": torch.as_tensor(view, device=device),
        "numbers": torch.tensor(view.tolist(), dtype=dtype, device=device),
        "list": torch.stack([one.to(device, copy=True) for one in view])
        if view.dim() and len(view)
        else view.to(device),
        "put": torch.empty(view.shape, dtype=dtype, device=device).copy_(view),
        "put_late": _settled(run, torch.empty(view.shape, dtype=dtype, device=device).copy_(view, non_blocking=True)),
    }


def _into_views(run: Any, view: torch.Tensor) -> Any:
    """Write a host view into device views: the gaps around them must stay."""
    shape, answers = tuple(view.shape), {}
    for name, base, cut in (
        ("offset", (shape[0] + 3, *shape[1:]), lambda x: x[2:-1]),
        ("gapped", (*shape[:-1], 2 * shape[-1] + 1), lambda x: x[..., 1::2]),
        ("columns", (*shape[:-1], shape[-1] + 4), lambda x: x[..., 3:-1]),
        ("transposed", tuple(reversed(shape)), lambda x: x.permute(*reversed(range(x.dim())))),
    ):
        target = torch.ones(base, dtype=view.dtype, device=run.device)
        cut(target).copy_(view)
        again = torch.ones(base, dtype=view.dtype, device=run.device)
        cut(again)[...] = view
        answers[name] = target, again
    rows = torch.ones(shape, dtype=view.dtype, device=run.device)
    for index in range(shape[0]):
        rows[index] = view[index]
    return answers, rows


def _converted(run: Any, view: torch.Tensor, targets: Any) -> Any:
    return {
        short(target): (
            view.to(run.device, target),
            view.to(target).to(run.device),
            torch.zeros(view.shape, dtype=target, device=run.device).copy_(view),
            torch.as_tensor(view, dtype=target, device=run.device),
        )
        for target in targets
    }


def _add(name: str, dtype: torch.dtype) -> None:
    shape, cut = VIEWS[name]

    def make(d: Any) -> Any:
        return (Host(exact(d, dtype, *shape), cut),)

    def act(run: Any, host: Host) -> Any:
        view = host.view
        return _moves(run, view), _into_views(run, view) if view.dim() and view.numel() else view.to(run.device)

    cases.add(
        f"transfer-to-device-{name}-{short(dtype)}",
        act,
        make=make,
        states=("fresh", "polluted"),
        anywhere=True,
        may_be_missing=True,
    )


def _add_conversion(name: str, dtype: torch.dtype) -> None:
    shape, cut = VIEWS[name]
    targets = [one for one in DTYPES if one != dtype and (one.is_complex or not dtype.is_complex)]
    cases.add(
        f"transfer-to-device-as-{name}-{short(dtype)}",
        lambda run, host: _converted(run, host.view, targets),
        make=lambda d: (Host(exact(d, dtype, *shape), cut),),
        states=("fresh",),
        may_be_missing=True,
    )


# float32 meets every layout, the other dtypes those that a copy by bytes or by words gets wrong in different ways.
_FEW = ("gapped", "transposed", "element")
for _dtype in DTYPES:
    for _name in VIEWS if _dtype == torch.float32 else _FEW:
        _add(_name, _dtype)
    for _name in ("gapped", "element"):
        _add_conversion(_name, _dtype)


def _reads(run: Any, view: torch.Tensor) -> Any:
    late = view.to("cpu", non_blocking=True, copy=True)
    put_late = torch.empty(view.shape, dtype=view.dtype).copy_(view, non_blocking=True)
    run.synchronise()
    return {
        "cpu": view.cpu(),
        "to": view.to("cpu", copy=True),
        "late": late,
        "put": torch.empty(view.shape, dtype=view.dtype).copy_(view),
        "put_late": put_late,
        "numbers": torch.tensor(view.tolist(), dtype=view.dtype),
        "contiguous": view.contiguous().cpu(),
        "negated": (~view if view.dtype == torch.bool else -view).cpu(),
        "item": [attempt(lambda one=one: torch.tensor(one.item(), dtype=one.dtype)) for one in view.reshape(-1)[-3:]],
        "numpy": attempt(lambda: torch.from_numpy(view.cpu().numpy().copy())),
    }


def _into_host_views(view: torch.Tensor) -> Any:
    """Write into host views, of the source's own strides among them; the gaps around must stay."""
    shape, answers = tuple(view.shape), {}
    for name, base, cut in (
        ("offset", (shape[0] + 3, *shape[1:]), lambda x: x[2:-1]),
        ("gapped", (*shape[:-1], 2 * shape[-1] + 1), lambda x: x[..., 1::2]),
        ("transposed", tuple(reversed(shape)), lambda x: x.permute(*reversed(range(x.dim())))),
    ):
        target = torch.ones(base, dtype=view.dtype)
        cut(target).copy_(view)
        rows = torch.ones(base, dtype=view.dtype)
        for index in range(shape[0]):
            cut(rows)[index] = view[index]
        answers[name] = target, rows
    return answers


def _kept(view: torch.Tensor, base: torch.Tensor) -> Any:
    """Save, pickle and copy a view, with and without the base that shares its storage."""
    file = io.BytesIO()
    torch.save({"view": view, "base": base}, file)
    answers = []
    for place in ("cpu", view.device):
        file.seek(0)
        loaded = torch.load(file, map_location=place)
        answers.append((loaded["view"], loaded["base"]))
        loaded["base"].zero_()
        answers.append(loaded["view"].any())  # they still share their storage
    return answers, pickle.loads(pickle.dumps(view)), copy.deepcopy(view), copy.copy(view)


def _same_strides(view: torch.Tensor, base: torch.Tensor, cut: Any) -> Any:
    """Copy between two views of equal strides and offsets: a copy of bytes would take the gaps along."""
    target = torch.ones(base.shape, dtype=base.dtype)
    cut(target).copy_(view)
    return target


def _add_way_back(name: str, dtype: torch.dtype) -> None:
    shape, cut = VIEWS[name]
    shared = name.startswith("expanded") or name == "windows"

    def act(run: Any, base: torch.Tensor) -> Any:
        view = cut(base)
        whole = view.dim() > 0 and view.numel() > 0
        return (
            _reads(run, view),
            _into_host_views(view) if whole else 0,
            _same_strides(view, base, cut) if not shared else 0,
            _kept(view, base) if dtype != torch.bool or name in ("gapped", "element") else 0,
        )

    cases.add(
        f"transfer-to-host-{name}-{short(dtype)}",
        act,
        make=lambda d: (exact(d, dtype, *shape),),
        states=("fresh", "polluted"),
        anywhere=True,
        may_be_missing=True,
    )


def _add_conversion_back(name: str, dtype: torch.dtype) -> None:
    shape, cut = VIEWS[name]
    targets = [one for one in DTYPES if one != dtype and (one.is_complex or not dtype.is_complex)]

    def act(base: torch.Tensor) -> Any:
        view = cut(base)
        answers = {
            short(one): (view.to("cpu", one), torch.zeros(view.shape, dtype=one).copy_(view), view.to(one).cpu())
            for one in targets
        }
        return answers, view.clone()  # a conversion on the way must not be written into the source

    cases.add(
        f"transfer-to-host-as-{name}-{short(dtype)}",
        act,
        make=lambda d: (exact(d, dtype, *shape),),
        states=("fresh",),
        anywhere=True,
        may_be_missing=True,
    )


# Into float64 on the host: from 2.14 on MPS wrote nothing (issue 197715); before that it refuses, which is its right.
for _dtype in (torch.float32, torch.float16, torch.int32):
    cases.add(
        f"transfer-to-host-double-{short(_dtype)}",
        lambda x: [
            attempt(lambda: x.to("cpu", torch.float64)),
            attempt(lambda: torch.full(x.shape, 7.0, dtype=torch.float64).copy_(x)),
            attempt(lambda: torch.full((x.shape[1], 7), 7.0, dtype=torch.float64).t()[: x.shape[0]].copy_(x)),
            x.cpu().double(),
            attempt(lambda: x.to("cpu", torch.float64).dtype),
            x.cpu().double().dtype,
        ],
        issue="197715",
        make=lambda d, dtype=_dtype: (exact(d, dtype, 5, 3),),
        states=("fresh",),
        anywhere=True,
    )

for _dtype in DTYPES:
    for _name in VIEWS if _dtype == torch.float32 else _FEW:
        _add_way_back(_name, _dtype)
    for _name in ("rows", "gapped", "element"):
        _add_conversion_back(_name, _dtype)
