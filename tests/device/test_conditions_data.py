"""What stands behind a tensor: data put in its place, memory that is shared, resized and exchanged, and its copies."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.limits import add_table

cases = Cases("conditions")


def _laid(*given: torch.Tensor) -> str:
    return str([(tuple(one.shape), one.stride(), one.storage_offset(), one.is_leaf) for one in given])


# What is put in the place of x, of (4, 6).
_VALUES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "numbers": lambda x: x.flip(0),
    "itself": lambda x: x,
    "turned": lambda x: x.flip(1).t().contiguous().t(),
    "part": lambda x: x[1:, ::2],
    "rows": lambda x: x[:2].clone(),
    "more": lambda x: torch.cat([x, x]),
    "line": lambda x: x.flatten().clone(),
    "deep": lambda x: x.clone().view(2, 2, 2, 3),
    "expanded": lambda x: x[:1].expand(4, 6),
    "element": lambda x: x[2, 3].clone(),
    "nothing": lambda x: x[:0].clone(),
    "number": lambda x: torch.ones((), dtype=x.dtype, device=x.device),
    "int16": lambda x: x.to(torch.int16),
    "float16": lambda x: x.to(torch.float16),
}
# What was made of it before.
_BEFORE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "whole": lambda x: x.view(4, 6),
    "rows": lambda x: x[1:],
    "stepped": lambda x: x[::2, 1::2],
    "turned": lambda x: x.t(),
    "detached": lambda x: x.detach(),
    "data": lambda x: x.data,
}


def _replaced(x: torch.Tensor, value: Any, before: Any) -> Any:
    """Return all that is seen after x.data = ...: views of before keep the old memory, the new one is shared."""
    x = x.clone()
    old, new = before(x), value(x.clone())
    versions = [x._version, old._version]
    x.data = new
    versions += [x._version - versions[0], old._version - versions[1]]
    found = [x.clone(), old.clone(), new.clone(), x + x, x.sum(), _laid(x, old), str(versions[2:])]
    if x.numel() and 0 not in x.stride():
        x.mul_(2)
        old.zero_()
        found += [x.clone(), new.clone(), old, str((x.is_set_to(new), x.data_ptr() == new.data_ptr()))]
    return found


def _learned(x: torch.Tensor, value: Any) -> Any:
    """Return gradients of a leaf whose data is replaced between two passes."""
    w = leaf(x.clone())
    (w * 2).sum().backward()
    first, w.grad = w.grad, None
    w.data = value(x.clone())
    (w * w).sum().backward()
    return [first, w.detach(), w.grad, str((w.requires_grad, w.is_leaf, w._version, tuple(w.shape)))]


def _in_a_module(x: torch.Tensor) -> Any:
    module = torch.nn.Linear(6, 4, bias=False, device=x.device, dtype=x.dtype)
    module.weight.data = x.flip(0)
    module(x).sum().backward()
    with torch.no_grad():
        module.weight.sub_(module.weight.grad, alpha=0.5)  # type: ignore[arg-type]
    stepped = module.weight.detach().clone()
    module.weight.data[1] = 3
    module.weight.data.mul_(2)
    module.weight.grad.data.zero_()  # type: ignore[union-attr]
    return [stepped, module.weight, module.weight.grad]


def _exchanged(a: torch.Tensor, b: torch.Tensor, *, wanted: bool = False) -> Any:
    a, b = (leaf(a.clone()), b.clone()) if wanted else (a.clone(), b.clone())
    torch.utils.swap_tensors(a, b)
    return [a * 1, b * 1, _laid(a, b), str((a.requires_grad, b.requires_grad, a.shape, b.shape))]


def _versions(x: torch.Tensor) -> list[int]:
    """Return how often a tensor is said to have changed: by itself, by views, and by what does not count."""
    y = x.clone()
    changes: list[Callable[[], Any]] = [
        lambda: y.add_(1),
        lambda: y[1].mul_(2),
        lambda: y.detach().neg_(),
        lambda: y.data.zero_(),
        lambda: y.t().fill_(1),
        lambda: y.copy_(x),
        lambda: y.__setitem__(0, 2),
        lambda: y.clone().zero_(),
        lambda: y.resize_(2, 3),
    ]
    return [(change(), y._version)[1] for change in changes]


_SET: dict[str, Callable[[torch.Tensor], Any]] = {
    "tensor": lambda x: [y := torch.empty(0, dtype=x.dtype, device=x.device).set_(x[1:, ::2]), _laid(y)],
    "storage": lambda x: (
        [y := torch.empty(0, dtype=x.dtype, device=x.device).set_(x.untyped_storage()), _laid(y)]
        if x.dtype == torch.uint8
        else x
    ),
    "places": lambda x: [
        y := torch.empty(0, dtype=x.dtype, device=x.device).set_(x.untyped_storage(), 3, (2, 4), (7, 2)),
        _laid(y),
    ],
    "line": lambda x: torch.empty(2, 2, dtype=x.dtype, device=x.device).set_(x.untyped_storage(), 5, (7,)),
    "nothing": lambda x: [y := x.clone().set_(), _laid(y)],
    "views": lambda x: [(y := x.clone())[1:], z := y[:, 1:], y.set_(x[:1]), z.add_(1)],
    "shared": lambda x: [
        (y := torch.empty(0, dtype=x.dtype, device=x.device).set_(z := x.clone())).zero_(),
        z,
        str((y.is_set_to(z), z.is_set_to(y[:2]), y._version, z._version)),
    ],
    "versions": lambda x: str(_versions(x)),
    "resized-view": lambda x: [(y := x.clone())[1:3].resize_(2, 3), y],
    "resized-back": lambda x: [(y := x.clone()).resize_(2, 3).clone(), y.resize_(4, 6), _laid(y)],
    "resized-turned": lambda x: [y := x.clone().t().resize_(4, 3), _laid(y)],
    "resized-as": lambda x: [y := x.clone().resize_as_(x[1:, ::3]), _laid(y)],
    "resized-more": lambda x: [(y := x.clone()[:2]).resize_(9, 6)[:2], _laid(y)],
    "exchanged": lambda x: [_exchanged(x, x.flip(0)), _exchanged(x, x[:2]), _exchanged(x, x.to(torch.int32))],
    "exchanged-leaf": lambda x: _exchanged(x, x.flip(0), wanted=True) if x.dtype.is_floating_point else x,
    "module": lambda x: _in_a_module(x) if x.dtype.is_floating_point else x,
    "data-changed": lambda x: [(y := x.clone()), z := y.data, z.mul_(2), y[1].data.zero_(), y.data.t().add_(1)],
    "detached": lambda x: [(y := x.clone()), y.detach().mul_(2), y.detach()[1].zero_()],
}


def _bytes(x: torch.Tensor) -> Any:
    return x.untyped_storage()


# Integers alone: their bytes are the same in every run.
_STORAGE: dict[str, Callable[[torch.Tensor], Any]] = {
    "sizes": lambda x: [_bytes(x).nbytes(), len(_bytes(x)), _bytes(x).size(), _bytes(x[1:, 2:]).nbytes(), x.nbytes],
    "sizes-fresh": lambda x: [_bytes(y).nbytes() for y in (x[:0].clone(), x[0, 0].clone(), x[:1].expand(4, 6), x * 1)],
    "fill": lambda x: [(y := x.clone()), _bytes(y[1:]).fill_(0).nbytes()],
    "fill-ones": lambda x: [(y := x.clone()), _bytes(y).fill_(1).nbytes()],
    "copy": lambda x: [(y := x.clone()), _bytes(y).copy_(_bytes(x.flip(0))).nbytes()],
    "copy-host": lambda x: [(y := x.clone()), _bytes(y).copy_(_bytes(x.flip(0).cpu())).nbytes()],
    "clone": lambda x: torch.empty(0, dtype=x.dtype, device=x.device).set_(_bytes(x).clone(), 0, (4, 6)),
    "host": lambda x: torch.empty(0, dtype=x.dtype).set_(_bytes(x).cpu(), 0, (4, 6)),
    "list": lambda x: _bytes(x).cpu().tolist(),
    "items": lambda x: [_bytes(x).cpu()[place] for place in (0, 3, -1)],
    "resized": lambda x: [(y := x.clone()), _bytes(y).resize_(_bytes(y).nbytes() * 2), _bytes(y).nbytes()][::2],
    "resized-none": lambda x: [_bytes(y := x.clone()).resize_(0), _bytes(y).nbytes()][1],
    "shared": lambda x: [_bytes(x).data_ptr() == _bytes(y).data_ptr() for y in (x[1:], x.t(), x.clone(), x + 0)],
    "members": lambda x: [x.itemsize, x.element_size(), x.nbytes, x[1:].nbytes, x.view(torch.uint8).shape[-1]],
}


def _saved(*given: torch.Tensor) -> Any:
    file = io.BytesIO()
    torch.save(given, file)
    file.seek(0)
    return torch.load(file)


_COPIES: dict[str, Callable[[torch.Tensor], Any]] = {
    "deep-same": lambda x: [(a := copy.deepcopy([x, x]))[0].zero_(), a[1], str(a[0] is a[1])],
    "deep-views": lambda x: [one * 1 for one in copy.deepcopy([x, x.t(), x[1:], x[::2, 1::3], x[0, 0], x[:0]])],
    "deep-apart": lambda x: [copy.deepcopy(x).zero_(), x],
    "deep-leaf": lambda x: [y := copy.deepcopy(leaf(x)), str((y.requires_grad, y.is_leaf))],
    "deep-gradient": lambda x: [(w := leaf(x.clone())), (w * 2).sum().backward(), copy.deepcopy(w).grad][2],
    "deep-parameter": lambda x: [y := copy.deepcopy(torch.nn.Parameter(x)), type(y).__name__],
    "shallow": lambda x: [(z := copy.copy(y := x.clone())).zero_(), y, _laid(z)],
    "pickled": lambda x: [pickle.loads(pickle.dumps(one)) for one in (x.t(), x[1:, ::2], x[2, 3], x[:0])],
    "pickled-leaf": lambda x: [y := pickle.loads(pickle.dumps(leaf(x))), str((y.requires_grad, y.is_leaf))],
    "pickled-parameter": lambda x: [y := pickle.loads(pickle.dumps(torch.nn.Parameter(x))), type(y).__name__],
    "pickled-attribute": lambda x: _with_attribute(x),
    "saved-shared": lambda x: [(a := _saved(x, x[1:], x.t()))[0].mul_(2), a[1], a[2]],
    "saved-views": lambda x: [one * 1 for one in _saved(x[1:, 2:], x.t()[::2], x.expand(2, 4, 6), x[3, 5])],
    "saved-laid": lambda x: _laid(*_saved(x, x[1:, 2:], x.t(), x[:1].expand(3, 6))),
    "state": lambda x: _set_state(x),
    "moved": lambda x: [x.cpu().to(x.device), x.to(x.device) is x, x.to(x, copy=True).zero_(), x],
    "new": lambda x: [x.new_zeros(2, 3), x.new_ones((2,)), x.new_full((2, 2), 3), x.new_tensor([1, 0])],
    "new-none": lambda x: [x.new_empty(0, 3), x.new_zeros(()), x.new_tensor([]), x.new_tensor(2)],
    "new-others": lambda x: [x.new_zeros(2, dtype=torch.int32), x.new_tensor([1.5], dtype=torch.float16)],
    "new-laid": lambda x: _laid(x.new_empty_strided((2, 3), (1, 2)), x.t().new_zeros(2, 3), x[1:].new_empty((4,))),
    "typed": lambda x: [x.type_as(x.int()), x.type(torch.int16), x.to(x.int()), x.type(x.dtype) is x],
    "dlpack": lambda x: torch.from_dlpack(x.cpu()).to(x.device),
    "array": lambda x: torch.from_numpy(x.cpu().numpy()).to(x.device),
    "array-protocol": lambda x: torch.tensor(x.cpu().__array__()).to(x.device),
    "parameter": lambda x: [(w := torch.nn.Parameter(y := x.clone(), False)).data.zero_(), y, w.is_set_to(y)],
    "buffer": lambda x: [torch.nn.Buffer(x) * 1, type(torch.nn.Buffer(x)).__name__],
}


def _with_attribute(x: torch.Tensor) -> Any:
    x.told = [1, "a"]  # type: ignore[attr-defined]
    return [y := pickle.loads(pickle.dumps(x)), str(y.told), str(copy.deepcopy(x).told)]


def _set_state(x: torch.Tensor) -> Any:
    made = torch.empty(0, dtype=x.dtype, device=x.device)
    made.__setstate__((x.untyped_storage(), 7, (2, 3), (6, 2)))
    return made


for _dtype in (torch.float32, torch.float16, torch.int64, torch.uint8):
    _name = str(_dtype)[6:]
    _draw = lambda d, dtype=_dtype: (d.integers(1, 9, 4, 6).to(dtype),)  # noqa: E731
    _forms = {
        f"{name}-{way}": lambda x, value=value, before=before: _replaced(x, value, before)
        for place, (name, value) in enumerate(_VALUES.items())
        for turn, (way, before) in enumerate(_BEFORE.items())
        if _dtype == torch.float32 or (place + turn) % 3 == 0
    }
    if _dtype.is_floating_point:
        _forms.update(
            {
                f"{name}-learned": lambda x, value=value: _learned(x, value)
                for name, value in _VALUES.items()
                if name not in ("int16", "float16")
            }
        )
    add_table(cases, f"data-replaced-{_name}", _forms, _draw, anywhere=True, since="2.1")
    add_table(cases, f"data-set-{_name}", _SET, _draw, anywhere=True, since="2.1")
    add_table(cases, f"data-copies-{_name}", _COPIES, _draw, anywhere=True, since="2.1")
    if not _dtype.is_floating_point:
        add_table(cases, f"data-storage-{_name}", _STORAGE, _draw, anywhere=True, since="2.1")
