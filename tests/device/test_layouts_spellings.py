"""The many public names of the same operators: each asked once, on a transposed and on an offset view."""

from __future__ import annotations

import operator
from typing import Any, Callable

import torch

from device_suite import Cases

cases = Cases("layouts")
HOMES = {"torch": torch, "Tensor": torch.Tensor, "special": torch.special, "fft": torch.fft, "linalg": torch.linalg}


_ASKED: set[str] = set()


def _function(path: str) -> Callable[..., Any] | None:
    home, _, name = path.partition(".")
    return getattr(HOMES[home], name, None)


def _call(path: str, *arguments: Any) -> Any:
    """Call by the public name, looked up now; what comes in several parts is made a tuple."""
    answer = operator.attrgetter(path.partition(".")[2])(HOMES[path.partition(".")[0]])(*arguments)
    return tuple(answer) if isinstance(answer, tuple) else answer


def _add(path: str, arguments: Callable[..., tuple[Any, ...]], **fields: Any) -> None:
    if _function(path) is None or path in _ASKED:
        return
    _ASKED.add(path)

    def act(x: Any, y: Any, i: Any) -> Any:
        answers = []
        for one, other in ((x.t(), y.t()), (x[1:5, 1:5], y[1:5, 1:5])):
            first = one.clone(memory_format=torch.preserve_format) if path.endswith("_") else one
            answers.append(_call(path, *arguments(first, other, i)))
        return answers

    cases.add(
        f"layout-spelling-{path}",
        act,
        make=lambda d: (d.uniform(0.25, 0.9, 5 + d.k, 6), d.uniform(0.25, 0.9, 5 + d.k, 6), torch.tensor([2, 0, 3, 1])),
        **{
            "terms": 256,
            "factor": 64,
            "floor": 0.25,
            "may_be_missing": True,
            "states": ("fresh", "polluted"),
            **fields,
        },
    )


# One operand. A name with an underscore is tried too where there is one.
_ONE = """absolute angle arccos arcsin arcsinh arctan arctanh conj conj_physical fix isreal negative fliplr flipud ravel
t detach adjoint abs neg exp sqrt log sin cos tanh sigmoid relu clone square reciprocal frac sign numel
is_signed pinverse nanmean nansum mean sum std var median prod max min argmax argmin unique unique_consecutive
isnan cov corrcoef diag diag_embed diagflat diff erf trunc mvlgamma_2 logsumexp_0 cumsum_1 cumprod_1 squeeze
contiguous ndimension nelement tril triu trace nonzero is_nonzero_0 all any isfinite isinf"""
for _word in _ONE.split():
    _name, _, _dim = _word.rpartition("_")
    _more: tuple[Any, ...] = (int(_dim),) if _dim.isdigit() else ()
    _name = _name if _dim.isdigit() else _word
    if _name in ("is_nonzero", "mvlgamma"):
        continue
    for _home in ("torch", "Tensor"):
        for _suffix in ("", "_"):
            _add(f"{_home}.{_name}{_suffix}", lambda x, y, i, more=_more: (x, *more))
for _name in ("arccosh", "acosh"):
    for _home in ("torch", "Tensor"):
        _add(f"{_home}.{_name}", lambda x, y, i: (x + 1,))
for (
    _name
) in """digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammaln i0 i0e i1 i1e log1p log_ndtr logit ndtr ndtri psi
round sinc bessel_j0 bessel_j1""".split():
    _add(f"special.{_name}", lambda x, y, i: (x,))
for _name in ("xlog1py", "xlogy", "zeta_1"):
    _add(f"special.{_name}", lambda x, y, i: (x, y))
for _name in ("log_softmax", "softmax", "logsumexp"):
    _add(f"special.{_name}", lambda x, y, i: (x, 1))
for _name in "fft ifft rfft ihfft fft2 ifft2 rfft2 fftn ifftn rfftn fftshift ifftshift".split():
    _add(f"fft.{_name}", lambda x, y, i: (x,), since="2.1")
for _name in ("irfft", "hfft", "irfft2", "irfftn"):
    _add(f"fft.{_name}", lambda x, y, i, name=_name: (torch.fft.fft(x) * 0 + torch.complex(x, x),), since="2.1")

# Two operands, in both homes and in place.
for (
    _name
) in """add sub mul div subtract multiply divide true_divide floor_divide remainder fmod pow atan2 arctan2 maximum
minimum fmax fmin eq ne lt le gt ge equal greater greater_equal less less_equal not_equal logical_and
logical_or logical_xor hypot copysign dist allclose isclose heaviside ldexp logaddexp xlogy igamma igammac
type_as expand_as reshape_as view_as_ sum_to_size_ rsub is_same_size lerp_half""".split():
    for _home in ("torch", "Tensor"):
        for _suffix in ("", "_"):
            if _name not in ("allclose", "equal", "is_same_size", "type_as", "expand_as", "reshape_as") or not _suffix:
                _add(f"{_home}.{_name}{_suffix}", lambda x, y, i: (x, y))
