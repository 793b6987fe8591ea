"""What Python reads of a tensor, whatever view it is: numbers, lists, arrays, text, copies, what is in it."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")

# x has a shape of (4, 6).
_VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "whole": lambda x: x,
    "turned": lambda x: x.t(),
    "offset": lambda x: x[1:, 2:],
    "stepped": lambda x: x[::2, 1::2],
    "expanded": lambda x: x[:1].expand(3, 6),
    "column": lambda x: x[:, 2],
    "diagonal": lambda x: x.diagonal(),
    "one": lambda x: x[2, 3],
    "single": lambda x: x[3:, 5:],
    "nothing": lambda x: x[:, 6:],
    "strided": lambda x: x.as_strided((3, 2), (1, 7), 3),
    "deep": lambda x: x.view(2, 2, 3, 2).permute(3, 0, 2, 1),
}
_COMPLEX: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "conj": lambda x: x.conj(),
    "conj-turned": lambda x: x.mH,
    "conj-offset": lambda x: x.conj()[1:, 2:],
    "conj-stepped": lambda x: x[:, ::2].conj(),
    "conj-one": lambda x: x.conj()[2, 3],
    "conj-twice": lambda x: x.conj().t().conj(),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "imag-conj": lambda x: x.conj().imag,
    "imag-conj-turned": lambda x: x.conj().imag.t()[1:],
    "real-pairs": lambda x: torch.view_as_real(x)[..., 1],
    "resolved": lambda x: x.conj().resolve_conj(),
    "resolved-negative": lambda x: x.conj().imag.resolve_neg(),
}


def _number(y: torch.Tensor) -> torch.Tensor:
    """Return one element of a view as a view, the last."""
    for _ in range(y.dim()):
        y = y[-1]
    return y


def _saved(y: torch.Tensor) -> Any:
    file = io.BytesIO()
    torch.save(y, file)
    file.seek(0)
    return torch.load(file)


def _form(y: torch.Tensor) -> str:
    return str((y.shape, y.stride(), y.storage_offset(), y.is_conj(), y.is_neg(), y.is_contiguous()))


# What is asked of a view that has elements.
_READ: dict[str, Callable[[torch.Tensor], Any]] = {
    "tolist": lambda y: y.tolist(),
    "item": lambda y: _number(y).item(),
    "host": lambda y: y.cpu() * 1,
    "array": lambda y: torch.from_numpy(y.detach().cpu().resolve_conj().resolve_neg().numpy().copy()),
    "array-alike": lambda y: torch.tensor(y.cpu().resolve_conj().resolve_neg().numpy().tolist(), dtype=y.dtype),
    "bool": lambda y: [bool(_number(y)), bool(_number(y) == 0), not _number(y)],
    "numbers": lambda y: [float(_number(y).real), int(_number(y).real), complex(_number(y))],
    "rounded": lambda y: [round(float(_number(y)), 2), _number(y).__index__() if not y.is_floating_point() else 0],
    "length": lambda y: [len(y), y.numel(), y.nelement(), list(y.shape), y.dim(), y.size(-1)],
    "each": lambda y: [one * 1 for one in y],
    "each-number": lambda y: [[one.item() for one in row.reshape(-1)] for row in y],
    "unpacked": lambda y: [*y.unbind(0)][-1] + 0,
    "reversed": lambda y: [one + 0 for one in reversed(y)],
    "zipped": lambda y: [(one + two) for one, two in zip(y, y.flip(0))],
    "enumerated": lambda y: sum(place * one for place, one in enumerate(y)),
    "in": lambda y: [_number(y) in y, _number(y).item() in y, 1234 in y],
    "format": lambda y: [f"{_number(y).item()}", f"{_number(y)}", f"{_number(y)}"],
    "deepcopy": lambda y: copy.deepcopy(y) + 0,  # a device may copy the view alone
    "copy": lambda y: [(z := copy.copy(y)) + 0, _form(z)],
    "pickle": lambda y: pickle.loads(pickle.dumps(y)) + 0,
    "saved": lambda y: _saved(y) + 0,
    "clone": lambda y: [(z := y.clone()), _form(z)],
    "contiguous": lambda y: [(z := y.contiguous()), _form(z)],
    "equal": lambda y: [torch.equal(y, y.clone()), y.equal(y + 1), y.allclose(y) if y.dtype != torch.bool else True],
    "made": lambda y: [
        torch.tensor([_number(y).item()] * 2, dtype=y.dtype),
        y.new_tensor(y.tolist()),
        torch.stack([*y]),
    ],
    "as": lambda y: [torch.as_tensor(y) + 0, torch.asarray(y, copy=True), torch.as_tensor(y, dtype=torch.complex64)],
    "moved": lambda y: [y.to("cpu").to(y.device) + 0, y.to(y.device, copy=True), y.type(torch.complex64).cpu()],
    "storage": lambda y: [y.untyped_storage().nbytes() // y.element_size(), y.nbytes // y.element_size()],
}
_KINDS: dict[torch.dtype, Any] = {
    torch.float32: _VIEWS,
    torch.float16: _VIEWS,
    torch.bfloat16: _VIEWS,
    torch.int64: _VIEWS,
    torch.uint8: _VIEWS,
    torch.bool: _VIEWS,
    torch.complex64: {**_VIEWS, **_COMPLEX},
}
for _dtype, _views in _KINDS.items():
    add_table(
        cases,
        f"read-back-{str(_dtype)[6:]}",
        {
            f"{name}-{way}": lambda x, form=form, cut=cut: form(cut(x))
            for way, cut in _views.items()
            for name, form in _READ.items()
            if _dtype in (torch.float32, torch.complex64) or way in ("turned", "offset", "stepped", "one")
        },
        lambda d, dtype=_dtype: (d.of(dtype, 4, 6),),
        anywhere=True,
    )
# What has lazily been conjugated or negated has no such view, and what has several numbers is none.
add_refused(
    cases,
    "read-back",
    lambda d: (d.of(torch.complex64, 4, 6), d.normal(3)),
    {
        "view_as_real": lambda x, y: torch.view_as_real(x.conj()),
        "view_as_real-turned": lambda x, y: torch.view_as_real(x.mH),
        "view_as_real-part": lambda x, y: torch.view_as_real(x.conj()[1:, 2]),
        "view": lambda x, y: x.conj().view(torch.float32),
        "view_as_complex": lambda x, y: torch.view_as_complex(y),
        "item": lambda x, y: y.item(),
        "item-none": lambda x, y: y[:0].item(),
        "float": lambda x, y: float(y),
        "float-complex": lambda x, y: float(x[0, 0]),
        "int": lambda x, y: int(y),
        "bool": lambda x, y: bool(y),
        "bool-two": lambda x, y: bool(y[:2]),
        "length": lambda x, y: len(y[0]),
        "each": lambda x, y: [*y[0]],
        "index": lambda x, y: [1, 2, 3][y[0]],
        "numpy-wanted": lambda x, y: y.requires_grad_().cpu().numpy(),
    },
)
