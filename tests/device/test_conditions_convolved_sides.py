"""Rule 3: convolutions of one channel, high, wide and deep images, and results of more than 2**20 numbers.

A library takes another algorithm by a side alone: images higher than 65,535 were refused,
https://github.com/pytorch/pytorch/issues/31336; slices from the fifth on were 0,
https://github.com/arrayfire/arrayfire/issues/2709. Beside the CPU's own answers.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.near import demand_near

cases = Cases("conditions")
Form = Callable[..., Any]
_FUNCTIONS: dict[int, tuple[Form, Form]] = {
    1: (F.conv1d, F.conv_transpose1d),
    2: (F.conv2d, F.conv_transpose2d),
    3: (F.conv3d, F.conv_transpose3d),
}
# (images, channels read, channels made, sides): of one channel, of few, of more than 2**20 results.
_SIDES = (
    *((1, 1, 1, (n,)) for n in (255, 4097, 70_001)),
    (2, 3, 4, (333,)),
    (1, 1, 16, (66_003,)),
    *((1, 1, 1, sides) for sides in ((256, 256), (257, 300), (512, 64), (31, 1030), (70_001, 3), (3, 70_001))),
    (2, 2, 3, (129, 65)),
    *((1, 1, 17, (250, 260)), (3, 2, 8, (210, 215)), (1, 4, 1, (130, 257)), (9, 1, 1, (64, 64))),
    *((1, 1, 1, sides) for sides in ((4, 5, 6), (5, 9, 8), (9, 4, 4), (17, 16, 15), (66_001, 1, 1), (33, 34, 35))),
    *((2, 2, 3, (7, 12, 11)), (1, 1, 24, (35, 36, 36)), (2, 1, 2, (65, 9, 8))),
)
# A share of the largest number, summed in whatever order.
_SHARE = {torch.float32: 1e-2, torch.float16: 3e-2}


def _answer(turn: int, made: int, kernel: int, image: torch.Tensor, numbers: torch.Tensor) -> Any:
    """Convolve, with a padding that keeps an odd kernel's sides, and take the gradients; `turn` 1: transposed."""
    rank, read = image.dim() - 2, image.shape[1]
    shape = (read, made, *(kernel,) * rank) if turn else (made, read, *(kernel,) * rank)
    convolve = _FUNCTIONS[rank][turn]
    weight = numbers[: torch.Size(shape).numel()].reshape(shape)
    return derived(lambda x, w: convolve(x, w, padding=kernel // 2 if kernel % 2 else 0), image, weight)


def _beside(row: Any, dtype: torch.dtype, bench: Any) -> Any:
    n, read, made, sides, kernel, turn = row
    d = bench.draw("convolved-sides")
    count = n * read * torch.Size(sides).numel()
    numbers, weight = (d.distinct(9973) / 4096 + 0.125).to(dtype), (d.distinct(1400) / 1024).to(dtype)
    image = numbers.repeat(-(-count // len(numbers)))[:count].reshape(n, read, *sides)
    return demand_near(partial(_answer, turn, made, kernel), (image, weight), bench, _SHARE[dtype])


for _place, _row in enumerate(_SIDES):
    for _kernel, _turn, _dtype in (
        (3, 0, torch.float32),
        *(((1, 0, torch.float32), (2, 1, torch.float32)) if _place % 4 == 0 else ()),
        *(((5, 0, torch.float32), (3, 1, torch.float32)) if _place % 4 == 2 else ()),
        *(((3, 0, torch.float16),) if _place % 3 == 0 else ()),
    ):
        _whole = (*_row, _kernel, _turn)
        cases.add(
            f"condition-limit-convolved-{'-'.join(map(str, _row[:3]))}-of-{'x'.join(map(str, _row[3]))}"
            f"-by-{_kernel}{'-turned' * _turn}-{str(_dtype)[6:]}",
            lambda bench, row=_whole, dtype=_dtype: _beside(row, dtype, bench),
            check=True,
            may_be_missing=True,
        )