for _name in ("matmul", "mm"):
    for _home in ("torch", "Tensor"):
        _add(f"{_home}.{_name}", lambda x, y, i: (x.contiguous(), y.contiguous().t()))
_add("torch.polygamma", lambda x, y, i: (1, x))
_add("special.polygamma", lambda x, y, i: (1, x))
_add("torch.kron", lambda x, y, i: (x.contiguous(), y.contiguous()))
_add("Tensor.kron", lambda x, y, i: (x.contiguous(), y.contiguous()))
_add("linalg.matmul", lambda x, y, i: (x, y.t()))
_add("linalg.vecdot", lambda x, y, i: (x, y))

# What takes a dimension, an index or a shape.
_SHAPED: dict[str, Callable[..., tuple[Any, ...]]] = {
    "transpose": lambda x, y, i: (x, 0, 1),
    "swapaxes": lambda x, y, i: (x, 0, 1),
    "swapdims": lambda x, y, i: (x, 0, 1),
    "movedim": lambda x, y, i: (x, 0, 1),
    "moveaxis": lambda x, y, i: (x, 1, 0),
    "permute": lambda x, y, i: (x, (1, 0)),
    "unsqueeze": lambda x, y, i: (x, 1),
    "select": lambda x, y, i: (x, 0, 2),
    "narrow": lambda x, y, i: (x, 1, 1, 2),
    "narrow_copy": lambda x, y, i: (x, 1, 1, 2),
    "flatten": lambda x, y, i: (x,),
    "unflatten": lambda x, y, i: (x, 0, (1, -1)),
    "chunk": lambda x, y, i: (x, 2),
    "split": lambda x, y, i: (x, 2),
    "tensor_split": lambda x, y, i: (x, 2),
    "unbind": lambda x, y, i: (x,),
    "hsplit": lambda x, y, i: (x[:, :4], 2),
    "vsplit": lambda x, y, i: (x[:4], 2),
    "roll": lambda x, y, i: (x, 1, 0),
    "rot90": lambda x, y, i: (x,),
    "flip": lambda x, y, i: (x, (1,)),
    "tile": lambda x, y, i: (x, (2, 1)),
    "repeat": lambda x, y, i: (x, 2, 1),
    "broadcast_to": lambda x, y, i: (x, (2, *x.shape)),
    "expand": lambda x, y, i: (x, 2, *x.shape),
    "reshape": lambda x, y, i: (x, (-1,)),
    "softmax": lambda x, y, i: (x, 1),
    "log_softmax": lambda x, y, i: (x, 0),
    "norm": lambda x, y, i: (x,),
    "renorm": lambda x, y, i: (x, 2, 0, 1.0),
    "quantile": lambda x, y, i: (x, 0.25),
    "nanquantile": lambda x, y, i: (x, 0.5),
    "clip": lambda x, y, i: (x, 0.3, 0.7),
    "clamp": lambda x, y, i: (x, 0.3, 0.7),
    "topk": lambda x, y, i: (x, 2),
    "sort": lambda x, y, i: (x,),
    "argsort": lambda x, y, i: (x,),
    "kthvalue": lambda x, y, i: (x, 2),
    "index_select": lambda x, y, i: (x, 0, i),
    "gather": lambda x, y, i: (x, 0, i[:, None]),
    "take_along_dim": lambda x, y, i: (x, i[:, None], 0),
    "take": lambda x, y, i: (x, i),
    "masked_fill": lambda x, y, i: (x, y > 0.5, 2.0),
    "masked_select": lambda x, y, i: (x, y > 0.5),
    "masked_scatter": lambda x, y, i: (x, y > 0.5, y),
    "where_of": lambda x, y, i: (x, y),
    "index_add": lambda x, y, i: (x, 0, i, y[:4]),
    "index_copy": lambda x, y, i: (x, 0, i, y[:4]),
    "index_fill": lambda x, y, i: (x, 0, i, 2.0),
    "index_put": lambda x, y, i: (x, (i,), y[:4]),
    "scatter": lambda x, y, i: (x, 0, i[:, None], y),
    "put": lambda x, y, i: (x, i, y[0, :4]),
    "scatter_add": lambda x, y, i: (x, 0, i[:, None], y),
    "scatter_reduce": lambda x, y, i: (x, 0, i[:, None], y, "sum"),
    "index_reduce": lambda x, y, i: (x, 0, i, y[:4], "amax"),
    "select_scatter": lambda x, y, i: (x, y[0], 0, 1),
    "slice_scatter": lambda x, y, i: (x, y[1:3], 0, 1, 3),
    "diagonal_scatter": lambda x, y, i: (x, y.diagonal()),
    "diagonal": lambda x, y, i: (x,),
    "as_strided": lambda x, y, i: (x, (2, 2), (1, 2), 1),
    "as_strided_scatter": lambda x, y, i: (x.contiguous(), y[:2, :2], (2, 2), (1, 2), 1),
    "logit": lambda x, y, i: (x, 1e-6),
    "nan_to_num": lambda x, y, i: (x,),
    "round": lambda x, y, i: (x,),
    "addcmul": lambda x, y, i: (x, y, y),
    "addcdiv": lambda x, y, i: (x, y, y),
    "lerp": lambda x, y, i: (x, y, 0.25),
    "addr": lambda x, y, i: (x, y[:, 0], y[0]),
    "addmm": lambda x, y, i: (x, y, y[: y.shape[1], : x.shape[1]].clone() if y.shape[0] >= y.shape[1] else y.t() @ y),
    "cumsum": lambda x, y, i: (x, 0),
    "cumprod": lambda x, y, i: (x, 1),
    "cummax": lambda x, y, i: (x, 1),
    "logcumsumexp": lambda x, y, i: (x, 0),
    "fill": lambda x, y, i: (x, 0.75),
    "copysign": lambda x, y, i: (x, -1.0),
    "count_nonzero": lambda x, y, i: (x,),
    "stft_": lambda x, y, i: (x,),
    "to": lambda x, y, i: (x, y.dtype),
    "copy_": lambda x, y, i: (x, y),
    "fill_": lambda x, y, i: (x, 0.25),
    "zero_": lambda x, y, i: (x,),
    "fill_diagonal_": lambda x, y, i: (x, 0.125),
    "set_scalar": lambda x, y, i: (x,),
    "new_tensor": lambda x, y, i: (x, [1.0, 2.0]),
    "squeeze_": lambda x, y, i: (x,),
    "unsqueeze_": lambda x, y, i: (x, 0),
    "t_": lambda x, y, i: (x,),
    "transpose_": lambda x, y, i: (x, 0, 1),
    "as_strided_": lambda x, y, i: (x, (2, 2), (1, 2)),
    "swapaxes_": lambda x, y, i: (x, 0, 1),
    "detach_": lambda x, y, i: (x,),
}
for _name, _arguments in _SHAPED.items():
    for _home in ("torch", "Tensor"):
        _takes_many = _home == "torch" and _name in ("repeat", "expand")
        if not _takes_many:
            _add(f"{_home}.{_name}", _arguments)
            if not _name.endswith("_") and _home == "Tensor" and hasattr(torch.Tensor, _name + "_"):
                _add(f"Tensor.{_name}_", _arguments)

