"""Why a rehearsal's wheel differs from the official one: facts of how it was configured, compiled and linked."""

from __future__ import annotations

from .differences import Reason

LEFT_OUT = (
    "distributed (gloo, tensorpipe, libuv): Debian's tree has no third_party",
    "XNNPACK, QNNPACK and PyTorch's fork of it, NNPACK: the same",
    "Metal libraries: no Metal compiler here; the shaders are inside as source, as with `--allow-jit-shaders`",
    "vectors by sleef: its header in an x86-64 root declares nothing for arm64",
    "optimisation: everything is compiled at -O0",
)
REASONS: tuple[Reason, ...] = ()
