"""Gradients of functions that are spelled less often: aliases, views, transforms, in-place forms on a value in between.

Which they are was counted: every public function that the other cases call without a gradient, or not at all.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table
from device_suite.ops import INTEGERS

cases = Cases("conditions")
Forms = Any  # a list of functions of the four operands: list[Callable] is no run-time value on Python 3.8


def _of(letters: str, *functions: Callable[..., torch.Tensor]) -> Forms:
    """Return forms that derive each function of the operands with these letters."""
    return [
        lambda function=function, **given: derived(function, *(given[one] for one in letters)) for function in functions
    ]


def _named(letter: str, names: str, home: Any = torch, *more: Any) -> Forms:
    """Return forms that derive each function of a home, by its name."""
    return _of(letter, *(lambda x, name=name: getattr(home, name)(x, *more) for name in names.split()))


def _in_place(letter: str, names: str, *more: Any) -> Forms:
    """Return forms that derive each in-place method of what was computed from an operand."""
    return _of(letter, *(lambda x, name=name: getattr(x * 1, name + "_")(*more) for name in names.split()))


_ANY = "abs arctan atan ceil cos cosh deg2rad erf erfc exp exp2 expm1 fix floor frac neg negative rad2deg nan_to_num"
_ANY += " relu round sgn sigmoid sign sin sinc sinh square tanh trunc zero triu tril"
_POSITIVE = "digamma lgamma log log10 log1p log2 reciprocal rsqrt sqrt"
_SPECIAL = "digamma erf erfc i0 i0e i1 i1e log_ndtr ndtr sinc expit entr psi gammaln exp2 expm1"

# x of (5, 7) and y like it, p between a quarter and three, u within the unit.
_FORMS: dict[str, Forms] = {
    "aliases": [
        *_named("x", "absolute arctan arcsinh fix negative ravel t adjoint clone flipud atleast_3d"),
        *_named("u", "arccos arcsin arctanh"),
        *_of("p", lambda p: torch.arccosh(p + 1)),
        *_named("x", "absolute adjoint arctan arcsinh negative fix corrcoef", torch.Tensor),
        *_of("xp", torch.multiply, torch.subtract, torch.divide, torch.true_divide, torch.arctan2, torch.hypot),
    ],
    "special": [
        *_named("p", _SPECIAL, torch.special),
        *_of("u", *(lambda u, f=f: f(u.abs() * 0.8 + 0.1) for f in (torch.erfinv, torch.logit, torch.special.ndtri))),
        *_named("x", "softmax log_softmax logsumexp", torch.special, -1),
        *_of("xp", torch.special.xlogy, torch.special.xlog1py),
        *_of("p", *(lambda p, order=order: torch.polygamma(order, p) for order in (0, 1, 2))),
        *_of("p", lambda p: torch.special.multigammaln(p + 2, 2)),
    ],
    "moved": [
        *_of("xy", lambda x, y: torch.concatenate([x, y], -1), lambda x, y: torch.dstack([x, y])),
        *_of("xy", lambda x, y: torch.row_stack([x, y])),
        *_of(
            "x",
            lambda x: x.broadcast_to(2, 5, 7),
            lambda x: torch.constant_pad_nd(x, (1, -2, 2, 0), 3.0),
            lambda x: torch.moveaxis(x, 0, 1),
            lambda x: torch.movedim(x[None], (0, 2), (1, 0)),
            lambda x: torch.permute(x, (1, 0)),
            lambda x: torch.swapaxes(x, 0, 1),
            lambda x: torch.swapdims(x, 0, 1),
            lambda x: torch.transpose(x, 0, 1),
        ),
    ],
    "viewed": _of(
        "x",
        lambda x: torch.narrow(x, 1, 2, 3),
        lambda x: torch.narrow_copy(x, 1, 2, 3),
        lambda x: torch.select(x, 1, 2),
        lambda x: torch.unsqueeze(x, 1),
        lambda x: torch.unflatten(x, 0, (1, 5)),
        lambda x: x.reshape_as(x.mT),
        lambda x: torch.as_strided_scatter(x, x[:2, :3] * 2, (2, 3), (7, 1), 9),
        lambda x: torch.select_scatter(x, x[0] * 2, 0, 3),
        lambda x: x.half().float(),
        lambda x: x.type_as(x.detach()),
        lambda x: torch.hsplit(x, (2, 5))[1],
        lambda x: torch.vsplit(x, (1, 4))[1],
        lambda x: torch.dsplit(x[None], (3,))[1],
        lambda x: torch.tensor_split(x, 3, -1)[2],
        lambda x: torch.unsafe_chunk(x, 3, -1)[1],
        lambda x: torch.unsafe_split(x, 3, -1)[1],
        lambda x: torch.split_with_sizes(x, (3, 4), -1)[1],
        lambda x: torch.unbind(x, 1)[4],
    ),
    "filled": [
        *_of("x", lambda x: torch.fill(x, 2.0), lambda x: x.index_fill(0, _rows(x), 2.5)),
        *_of(
            "xy",
            lambda x, y: torch.index_put(x, (_rows(x),), y[:2]),
            lambda x, y: torch.index_put(x, (_rows(x),), y[:2], accumulate=True),
            lambda x, y: x.index_copy(0, _rows(x), y[:2]),
            lambda x, y: torch.put(x, _rows(x) * 9, y[0, :2]),
            lambda x, y: torch.put(x, _rows(x) * 9, y[0, :2], accumulate=True),
            lambda x, y: x.where(x > 0, y),
            lambda x, y: x.masked_scatter(x > 0.5, y),
        ),
        *_of(
            "xy",
            *(
                lambda x, y, how=how: x.scatter_reduce(0, _rows(x)[:, None].expand(2, 7), y[:2], how)
                for how in ("sum", "mean", "amax", "amin", "prod")
            ),
            *(lambda x, y, how=how: x.index_reduce(0, _rows(x), y[:2], how) for how in ("mean", "prod")),
        ),
    ],
    "fourier": [
        *_named("x", "hfftn hfft2 ihfftn ihfft2 rfftn rfft2 fftshift ifftshift", torch.fft),
        *_of(
            "x",
            lambda x: torch.fft.irfftn(torch.fft.rfftn(x), s=(5, 7)),
            lambda x: torch.fft.irfft2(torch.complex(x, x.flip(0))),
            lambda x: _spectrum(x),
            lambda x: torch.istft(_spectrum(x), 16, 4, window=_window(x), length=120),
            lambda x: torch.istft(torch.complex(_grid(x), _grid(x).flip(1)), 16, 4, window=_window(x)),
            lambda x: torch.istft(
                torch.complex(_grid(x), _grid(x).flip(0))[None], 16, 5, win_length=12, normalized=True
            ),
        ),
    ],
    "composed": [
        *_of("xy", lambda x, y: torch.chain_matmul(x, y.mT, x), lambda x, y: torch.ger(x[0], y[:, 0])),
        *_of("p", lambda p: torch.float_power(p, 1.5).float(), lambda p: torch.frexp(p)[0]),
        *_of(
            "x",
            lambda x: torch.nanquantile(x, 0.3, dim=1),
            lambda x: torch.norm_except_dim(x, 2, 0),
            lambda x: torch.layer_norm(x, (7,)),
            lambda x: torch.cov(x),
            lambda x: torch.trapezoid(x),
            lambda x: torch.cumulative_trapezoid(x),
            lambda x: torch.gradient(x, dim=1)[0],
            lambda x: torch.renorm(x, 2, 0, 1.5),
            lambda x: torch.frobenius_norm(x, dim=(0, 1)),
            lambda x: torch.nuclear_norm(x),
        ),
    ],
    "solved": _of(
        "x",
        lambda x: torch.linalg.tensorinv(_definite(x), ind=1),
        lambda x: torch.linalg.tensorsolve(_definite(x), x[:, 0]),
        lambda x: torch.linalg.solve_ex(_definite(x), x)[0],
        lambda x: torch.svd(x)[1],
        lambda x: torch.matmul(*torch.qr(x.mT)),
        lambda x: torch.linalg.householder_product(x.mT, x[:, 0]),
        lambda x: torch.linalg.matmul(x, x.mT),
    ),
    "losses": [
        *_of(
            "xy",
            lambda x, y: torch.cosine_embedding_loss(x, y, _signs(x)),
            lambda x, y: torch.hinge_embedding_loss(x + y, _signs(x)[:, None].expand(5, 7)),
            lambda x, y: torch.margin_ranking_loss(x, y, _signs(x)[:, None]),
            lambda x, y: torch.triplet_margin_loss(x, y, y.flip(0)),
            lambda x, y: torch.poisson_nll_loss(x, y.abs(), True, False, 1e-8, 1),
            lambda x, y: torch.kl_div(x, y.softmax(-1), 1),
            lambda x, y: torch.binary_cross_entropy_with_logits(x, y.sigmoid()),
            lambda x, y: F.triplet_margin_with_distance_loss(x, y, y.flip(0), margin=0.5, swap=True),
        ),
        *_of(
            "x",
            lambda x: F.multilabel_margin_loss(x, _labels(x)),
            lambda x: F.multi_margin_loss(x, _labels(x)[:, 0], p=2),
        ),
    ],
    "spelled": [
        *_of("xy", lambda x, y: torch.convolution(x[None], y[None], None, [1], [0], [1], False, [0], 1)),
        *_of(
            "x",
            lambda x: torch.max_pool1d(x, 3),
            lambda x: torch.adaptive_max_pool1d(x, 3)[0],
            lambda x: F.fractional_max_pool2d(x[None], 2, 3, _random_samples=x.new_full((1, 1, 2), 0.4)),
            lambda x: torch.group_norm(x, 7),
            lambda x: torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False),
            lambda x: torch.rms_norm(x, (7,)),
            lambda x: torch.embedding(x, _rows(x)),
            lambda x: torch.dropout(x, 0.0, True),
            lambda x: torch.alpha_dropout(x, 0.0, True),
            lambda x: torch.feature_dropout(x, 0.0, True),
        ),
    ],
    "in-place": [
        *_in_place("x", _ANY),
        *_in_place("p", _POSITIVE),
        *_in_place("u", "acos arccos arcsin asin erfinv tan"),
        *(form for name in ("sub", "fmod", "remainder", "pow", "divide", "fill") for form in _in_place("p", name, 1.5)),
        *(form for name in ("clamp_min", "clamp_max", "subtract", "multiply") for form in _in_place("x", name, 0.5)),
        *_in_place("x", "clamp clip", -0.5, 0.5),
        *_in_place("p", "cumsum cumprod", 1),
        *_in_place("x", "renorm", 2, 0, 1.5),
        *_in_place("x", "transpose swapaxes", 0, 1),
        *_in_place("x", "unsqueeze", 0),
        *_of("p", *(lambda p, n=n: getattr(p * 1, n + "_")(p.flip(0)) for n in ("sub", "pow", "atan2", "xlogy"))),
        *_of("xp", *(lambda x, p, n=n: getattr(x * 1, n + "_")(p) for n in ("copysign", "hypot", "multiply", "fmod"))),
        *_of("x", *(lambda x, n=n: getattr(F, n + "_")(x * 1) for n in "celu elu hardtanh leaky_relu selu".split())),
    ],
    "in-place-products": _of(
        "xy",
        lambda x, y: (x[:, :5] * 1).addmm_(x, y.mT),
        lambda x, y: (x[:, 0] * 1).addmv_(x, y[0]),
        lambda x, y: (x * 1).addr_(x[:, 0], y[0]),
        lambda x, y: (x[None, :, :5] * 1).baddbmm_(x[None], y.mT[None]),
        lambda x, y: (x[:, :5] * 1).addbmm_(x[None], y.mT[None]),
    ),
}
# What is copied where a view would do, and numbers out of numbers.
_VALUES: dict[str, Forms] = {
    "copies": [
        lambda x, **_: torch.alias_copy(x),
        lambda x, **_: torch.as_strided_copy(x, (3, 2), (7, 2), 1),
        lambda x, **_: torch.detach_copy(x),
        lambda x, **_: torch.diagonal_copy(x, 1),
        lambda x, **_: torch.expand_copy(x, (2, 5, 7)),
        lambda x, **_: torch.permute_copy(x, (1, 0)),
        lambda x, **_: torch.select_copy(x, 1, 3),
        lambda x, **_: torch.slice_copy(x, 1, 1, 6, 2),
        lambda x, **_: torch.split_copy(x, 3, 1),
        lambda x, **_: torch.split_with_sizes_copy(x, (3, 4), 1),
        lambda x, **_: torch.squeeze_copy(x[:1]),
        lambda x, **_: torch.t_copy(x),
        lambda x, **_: torch.transpose_copy(x, 0, 1),
        lambda x, **_: torch.unbind_copy(x, 1),
        lambda x, **_: torch.unfold_copy(x, 1, 3, 2),
        lambda x, **_: torch.unsqueeze_copy(x, 1),
        lambda x, **_: torch.view_copy(x, (7, 5)),
        lambda x, **_: torch.view_as_complex_copy(x[:, :2].contiguous()),
        lambda x, **_: torch.view_as_real_copy(torch.complex(x, x.flip(0))),
    ],
    "methods": [
        lambda p, **_: p.float_power(2).float(),
        lambda x, **_: x.frexp(),
        lambda x, **_: (x @ x.mT).matrix_power(2),
        lambda x, **_: x.sum_to_size(1, 7),
        lambda x, **_: x.split_with_sizes((3, 4), 1),
        lambda x, **_: x[None].dsplit((2, 5)),
        lambda x, **_: x.svd()[1],
        lambda x, **_: torch.matmul(*x.mT.qr()),
        lambda x, **_: x.mT.geqrf()[0].triu().abs(),
        lambda x, **_: x.flatten().repeat(4).stft(16, 4, window=_window(x), return_complex=True),
        lambda x, **_: _spectrum(x).istft(16, 4, window=_window(x)),
        lambda p, **_: p.polygamma(1),
        lambda x, **_: [x[2, 3].is_nonzero(), complex(x[1, 2]), x.nelement(), x.ndimension(), x.is_inference()],
        lambda x, **_: [x.is_conj(), x.is_neg(), x.dim_order(), x.data_ptr() != 0, x.storage_offset(), len(x)],
        lambda x, **_: list(reversed(x)),
        lambda x, **_: [1 | x.long(), 3 & x.long(), 5 ^ x.long(), 2**x, 7 % x, 7 // x, 2 - x, 3 / x],
        lambda x, **_: [x.cfloat() * 1j, x.char(), x.resize_as_(x.mT.contiguous())],
    ],
    "numbers": [
        lambda x, **_: torch.frexp(x),
        lambda p, **_: torch.float_power(p, 2).float(),
        lambda p, **_: torch.special.gammaincc(p, p.flip(0)),
        lambda p, **_: torch.special.gammainc(p, p.flip(0)),
        lambda x, **_: torch.special.airy_ai(x),
        lambda u, **_: torch.special.legendre_polynomial_p(u, 3),
        lambda x, **_: torch.unravel_index(_rows(x) * 9, (5, 7)),
        lambda x, **_: x.resolve_neg(),
        lambda x, p, **_: torch.rnn_relu_cell(x, x, p[:1].repeat(7, 1), p[1:2].repeat(7, 1)),
        lambda p, **_: F.fractional_max_pool3d(
            p.expand(2, 4, 5, 7), 2, (2, 2, 3), _random_samples=p.new_full((1, 2, 3), 0.4)
        ),
    ],
}


def _rows(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([3, 1], device=x.device)


def _signs(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([1, -1, 1, -1, -1], device=x.device)


def _labels(x: torch.Tensor) -> torch.Tensor:
    rows = [[3, 0, -1, 1, 2, -1, -1], [1, -1, 0, 0, 0, 0, 0], [6, 2, 4, -1, 0, 1, 2]]
    return torch.tensor([*rows, *rows[1:]], device=x.device)


def _definite(x: torch.Tensor) -> torch.Tensor:
    return x @ x.mT + torch.eye(5, dtype=x.dtype, device=x.device)


def _window(x: torch.Tensor) -> torch.Tensor:
    return torch.hann_window(16, dtype=x.dtype, device=x.device)


def _grid(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1)[:27].reshape(9, 3).repeat(1, 4)


def _spectrum(x: torch.Tensor) -> torch.Tensor:
    return torch.stft(x.reshape(-1).repeat(4), 16, 4, window=_window(x), return_complex=True)


def _operands(d: Any) -> Any:
    # Quarters, moved off zero: no kink, no tie, no whole number.
    x, y = (d.integers(-12, 13, 5, 7) / 4 + 0.12 + d.uniform(0, 0.01, 5, 7) for _ in range(2))
    return x, y, d.uniform(0.25, 3, 5, 7), d.uniform(-0.9, 0.9, 5, 7)


def _by_letter(form: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y, p, u: form(x=x, y=y, p=p, u=u)


for _kind, _table in (("differentiated", _FORMS), ("spelled", _VALUES)):
    for _name, _forms in _table.items():
        add_table(
            cases,
            f"{_kind}-{_name}",
            {str(number): _by_letter(form) for number, form in enumerate(_forms)},
            _operands,
            factor=16.0,
        )
for _dtype in (torch.float16, torch.bfloat16, *INTEGERS, torch.bool, torch.complex64):
    add_table(
        cases,
        f"spelled-copies-{str(_dtype)[6:]}",
        {str(number): _by_letter(form) for number, form in enumerate(_VALUES["copies"][:-2])},
        lambda d, dtype=_dtype: tuple(d.of(dtype, 5, 7) for _ in range(4)),
    )
