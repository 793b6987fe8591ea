"""Host tensors of every layout and dtype on their way to the device, in each spelling, converted or not."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.answers import Host
from device_suite.host_views import DTYPES, VIEWS, exact, short

cases = Cases("transfers")


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
_FEW = ("dense", "columns", "gapped", "transposed", "expanded_rows", "channels_last", "element", "one", "empty")
for _dtype in DTYPES:
    for _name in VIEWS if _dtype == torch.float32 else _FEW:
        _add(_name, _dtype)
    for _name in ("dense", "gapped", "transposed", "columns", "element", "expanded_columns"):
        _add_conversion(_name, _dtype)
