"""Rule 3: sides in steps: channels, sides of products, lengths of transforms and of lists; small, odd, past a power.

A kernel that takes channels by four or eight, rows of a product by tiles or a transform by its factors is wrong at a
few lengths alone: 45 channels, https://github.com/ARM-software/armnn/issues/169; (257, 384) times (384, 1152),
https://github.com/tracel-ai/burn/issues/4355; 64 tensors and more, https://github.com/pytorch/pytorch/issues/119885
"""

from __future__ import annotations

import math
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table, shown

cases = Cases("conditions")
Form = Callable[..., Any]

_CHANNELS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 16, 17, 20, 24, 31, 32, 33, 40, 45, 48, 56, 63, 64, 65, 72)
_BESIDE = (3, 4, 8)
# (channels read, channels made), each once.
_PAIRS = sorted({pair for one in _CHANNELS for other in _BESIDE for pair in ((one, other), (other, one))})
_WINDOWS: dict[int, tuple[Any, ...]] = {
    1: (F.conv1d, F.conv_transpose1d, (7,)),
    2: (F.conv2d, F.conv_transpose2d, (5, 6)),
    3: (F.conv3d, F.conv_transpose3d, (3, 4, 3)),
}


def _convolved(rank: int, read: int, made: int, window: int, turn: bool, x: torch.Tensor, w: torch.Tensor) -> Any:
    """Convolve `read` channels to `made`, by every other window with a stride of two."""
    plain, transposed, sides = _WINDOWS[rank]
    corner = (slice(0, window),) * rank
    weight = w.reshape(72, 72, *(3,) * rank)[(slice(0, made), slice(0, read), *corner)].contiguous()
    image = x.reshape(2, 72, *sides)[:, :read].contiguous()
    options = {"stride": 1 + (read + made) % 2, "padding": window // 2}
    if turn:
        return derived(lambda a, b: transposed(a, b.transpose(0, 1), **options), image, weight)
    return derived(lambda a, b: plain(a, b, **options), image, weight)


def _each(groups: int, many: int, x: torch.Tensor, w: torch.Tensor) -> Any:
    """Convolve each channel by itself, to `many` each."""
    weight = w.flatten()[: groups * many * 9].reshape(groups * many, 1, 3, 3)
    image = x.reshape(2, 72, 5, 6)[:, :groups].contiguous()
    return derived(lambda a, b: F.conv2d(a, b, padding=1, groups=groups, stride=1 + groups % 2), image, weight)


def _operands(rank: int, dtype: torch.dtype) -> Any:
    sides = _WINDOWS[rank][2]
    return lambda d: (d.normal(2, 72, math.prod(sides), dtype=dtype), d.normal(72, 72, 3**rank, dtype=dtype) / 8)


for _rank, _dtype, _pairs in (
    (2, torch.float32, _PAIRS),
    *((2, half, _PAIRS[::7]) for half in HALVES),
    (1, torch.float32, _PAIRS[::4]),
    (3, torch.float32, _PAIRS[::9]),
):
    for _window in (1, 3):
        for _turn in (False, True):
            add_table(
                cases,
                f"ladder-channels-{_rank}d-{_window}{'-transposed' * _turn}-{str(_dtype)[6:]}",
                {
                    f"{read}-{made}": lambda x, w, rank=_rank, read=read, made=made, window=_window, turn=_turn: (
                        _convolved(rank, read, made, window, turn, x, w)
                    )
                    for read, made in (_pairs[::3] if _turn else _pairs)
                },
                _operands(_rank, _dtype),
                terms=4096,
                deterministic=False,
            )
add_table(
    cases,
    "ladder-channels-each",
    {
        f"{groups}-{many}": lambda x, w, groups=groups, many=many: _each(groups, many, x, w)
        for groups in _CHANNELS
        for many in (1, 2, 3)
    },
    _operands(2, torch.float32),
    terms=4096,
    deterministic=False,
)

_SIDES = (1, 2, 3, 5, 8, 15, 17, 31, 33, 64, 65, 100, 127, 129, 256, 257)
# (rows, inner side, columns): each pair of sides, the third in turn; then what tiles do not divide.
_PRODUCTS = sorted({(m, _SIDES[(5 * i + 3 * j) % 16], n) for i, m in enumerate(_SIDES) for j, n in enumerate(_SIDES)})
_LARGE = (
    *((257, 384, 1152), (129, 513, 1025), (1, 4097, 1031), (1031, 4099, 1), (3, 2049, 515), (515, 31, 2049)),
    *((67, 8193, 65), (384, 384, 385), (1025, 127, 129), (96, 769, 2305), (2047, 65, 33), (31, 1537, 577)),
)


def _multiplied(m: int, k: int, n: int, x: torch.Tensor, y: torch.Tensor) -> Any:
    a, b = x[: m * k].reshape(m, k), y[: k * n].reshape(k, n)
    more = [torch.addmm(b[:1], a, b, beta=0.5), F.linear(a, b.mT.contiguous(), b[0])] if m * k * n < 1 << 18 else []
    return [a @ b, (a.mT.contiguous().mT) @ b, *more]


for _name, _products in (("", _PRODUCTS), ("-large", _LARGE)):
    for _dtype in (torch.float32, *HALVES):
        if _dtype == torch.float32 or not _name:
            add_table(
                cases,
                f"ladder-products{_name}-{str(_dtype)[6:]}",
                {
                    f"{m}-{k}-{n}": lambda x, y, m=m, k=k, n=n: _multiplied(m, k, n, x, y)
                    for m, k, n in (_products if _dtype == torch.float32 else _products[::5])
                },
                lambda d, dtype=_dtype, large=bool(_name): tuple(
                    d.integers(-3, 4, (4_300_000 if large else 70_000)).to(dtype) / 2 for _ in range(2)
                ),
                terms=8192,
                states=("fresh",),
            )

# Powers of two, of small factors, primes, and one beside each.
_LENGTHS = sorted(
    {2**k + step for k in range(1, 15) for step in (0, 1)}
    | {3 * 2**k for k in range(8)}
    | {5**k for k in range(1, 6)}
    | {7, 11, 13, 49, 77, 101, 127, 360, 509, 1000, 1021, 2310, 4099, 10007}
)


def _half(x: torch.Tensor, n: int) -> torch.Tensor:
    """Return half of what is the transform of real numbers: its ends are real, or no library is told what they mean."""
    ends = torch.zeros(n, dtype=torch.bool, device=x.device)
    ends[:: max(1, n - 1)] = True
    return torch.where(ends, x[:n].real.to(x.dtype), x[:n])


_TRANSFORMS: dict[str, Form] = {
    "fft": lambda x, n: torch.fft.fft(x[:n]),
    "ifft": lambda x, n: torch.fft.ifft(x[:n]),
    "rfft": lambda x, n: torch.fft.rfft(x[:n].real),
    "irfft": lambda x, n: torch.fft.irfft(_half(x, n), n=2 * (n - 1) if n > 1 else 1),
    "irfft-odd": lambda x, n: torch.fft.irfft(_half(x, n), n=2 * n - 1),
    "hfft": lambda x, n: torch.fft.hfft(_half(x, n)),
    "ihfft": lambda x, n: torch.fft.ihfft(x[:n].real),
    "rows": lambda x, n: torch.fft.fft(x[: 3 * n].reshape(3, n)) if n < 6000 else x[:1],
    "columns": lambda x, n: torch.fft.fft(x[: 3 * n].reshape(n, 3), dim=0) if n < 6000 else x[:1],
    "columns-gaps": lambda x, n: torch.fft.fft(x[: 4 * n].reshape(n, 4)[:, ::2], dim=0) if n < 5000 else x[:1],
    "batches": lambda x, n: torch.fft.fft2(x[: 6 * n].reshape(2, 3, n)) if n < 3000 else x[:1],
}
for _name, _form in _TRANSFORMS.items():
    add_table(
        cases,
        f"ladder-{_name}",
        {str(n): lambda x, n=n, form=_form: form(x, n) for n in _LENGTHS},
        lambda d: (d.of(torch.complex64, 20_000),),
        terms=1 << 14,
    )
_PLANES = (
    (11, 12),
    (8, 13),
    (26, 33),
    (7, 49),
    (64, 64),
    (128, 96),
    (100, 101),
    (256, 256),
    (512, 512),
    (1024, 1024),
    (2048, 2048),
    (4096, 65),
    (65, 4097),
)


def _plane(name: str, rows: int, columns: int, x: torch.Tensor) -> Any:
    """Transform a plane that is one line of numbers in turn; every so many of the result, and its ends."""
    plane = x.repeat(-(-rows * columns // len(x)))[: rows * columns].reshape(rows, columns)
    found = getattr(torch.fft, name)(plane.real if name == "rfft2" else plane)
    return shown(found, max(1, found.numel() // 5000))


add_table(
    cases,
    "ladder-planes",
    {
        f"{name}-{rows}-{columns}": lambda x, name=name, r=rows, c=columns: _plane(name, r, c, x)
        for rows, columns in _PLANES
        for name in (("fft2",) if rows * columns > 1 << 20 else ("fft2", "ifft2", "rfft2", "irfft2"))
    },
    lambda d: (d.of(torch.complex64, 65_537),),
    terms=1 << 16,
)

_UNARY = ("abs", "neg", "sqrt", "exp", "sigmoid", "round", "zero_", "sign", "reciprocal", "tanh")
_BINARY = ("add", "sub", "mul", "div", "clamp_min", "maximum")


def _listed(count: int, empty: bool, x: torch.Tensor) -> Any:
    """Ask functions of a list of `count` tensors of 1 to 5 numbers, and of none here and there."""
    sizes = [0 if empty and number % 7 == 3 else 1 + number % 5 for number in range(count)]

    def fresh() -> list[torch.Tensor]:
        return [one.clone() for one in x[: sum(sizes)].split(sizes)]

    def joined(lists: Any) -> torch.Tensor:
        return torch.cat([one.flatten() for one in lists])

    found = {}
    for name in _UNARY:
        if not name.endswith("_"):
            found[name] = joined(getattr(torch, f"_foreach_{name}")(fresh()))
        changed = fresh()
        getattr(torch, f"_foreach_{name.rstrip('_')}_")(changed)
        found[f"{name}_"] = joined(changed)
    for name in _BINARY:
        for kind, other in (("number", 1.5), ("numbers", [0.5 + n % 3 for n in range(count)]), ("list", fresh())):
            found[f"{name}-{kind}"] = joined(getattr(torch, f"_foreach_{name}")(fresh(), other))
            changed = fresh()
            getattr(torch, f"_foreach_{name}_")(changed, other)
            found[f"{name}_-{kind}"] = joined(changed)
    for name in ("addcmul", "addcdiv", "lerp"):
        given = (fresh(), 0.5) if name == "lerp" else (fresh(), fresh(), 0.5)
        found[name] = joined(getattr(torch, f"_foreach_{name}")(fresh(), *given))
        changed = fresh()
        getattr(torch, f"_foreach_{name}_")(changed, *given)
        found[f"{name}_"] = joined(changed)
    copied = fresh()
    torch._foreach_copy_(copied, [one * 2 for one in fresh()])
    found["copied"] = joined(copied)
    if not empty:
        found["norms"] = torch.stack(torch._foreach_norm(fresh()))
        found["clipped"] = _clipped(fresh())
    return found


def _clipped(lists: list[torch.Tensor]) -> Any:
    for one in lists:
        one.grad = one.clone()
    return [torch.nn.utils.clip_grad_norm_(lists, 1.0), torch.cat([one.grad for one in lists])]


for _dtype, _more in ((torch.float32, ((129, False), (259, True))), (torch.float16, ())):
    add_table(
        cases,
        f"ladder-lists-{str(_dtype)[6:]}",
        {
            f"{count}{'-empty' * empty}": lambda x, count=count, empty=empty: _listed(count, empty, x)
            for count, empty in ((1, False), (31, True), (64, False), (66, True), *_more)
        },
        lambda d, dtype=_dtype: (d.of(torch.float32, 1000).abs().add(0.25).to(dtype),),
        since="2.4",
        terms=256,
    )