# Square matrices that are well conditioned.
for _path in """linalg.eigh linalg.eigvals linalg.lstsq_1 linalg.inv_ex linalg.cholesky_ex linalg.lu linalg.cond
linalg.matrix_rank linalg.matrix_exp linalg.det linalg.slogdet linalg.inv linalg.pinv linalg.cholesky
linalg.svdvals linalg.eigvalsh torch.det Tensor.det torch.slogdet Tensor.slogdet torch.inverse Tensor.inverse
torch.logdet Tensor.logdet torch.cholesky_inverse Tensor.matrix_exp""".split():
    _kept = 1 if _path.endswith("eigh") else 0

    def _square(x: Any, y: Any, i: Any) -> Any:
        s = x[:4, :4]
        return (s @ s.t() * 0.1 + torch.eye(4, dtype=x.dtype, device=x.device),)

    if _path in ("linalg.eigvals", "linalg.lstsq_1", "linalg.eigh"):
        continue  # their parts are free in sign or order
    _add(_path, _square)


@cases.case(
    "layout-spelling-joined", make=lambda d: (d.normal(4, 4 + d.k), d.normal(4, 4 + d.k)), states=("fresh", "polluted")
)
def _joins(x: Any, y: Any) -> Any:
    return (
        torch.concatenate((x.t(), y.t())) if hasattr(torch, "concatenate") else torch.cat((x.t(), y.t())),
        torch.concat((x, y), 1),
        torch.row_stack((x, y)),
        torch.hstack((x.t(), y.t())),
        torch.atleast_1d(x),
        torch.atleast_2d(x[0]),
        torch.masked_fill(x, y > 0, 1.0),
        torch.dsplit(x[:, :, None].expand(-1, -1, 2), 2),
        torch.view_as_complex(torch.stack((x, y), -1)).real,
    )
