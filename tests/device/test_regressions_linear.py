"""Regressions in linear layers: ranks, layouts, sizes, consecutive calls."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import backward, leaf

cases = Cases("regressions")


def _make(shape: tuple[int, ...], out: int, dtype: torch.dtype = torch.float32) -> Any:
    def make(d: Any) -> Any:
        first = shape[0] + d.k
        width = shape[-1]
        return (
            d.normal(first, *shape[1:], dtype=dtype),
            d.normal(out, width, dtype=dtype, scale=width**-0.5),
            d.normal(out, dtype=dtype),
        )

    return make


def _linear(x: Any, w: Any, b: Any) -> Any:
    return F.linear(x, w, b), F.linear(x, w), torch.matmul(x, w.t()) + b


def _layer(run: Any, x: Any, w: Any, b: Any) -> Any:
    layer = torch.nn.Linear(w.shape[1], w.shape[0]).to(run.device, run.cast(w.dtype))
    with torch.no_grad():
        layer.weight.copy_(w)
        layer.bias.copy_(b)
    return layer(x), F.linear(x, w)


for _shape, _out in (((80, 1, 2), 192), ((80, 1, 4), 192), ((80, 1, 2), 768)):
    cases.add(f"issue-188438-{_shape[-1]}to{_out}", _layer, issue="188438", make=_make(_shape, _out), terms=_shape[-1])
cases.add("issue-192934", _linear, issue="192934", make=_make((2, 64, 128), 384), terms=128)
cases.add("issue-runner-images-14380", _linear, issue="runner-images-14380", make=_make((3, 64, 128), 96), terms=128)

for _shape, _out in (((2, 13, 1024), 256), ((6, 6, 634), 634), ((1, 3, 28, 315), 315)):
    for _dtype in (torch.bfloat16, torch.float16):
        cases.add(
            f"issue-180776-{_shape[-1]}-{str(_dtype)[6:]}",
            lambda x, w, b: (F.linear(x, w), F.linear(x, w)),
            issue="180776",
            make=_make(_shape, _out, _dtype),
            terms=_shape[-1],
        )

# The reported size is 130 GFLOP; the smaller one keeps batch, rows over 129 and width over 64.
cases.add("issue-97239", _linear, issue="97239", make=_make((9, 144, 768), 96), terms=768)
cases.add(
    "issue-97239-reported",
    _linear,
    issue="97239",
    make=_make((253, 144, 768), 2304),
    terms=768,
    full=True,
    memory_bytes=7 << 30,
    states=("fresh",),
    limit_seconds=600,
)
cases.add("issue-95188", _linear, issue="95188", make=_make((2, 4096, 320), 32), terms=320, states=("fresh", "again"))
cases.add(
    "issue-95188-reported",
    _linear,
    issue="95188",
    make=_make((2, 20736, 320), 320),
    terms=320,
    full=True,
    memory_bytes=2 << 30,
    states=("fresh",),
    limit_seconds=300,
)
cases.add("issue-122045", lambda x, w, b: F.linear(x, w), issue="122045", make=_make((9, 4, 1), 50304))
cases.add(
    "issue-122045-reported",
    lambda x, w, b: F.linear(x, w)[:, ::61],
    issue="122045",
    make=_make((9, 1024, 1), 50304),
    full=True,
    memory_bytes=8 << 30,
    states=("fresh",),
    limit_seconds=300,
)
cases.add(
    "issue-109457",
    lambda x, w, b: F.linear(x, w)[:, ::61],
    issue="109457",
    make=_make((9, 1024, 768), 50304),
    terms=768,
    full=True,
    memory_bytes=8 << 30,
    states=("fresh",),
    limit_seconds=900,
)
# Rows over 2**16: in float32 with a bias, on the leading dimension.
cases.add(
    "issue-189495-shrunk",
    lambda x, w, b: F.linear(x, w, b),
    issue="189495",
    make=_make((65537, 1, 4), 3),
    terms=4,
    states=("fresh", "again"),
)
cases.add(
    "issue-189495-reported",
    lambda x, w, b: F.linear(x, w, b),
    issue="189495",
    make=_make((65537, 11, 128), 512),
    terms=128,
    full=True,
    memory_bytes=18 << 30,
    states=("fresh",),
    limit_seconds=600,
)


@cases.case("issue-189565-vector", issue="189565", make=lambda d: (d.normal(3840 + d.k, 33), d.normal(33)), terms=33)
def _weight_vector(x: Any, w: Any) -> Any:
    given, weight = leaf(x), leaf(w)
    return backward(F.linear(given, weight), given, weight)


@cases.case("issue-189565-row", issue="189565", make=lambda d: (d.normal(3840 + d.k, 33), d.normal(1, 33)), terms=3840)
def _weight_row(x: Any, w: Any) -> Any:
    given, weight = leaf(x), leaf(w)
    return backward(F.linear(given, weight), given, weight)


def _five_dimensions(dtype: torch.dtype) -> Any:
    return lambda d: (d.of(dtype, 2 + d.k, 1, 2, 1, 2), d.of(dtype, 3, 2), d.of(dtype, 3))


def _trained(x: Any, w: Any, b: Any) -> Any:
    given, weight, bias = leaf(x), leaf(w), leaf(b)
    y = F.linear(given, weight, bias)
    return backward(y, given, weight, bias, grad=torch.ones_like(y))


cases.add("issue-114942", _trained, issue="114942", make=_five_dimensions(torch.float32), terms=8)
cases.add(
    "issue-114942-complex", _trained, issue="114942", make=_five_dimensions(torch.complex64), terms=8, since="2.1"
)


def _transposed(dtype: torch.dtype) -> Any:
    return lambda d: (d.normal(3 + d.k, 5, 8, dtype=dtype), d.normal(8, 6, dtype=dtype), d.normal(6, dtype=dtype))


def _transposed_weight(x: Any, w: Any, b: Any) -> Any:
    given, weight, bias = leaf(x), leaf(w), leaf(b)
    return (
        backward(F.linear(given, weight.t(), bias), given, weight, bias),
        F.linear(x[0], w.t(), b),
        F.linear(x, w.t()),
        F.linear(x, w[:, ::2].t(), b[::2]),
    )


for _dtype in (torch.float32, torch.float16, torch.bfloat16):
    cases.add(f"issue-162730-{str(_dtype)[6:]}", _transposed_weight, issue="162730", make=_transposed(_dtype), terms=24)


@cases.case("issue-167154", issue="167154", make=_make((1, 49, 768), 5), terms=768)
def _expanded_input(x: Any, w: Any, b: Any) -> Any:
    wide = x[0:1].expand(5, -1, -1)
    return F.linear(wide, w, b), F.linear(wide, w), F.linear(x.as_strided((5, 7, 768), (0, 768, 1)), w, b)
