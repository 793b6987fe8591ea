"""What Python holds, made a tensor on the device, and dtypes that few operators have."""

from __future__ import annotations

import array
from typing import Any, Callable

import torch

from engine import Cases
from engine.answers import ONCE, attempt, each

cases = Cases("scenarios")
_VIEWS: dict[str, Any] = {
    "whole": lambda a: a,
    "columns": lambda a: a[:, :3],
    "gaps": lambda a: a[::2, 1::2],
    "turned": lambda a: a.T,
    "turned-part": lambda a: a[1:, 2:].T,
    "fortran": lambda a: a.copy(order="F"),
    "row": lambda a: a[2],
    "column": lambda a: a[:, 1],
    "element": lambda a: a[1, 2:3].reshape(()),
    "broadcast": lambda a: a[:1].repeat(3, 0)[:, 1:4],
    "empty": lambda a: a[:0],
    "deep": lambda a: a.reshape(2, 2, 1, 5)[:, :, 0, 1:4],
}


def _arrays(run: Any, x: torch.Tensor, dtype: torch.dtype) -> Any:
    import numpy

    whole = numpy.array(x.tolist(), dtype=str(dtype)[6:])
    at = {"device": run.device, "dtype": run.cast(dtype)}

    def made(view: Any) -> Any:
        a = view(whole)
        return [
            torch.tensor(a, **at),
            torch.as_tensor(a, **at),
            torch.asarray(a.copy(), **at),
            torch.tensor([a, a] if a.ndim else a, **at),
            torch.zeros(a.shape, **at).copy_(torch.from_numpy(a.copy())),
            torch.ones(4, 5, **at).new_tensor(a),
            numpy.asarray(torch.tensor(a, **at).cpu()).tolist(),
        ]

    return {name: attempt(lambda view=view: made(view)) for name, view in _VIEWS.items()}


def _objects(run: Any, x: torch.Tensor) -> Any:
    at = {"device": run.device, "dtype": run.cast(torch.float32)}
    whole = {"device": run.device}
    rows = x.tolist()
    return {
        "lists": attempt(lambda: [torch.tensor(rows, **at), torch.tensor(rows[0], **at), torch.tensor([], **at)]),
        "tuples": attempt(lambda: [torch.tensor(tuple(map(tuple, rows)), **at), torch.as_tensor((1.5, 2), **at)]),
        "numbers": attempt(lambda: [torch.tensor(2.5, **at), torch.tensor(3, **whole), torch.tensor(True, **whole)]),
        "large": attempt(lambda: [torch.tensor([2**53 + 1, -(2**62)], **whole), torch.tensor(2**31, **whole)]),
        "mixed": attempt(lambda: [torch.tensor([1, 2.5, True], **at), torch.tensor([True, 2], **whole)]),
        "ranges": attempt(lambda: [torch.tensor(range(5), **whole), torch.tensor(list(range(3)), **at)]),
        "bytes": attempt(lambda: torch.frombuffer(bytearray(b"\x01\x02\xfe\xff"), dtype=torch.uint8).to(run.device)),
        "buffers": attempt(
            lambda: torch.frombuffer(array.array("i", [1, -2, 3]), dtype=torch.int32)[1:].to(run.device)
        ),
        "doubles": attempt(lambda: torch.tensor(array.array("f", [1.5, -2.0]), **at)),
        "tensors": attempt(lambda: torch.tensor([x[0, 0], x[1, 1]], **at)),
        "of-tensor": attempt(lambda: [torch.as_tensor(x.mT, **at), x[:, 1:].clone().to(**at).mT]),
        "complex": attempt(lambda: torch.view_as_real(torch.tensor([1 + 2j, 3], dtype=torch.complex64, **whole))),
        "flags": attempt(lambda: torch.tensor([[True, False], [False, False]], **whole)),
        "half": attempt(lambda: torch.tensor(rows, device=run.device, dtype=torch.float16).float()),
        "wanted": attempt(lambda: torch.tensor(rows, requires_grad=True, **at).sum(1)),
    }


for _dtype in (torch.float32, torch.float16, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool):
    cases.add(
        f"transfer-arrays-{str(_dtype)[6:]}",
        lambda run, x, dtype=_dtype: _arrays(run, x, dtype),
        make=lambda d: (d.integers(0, 100, 4, 5),),
        states=("fresh",),
        may_be_missing=True,
    )
cases.add("transfer-objects", _objects, make=lambda d: (d.distinct(4, 5) / 4,), states=("fresh",), may_be_missing=True)


_NAMES = ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "complex32")


def _forms(dtype: torch.dtype) -> dict[str, Callable[[Any], Any]]:
    """Return what is computed of one dtype; x of (6, 7) is of float32, small and whole."""
    back = torch.complex64 if dtype.is_complex else torch.float32
    return {
        "converted": lambda x: x.to(dtype).to(back),
        "from_integers": lambda x: x.long().to(dtype).to(back),
        "to_integers": lambda x: x.to(dtype).to(torch.int64),
        "brought": lambda x: x.cpu().to(dtype).to(x.device).to(back),
        "fetched": lambda x: x.to(dtype).cpu().to(back),
        "made": lambda x: torch.tensor([[1, 2], [3, 0]], dtype=dtype, device=x.device).to(back),
        "filled": lambda x: torch.full((3,), 2, dtype=dtype, device=x.device).to(back),
        "zeros": lambda x: x.new_zeros(2, dtype=dtype).to(back),
        "transposed": lambda x: x.to(dtype).t().contiguous().to(back),
        "stepped": lambda x: x.to(dtype)[1::2, ::3].clone().to(back),
        "copied": lambda x: torch.zeros(6, 7, dtype=dtype, device=x.device).copy_(x).to(back),
        "into": lambda x: x.clone().to(back).copy_(x.to(dtype)),
        "joined": lambda x: torch.cat([x.to(dtype), x.to(dtype)]).to(back),
        "picked": lambda x: x.to(dtype)[[3, 0, 3]].to(back),
        "bytes": lambda x: x.to(dtype).view(torch.uint8) + 0,
        "equal": lambda x: x.to(dtype) == x.to(dtype).t().contiguous().t(),
        "item": lambda x: x.to(dtype)[2, 3].item(),
        "listed": lambda x: x.to(dtype).flatten()[:4].tolist(),
        "added": lambda x: (x.to(dtype) + x.to(dtype)).to(back),
    }


for _name in _NAMES:
    if hasattr(torch, _name):
        cases.add(
            f"transfer-dtypes-{_name}",
            lambda x, name=_name: each(_forms(getattr(torch, name)), x),
            make=lambda d: (d.integers(0, 15, 6, 7).float(),),
            states=ONCE,
            anywhere=True,
            may_be_missing=True,
        )
