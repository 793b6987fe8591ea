"""Fourier transforms: norms, sides, sizes."""

from __future__ import annotations

import torch

from engine.description import ABSENT, Table

t = Table()

NORMS = (ABSENT, "ortho", "forward", "backward", None)
X = {"values": ("plain", "zero"), "forms": ("call", "out", "grad"), "terms": 64, "factor": 64.0, "floor": 1.0}
# MKL's transform of two dimensions and more, of complex numbers with steps, writes past its own memory (torch 2.13).
SEVERAL = {**X, "dense_on_cpu": True}
# Powers of two, odd numbers, primes, one and two: other algorithms.
SIZES = {
    "small": (5, 7),
    "four": (2, 3, 4, 6),
    "line": (17,),
    "long": (3, 1031),
    "tiles": (32, 64),
    "three": (4, 3, 5),
    "one": (1, 1),
    "column": (33, 1),
    "row": (1, 31),
    "pair": (4, 2),
    "power": (2, 1024),
    "rows": (5003, 4),
    "high": (1031, 3),
}
PLANES = {key: size for key, size in SIZES.items() if key != "line"}
COUNTS = (ABSENT, 4, 9, 1, 2, 64, None)
DIMS = (ABSENT, 0, -1, 1, -2)
for name, kinds in (
    ("fft", "scli"),
    ("ifft", "scl"),
    ("rfft", "sli"),
    ("ihfft", "sl"),
    ("irfft", "cs"),
    ("hfft", "cs"),
):
    t.add(f"fft_{name}", n=COUNTS, dim=DIMS, norm=NORMS, dtypes=kinds.replace("li", "ib"), sizes=SIZES, **X)
BOTH_SIDES = (ABSENT, (0, 1), (-1, -2), (1, 0), (-2, -1), (-1, 0))
for name, kinds in (
    *((name, "scl") for name in ("fft2", "ifft2")),
    *((name, "sl") for name in ("rfft2", "ihfft2")),
    *((name, "cs") for name in ("irfft2", "hfft2")),
):
    t.add(
        f"fft_{name}",
        s=(ABSENT, None, (4, 6), (1, 9), (-1, 3), (33, 2)),
        dim=BOTH_SIDES,
        norm=NORMS,
        dtypes=kinds,
        sizes=PLANES,
        **SEVERAL,
    )
for name, kinds in (
    *((name, "scl") for name in ("fftn", "ifftn")),
    *((name, "sl") for name in ("rfftn", "ihfftn")),
    *((name, "cs") for name in ("irfftn", "hfftn")),
):
    t.add(
        f"fft_{name}",
        s=(ABSENT, None, (4, 6), (5,), (-1, 3)),
        dim=(ABSENT, None, (0, 1), (-1,), (0,), (-1, 0), (-1, -2)),
        norm=NORMS,
        dtypes=kinds,
        sizes=SIZES,
        **SEVERAL,
    )
for name in ("fftshift", "ifftshift"):
    t.add(
        f"fft_{name}",
        dim=(ABSENT, None, (0,), (-1,), 0, -1, (0, 1), (-1, 0)),
        dtypes="fcib",
        values=("plain", "special", "wide"),
        forms=("call", "grad"),
        sizes=SIZES,
    )
for name in ("fftfreq", "rfftfreq"):
    t.add(
        f"fft_{name}",
        act=lambda x, n, name=name, **k: getattr(torch.fft, name)(n, dtype=x.dtype, device=x.device, **k),
        _n=(1, 2, 7, 64, 1031),
        d=(ABSENT, 0.5, 3.0, -0.1),
        dtypes="s",
        forms=("call",),
        values=("plain",),
        sizes=("one",),
        layouts_of=(),
    )
LINES = {"main": (2, 100), "line": (67,), "long": (1, 1031), "least": (3, 26), "many": (33, 64)}
PADDED = ("reflect", "constant", "replicate", "circular")


def _window(x, length, kind):
    """A window, or none; a rectangle, or one that is nowhere 0."""
    if kind is None:
        return None
    return torch.hamming_window(length, kind, dtype=x.dtype if not x.is_complex() else x.real.dtype, device=x.device)


t.add(
    "stft",
    act=lambda x, n, hop, length, window, center, mode, one, normed: torch.stft(
        x,
        n,
        hop,
        length,
        window=_window(x, length or n, window),
        center=center,
        pad_mode=mode,
        normalized=normed,
        onesided=None if x.is_complex() else one,
        return_complex=True,
    ),
    _n=(16, 25, 4),
    _hop=(4, 7, None, 1, 30),
    _length=(None, 3, 4),
    _window=(True, False, None),
    _center=(True, False),
    _mode=PADDED,
    _one=(True, False, None),
    _normed=(False, True),
    dtypes="sc",
    values=("plain", "zero"),
    forms=("call", "grad"),
    terms=64,
    factor=64.0,
    floor=1.0,
    sizes=LINES,
)
t.add(
    "istft",
    lambda c: c.draw("any", (*c.shape[:-2], c.args["_n"] // 2 + 1 if c.args["_one"] else c.args["_n"], c.shape[-1])),
    act=lambda x, n, hop, window, center, normed, one, length: torch.istft(
        x,
        n,
        hop,
        window=torch.hamming_window(n, window, dtype=x.real.dtype, device=x.device) if window is not None else None,
        center=center,
        normalized=normed,
        onesided=one,
        length=length,
    ),
    _n=(16, 9, 2),
    _hop=(4, None, 1),
    _window=(True, False, None),
    _center=(True, False),
    _normed=(False, True),
    _one=(True, False),
    _length=(None, 20, 5),
    dtypes="c",
    values=("plain", "zero"),
    forms=("call", "grad"),
    terms=64,
    factor=64.0,
    floor=1.0,
    sizes={"main": (2, 1, 11), "flat": (1, 20), "many": (33, 1, 7), "long": (1, 1, 131)},
)
