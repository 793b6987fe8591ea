"""What a healthy device may answer otherwise where operands contradict one another: no public function calls so.

No plants, as in unasked.py. A gradient gets what its forward left; a stored call has values of their own in that place.
Each was met on an NVIDIA GPU, which was right.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

import torch

NOTHING = 77.0
_HALVES = (torch.float16, torch.bfloat16)
# What a normalisation leaves to its gradient.
_STATISTICS = ("mean", "rstd", "save_mean", "save_invstd", "save_var")


def _named(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    given = {one.name: one.default_value for one in func._schema.arguments}  # the dispatcher drops what is a default
    return given | dict(zip(given, args)) | kwargs


def fill(answer: Any) -> Any:
    """Return an answer with nothing of use in any part."""
    for one in answer if isinstance(answer, (tuple, list)) else [answer]:
        if isinstance(one, torch.Tensor):
            one.fill_(NOTHING)
    return answer


def _wide_statistics(func: Any, args: Any, kwargs: Any, *, flat: Any = None) -> Any:
    """Keep the statistics of half precision in float32: each back end keeps them as its own gradient wants them."""
    answer = (flat or as_called)(func, args, kwargs)
    if func._overloadname != "default":  # its caller says the dtype
        return answer
    return (answer[0], *(one.float() if one.dtype in _HALVES else one for one in answer[1:]))


def as_called(func: Any, args: Any, kwargs: Any) -> Any:
    """Return what the call answers."""
    return func(*args, **kwargs)


def _statistics_of_the_batch(func: Any, args: Any, kwargs: Any) -> Any:
    """Take statistics in float32 alone, and none where the running ones are asked for: the forward leaves none then."""
    given = _named(func, args, kwargs)
    saved = [one for one in map(given.get, _STATISTICS) if isinstance(one, torch.Tensor) and one.numel()]
    if any(one.dtype in _HALVES for one in saved):
        raise RuntimeError("statistics in half precision")
    answer = func(*args, **kwargs)
    return fill(answer) if saved and given.get("train", given.get("update")) is False else answer


def _of_the_input_dtype(func: Any, args: Any, kwargs: Any) -> Any:
    """Refuse a gradient that has not the dtype which the call names; float32 beside a half is what autograd gives."""
    given = _named(func, args, kwargs)
    named, found = given["input_dtype"], given["grad_output"].dtype
    if named != found and not (named in _HALVES and found == torch.float32):
        raise RuntimeError(f"a gradient of {found} for {named}")
    return func(*args, **kwargs)


def _weight_of_a_mean(func: Any, args: Any, kwargs: Any) -> Any:
    """Leave the total weight of a loss that is not averaged or summed up: nothing is divided by it."""
    answer = func(*args, **kwargs)
    if func._overloadname == "default" and _named(func, args, kwargs)["reduction"] == 0:
        answer[1].fill_(NOTHING)
    return answer


def _sign_of_nan(func: Any, args: Any, kwargs: Any) -> Any:
    """Take 0 for the sign of NaN, as a GPU does; the CPU takes NaN."""
    is_nan = any(bool(one.isnan().any()) for one in args[1:3])
    answer = func(*args, **kwargs)
    return answer.nan_to_num_(0.0) if is_nan else answer


def _targets_beside_blank(func: Any, args: Any, kwargs: Any) -> Any:
    """Answer anything where a target is the blank: its documentation excludes that."""
    given = _named(func, args, kwargs)
    answer = func(*args, **kwargs)
    return fill(answer) if bool((given["targets"] == given["blank"]).any()) else answer


def of_contradictions(flat_weights: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Return the choices; `flat_weights`: what a batch norm does besides."""
    return {
        "native_layer_norm": _wide_statistics,
        "native_batch_norm": functools.partial(_wide_statistics, flat=flat_weights),
        **dict.fromkeys(
            ("native_batch_norm_backward", "batch_norm_backward", "native_layer_norm_backward"),
            _statistics_of_the_batch,
        ),
        **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), _of_the_input_dtype),
        **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), _weight_of_a_mean),
        "_cdist_backward": _sign_of_nan,
        **dict.fromkeys(("_ctc_loss", "_ctc_loss_backward"), _targets_beside_blank),
    }
