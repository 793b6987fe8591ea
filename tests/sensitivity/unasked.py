"""What a healthy device may answer otherwise since nobody asked for it, or since the question contradicts itself.

No plants, as in free_choice.py: a call that changes its answer under these has no one answer. Each was met on an NVIDIA
GPU, which was right.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import torch

from unasked_operands import NOTHING, as_called, fill, of_contradictions


def _factorised(func: Any, args: Any, kwargs: Any) -> Any:
    """Leave nothing of use where `info` says that a matrix could not be factorised, or only rounding hides it."""
    answer = func(*args, **kwargs)
    failed = answer[-1] != 0
    if "cholesky" not in func._schema.name:
        failed = failed | _is_singular(args[0])
    for one in answer[:-1]:
        if one.dim() >= failed.dim() + 2 and one.is_floating_point():
            one.masked_fill_(failed[..., None, None], math.nan)
    return answer


def of_finite_matrices(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return a choice that answers anything where a matrix is not finite.

    LAPACK does not say what it makes of such a matrix: where NaN lie, which rows are exchanged, what `info` is.
    """

    def chosen(func: Any, args: Any, kwargs: Any) -> Any:
        if all(bool(one.isfinite().all()) for one in args if isinstance(one, torch.Tensor)):
            return choose(func, args, kwargs)
        return fill(func(*args, **kwargs))

    return chosen


def _of_a_whole_degree(func: Any, args: Any, kwargs: Any) -> Any:
    """Answer anything where the degree of a polynomial is none: NaN, or a number that no integer holds."""
    answer = func(*args, **kwargs)
    if isinstance(args[1], torch.Tensor):
        answer.masked_fill_(~(args[1].double().abs() < 2.0**63), NOTHING)
    return answer


def _own_buffer(func: Any, args: Any, kwargs: Any) -> Any:
    """Take no buffer that another back end's forward kept: log_sigmoid's is exp(-|x|) on the CPU, empty on a GPU."""
    args[2] = torch.exp(-args[1].abs())
    return func(*args, **kwargs)


def _mask_of_bools(func: Any, args: Any, kwargs: Any) -> Any:
    """Refuse a mask of another dtype: the schema's own backward makes one of bools."""
    if args[1].dtype != torch.bool:
        raise RuntimeError(f"the mask is {args[1].dtype}")
    return func(*args, **kwargs)


def _flat_weights(func: Any, args: Any, kwargs: Any) -> Any:
    """Refuse weights and statistics that are not one for each channel: the CPU does not look at their dimensions."""
    if any(isinstance(one, torch.Tensor) and one.dim() != 1 for one in args[1:]):
        raise RuntimeError("a weight of another rank than 1")
    return func(*args, **kwargs)


def _whole_gradient(func: Any, args: Any, kwargs: Any) -> Any:
    """Refuse a gradient that has not the shape of glu's output: the CPU expands it."""
    if args[0].numel() * 2 != args[1].numel() or args[0].dim() != args[1].dim():
        raise RuntimeError("a gradient of another shape")
    return func(*args, **kwargs)


def _least_squares(func: Any, args: Any, kwargs: Any) -> Any:
    """Choose the driver that is nobody's choice: a GPU has `gels` alone, which gives no rank."""
    if kwargs.get("driver") is None:
        kwargs["driver"] = "gels"
    return func(*args, **kwargs)


def _reflectors(func: Any, args: Any, kwargs: Any) -> Any:
    """Return any reflectors where columns depend on one another: the last ones are then made of rounding."""
    answer = func(*args, **kwargs)
    if bool(_is_singular(args[0]).any()):
        answer[1].fill_(math.nan)
    return answer


def _is_singular(x: torch.Tensor) -> torch.Tensor:
    """Say of each matrix whether its columns depend on one another but for rounding."""
    if not x.numel():
        return torch.zeros(x.shape[:-2], dtype=torch.bool)
    return torch.linalg.matrix_rank(x, rtol=1e-4) < min(x.shape[-2:])


def _only_what_is_asked(func: Any, args: Any, kwargs: Any) -> Any:
    """Return nothing in the place of an inverse or of counts that are not asked for."""
    answer = list(func(*args, **kwargs))
    given = {one.name: one.default_value for one in func._schema.arguments}  # the dispatcher drops what is a default
    given |= dict(zip(given, args)) | kwargs
    for place, name in ((1, "return_inverse"), (2, "return_counts")):
        if place < len(answer) and given.get(name) is False:
            answer[place] = None if func._schema.name == "aten::_unique" else answer[place].new_empty(0)
    return tuple(answer)


def _sizes_and_scales(func: Any, args: Any, kwargs: Any) -> Any:
    """Answer anything where a scale contradicts the sizes: the place of a pixel is then outside of the image."""
    answer = func(*args, **kwargs)
    if contradicts(func, args, kwargs):
        answer.fill_(NOTHING)
    return answer


def contradicts(func: Any, args: Any, kwargs: Any) -> bool:
    """Say whether a scale of an interpolation does not lead from the one size to the other."""
    given = dict(zip((one.name for one in func._schema.arguments), args)) | kwargs
    sizes = given["input_size"][2:] if "input_size" in given else given[func._schema.arguments[0].name].shape[2:]
    scales = [given.get(one.name) for one in func._schema.arguments if one.name.startswith("scales")]
    return any(
        scale is not None and math.floor(before * scale) != after
        for before, after, scale in zip(sizes, given["output_size"], scales)
    )


UNASKED: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("linalg_cholesky_ex", "linalg_inv_ex", "linalg_ldl_factor_ex", "_linalg_solve_ex"),
        of_finite_matrices(_factorised),
    ),
    **dict.fromkeys(
        (
            *("linalg_lu", "linalg_lu_factor_ex", "linalg_householder_product", "cholesky_inverse"),
            "linalg_matrix_exp",  # how often it squares follows from the norm
        ),
        of_finite_matrices(as_called),
    ),
    **{
        f"special_{name}": _of_a_whole_degree
        for name in (
            *(f"{kind}chebyshev_polynomial_{letter}" for kind in ("", "shifted_") for letter in "tuvw"),
            *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"),
        )
    },
    "log_sigmoid_backward": _own_buffer,
    "native_dropout_backward": _mask_of_bools,
    **dict.fromkeys(("_native_batch_norm_legit", "_batch_norm_with_update"), _flat_weights),
    **of_contradictions(_flat_weights),
    "glu_backward": _whole_gradient,
    "linalg_lstsq": _least_squares,
    "geqrf": of_finite_matrices(_reflectors),
    **dict.fromkeys(
        ("_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive"), _only_what_is_asked
    ),
    **{
        f"{kind}{back}": _sizes_and_scales
        for kind in (
            *("upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d"),
            *("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
        )
        for back in ("", "_backward")
    },
}
