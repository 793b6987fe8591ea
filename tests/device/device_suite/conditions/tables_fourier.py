"""Fourier transforms: norms, sides, sizes."""

from __future__ import annotations

import torch

from .spec import ABSENT, Table

t = Table()

NORMS = (ABSENT, "ortho", "forward", "backward")
X = {"values": ("plain",), "forms": ("call", "out", "grad"), "terms": 64, "factor": 64.0, "floor": 1.0}
for name in ("fft", "ifft"):
    t.add(
        f"fft_{name}",
        n=(ABSENT, 4, 9),
        dim=(ABSENT, 0, -1),
        norm=NORMS,
        dtypes="scl",
        sizes=("small", "four", "line", "long", "tiles", "three"),
        **X,
    )
for name in ("rfft", "ihfft"):
    t.add(
        f"fft_{name}",
        n=(ABSENT, 4, 9),
        dim=(ABSENT, 0, -1),
        norm=NORMS,
        dtypes="sl",
        sizes=("small", "four", "line", "long", "tiles", "three"),
        **X,
    )
for name in ("irfft", "hfft"):
    t.add(
        f"fft_{name}",
        n=(ABSENT, 4, 9),
        dim=(ABSENT, 0, -1),
        norm=NORMS,
        dtypes="c",
        sizes=("small", "four", "line", "tiles", "three"),
        **X,
    )
for name in ("fft2", "ifft2", "fftn", "ifftn"):
    t.add(
        f"fft_{name}",
        dim=(ABSENT, (0, 1), (-1, -2)),
        norm=NORMS,
        dtypes="sc",
        sizes=("small", "four", "tiles", "three"),
        **X,
    )
for name in ("rfft2", "rfftn"):
    t.add(f"fft_{name}", dim=(ABSENT, (0, 1)), norm=NORMS, dtypes="s", sizes=("small", "four", "tiles"), **X)
for name in ("fftshift", "ifftshift"):
    t.add(
        f"fft_{name}",
        dim=(ABSENT, (0,), (-1,)),
        dtypes="fc",
        values=("plain",),
        forms=("call", "grad"),
        sizes=("small", "four", "line", "long"),
    )
t.add(
    "stft",
    act=lambda x, n, hop, center, one: torch.stft(
        x,
        n,
        hop,
        window=torch.hann_window(n, dtype=x.dtype, device=x.device),
        center=center,
        onesided=one,
        return_complex=True,
    ),
    _n=(16, 25),
    _hop=(4, 7),
    _center=(True, False),
    _one=(True, False),
    dtypes="s",
    values=("plain",),
    forms=("call", "grad"),
    terms=64,
    factor=64.0,
    floor=1.0,
    sizes={"main": (2, 100), "line": (67,)},
)
