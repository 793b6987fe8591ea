"""Rules 2 and 5: gradients of every view that leaves none, one or some of the places: by a step, a size, an offset.

One of several, by a step: https://github.com/ml-explore/mlx/issues/4444
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import leaf, uneven
from device_suite.answers import attempt
from device_suite.limits import ONCE

cases = Cases("conditions")
_SHAPE = (2, 7, 3)
Form = Callable[[torch.Tensor], torch.Tensor]


def _sliced(dim: int, begin: int, end: int, step: int) -> Form:
    index = (slice(None),) * dim + (slice(begin, end, step),)
    return lambda x: x[index]


def _slices() -> dict[str, Form]:
    """Return every slice of every dimension: none, one, some and all of its places, from either end."""
    found: dict[Any, Form] = {}
    for dim, side in enumerate(_SHAPE):
        for begin in {0, 1, side // 2, side - 1, side}:
            for length in (0, 1, 2, 4, side):
                for step in (1, 2, 3, side - 1, side + 2):
                    end = begin + length
                    if end <= side + 1:
                        found[dim, begin, min(end, side), max(step, 1)] = _sliced(dim, begin, end, max(step, 1))
    return {"-".join(map(str, key)): form for key, form in sorted(found.items())}


_OTHERS: dict[str, Form] = {
    **{
        f"narrow-{dim}-{begin}-{length}": lambda x, dim=dim, begin=begin, length=length: x.narrow(dim, begin, length)
        for dim, side in enumerate(_SHAPE)
        for begin, length in {(0, 0), (side, 0), (0, 1), (side - 1, 1), (0, side), (1, side - 1)}
    },
    **{
        f"select-{dim}-{place}": lambda x, dim=dim, place=place: x.select(dim, place)
        for dim, side in enumerate(_SHAPE)
        for place in {0, side - 1, -1, -side}
    },
    **{
        f"windows-{size}-{step}": lambda x, size=size, step=step: x.unfold(1, size, step)
        for size in (1, 2, 6, 7)
        for step in (1, 2, 9)
    },
    **{
        f"diagonal-{offset}-{dims}": lambda x, offset=offset, dims=dims: x.diagonal(offset, *dims)
        for offset in (-7, -6, -1, 0, 1, 2, 6, 7)
        for dims in ((0, 1), (1, 2), (2, 0))
    },
    **{
        f"strided-{sizes}-{steps}": lambda x, sizes=sizes, steps=steps: x.contiguous().as_strided(sizes, steps, 3)
        for sizes, steps in (((1,), (1,)), ((0, 3), (3, 1)), ((3, 1), (6, 1)), ((3, 4), (2, 1)), ((), ()))
    },
    **{
        f"parted-{form}-{number}": lambda x, form=form, parts=parts, number=number: getattr(x, form)(parts, 1)[number]
        for form, parts in (("split", [0, 1, 6]), ("split", [1, 6, 0]), ("tensor_split", (0, 1, 99)), ("chunk", 9))
        for number in (0, 1, 2)
    },
    **{f"unbound-{number}": lambda x, number=number: x.unbind(1)[number] for number in (0, 6)},
    "spread-one": lambda x: x[:, :1].expand(2, 5, 3),
    "spread-none": lambda x: x[:, :1].expand(2, 0, 3),
    "spread-new": lambda x: x[1:, 2:3, ::2].expand(3, 1, 4, 2),
    "squeezed": lambda x: x[:1, 3:4].squeeze(),
    "squeezed-each": lambda x: x[:1, 3:4].squeeze((0, 1)),
    "unsqueezed": lambda x: x[:, ::6].unsqueeze(1).unsqueeze(-1),
    "reshaped-one": lambda x: x[:1, 6:, 1:2].reshape(1),
    "reshaped-none": lambda x: x[:, 7:].reshape(3, 0),
    "viewed": lambda x: x.contiguous().view(7, 6)[::5],
    "flat": lambda x: x.flatten()[5::17],
    "turned": lambda x: x.flip(1)[:, ::4],
    "turned-one": lambda x: x[:, 2:3].flip(0, 1),
    "rotated": lambda x: x.rot90(1, (0, 1))[::5],
    "rolled": lambda x: x.roll(3, 1)[:, ::5],
    "permuted": lambda x: x.permute(2, 0, 1)[::2, 1:, ::6],
    "moved": lambda x: x.movedim(1, 0)[3::4],
    "transposed": lambda x: x.mT[..., 2::5],
    "matrix": lambda x: x[1].t()[1::2, 3:4],
    "two": lambda x: x[1:, ::4, -1:],
    "two-and-a-number": lambda x: x[:, 3, 1::2],
    "new-and-last": lambda x: x[None, ..., 0, ::2],
    "places": lambda x: x[:, [4]],
    "places-none": lambda x: x[:, []],
    "places-twice": lambda x: x[:, [0, 0, 5], ::2],
    "mask-one": lambda x: x[:, torch.arange(7, device=x.device) == 3],
    "mask-none": lambda x: x[:, torch.arange(7, device=x.device) > 9],
    "repeated-none": lambda x: x.repeat(1, 0, 2),
    "repeated-one": lambda x: x[:, 5:6].repeat(1, 3, 1),
    "chained": lambda x: x[:, 1:6][:, ::3][:, 1:][..., 1:2],
    "written-slice": lambda x: torch.slice_scatter(x, x[:, :1] * 2, 1, 2, 6, 5),
    "written-none": lambda x: torch.slice_scatter(x, x[:, :0], 1, 3, 3),
    "written-select": lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, -1),
    "written-diagonal": lambda x: torch.diagonal_scatter(x, x.diagonal(2, 0, 2) * 2, 2, 0, 2),
    "written-strided": lambda x: torch.as_strided_scatter(x.contiguous(), x[0, :3] * 2, (3, 3), (9, 2), 1),
}
_OF_COMPLEX: dict[str, Form] = {
    "conjugated": lambda x: x.conj()[:, ::5],
    "real": lambda x: x.real[:, 6::2],
    "negative": lambda x: x.conj().imag[:, ::4],
    "parts": lambda x: torch.view_as_real(x)[:, 3::9, ..., 1],
    "adjoint": lambda x: x.mH[..., 1::8],
}
# How x lies in its memory.
_LAID: dict[str, Form] = {
    "dense": lambda base: base,
    "reversed": lambda base: base.permute(2, 1, 0),
    "narrow": lambda base: base[1:, 1:, 2:],
}


def _all_derived(forms: dict[str, Form], cut: Form, base: torch.Tensor) -> Any:
    """Return each form with the gradient of its operand: a dense gradient of the result, and one that is expanded."""
    answers = {}
    for number, (name, form) in enumerate(forms.items()):

        def asked(form: Form = form, number: int = number) -> Any:
            x = leaf(cut(base))
            y = form(x)
            y.backward(uneven(y) if number % 2 else y.new_full((1,) * y.dim(), 0.5).expand(y.shape))
            return y, x.grad

        answers[name] = attempt(asked)
    return answers


for _dtype in (torch.float32, torch.bfloat16, torch.complex64):
    for _name, _cut in _LAID.items():
        if _dtype == torch.bfloat16 and _name != "dense":
            continue
        _forms = {**(_slices() if _name == "dense" else {}), **_OTHERS}
        cases.add(
            f"derived-views-{_name}-{str(_dtype)[6:]}",
            lambda base, cut=_cut, forms={**_forms, **(_OF_COMPLEX if _dtype.is_complex else {})}: _all_derived(
                forms, cut, base
            ),
            make=lambda d, name=_name, dtype=_dtype: d.of(
                dtype, *{"dense": (2, 7, 3), "reversed": (3, 7, 2), "narrow": (3, 8, 5)}[name]
            ),
            terms=8,
            states=ONCE,
            may_be_missing=True,
        )
