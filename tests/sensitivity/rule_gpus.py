"""What an NVIDIA GPU answered otherwise than the CPU, and was right: no rule asks it of any device.

Met on a GPU (torch 2.11.0) with the operators that are named. What it answered wrongly is asked all the same:
tests/device/known_issues.yaml lists it.
"""

from __future__ import annotations

from typing import Any

from conditions_reach import name_of

_OF_ITS_GRADIENT = "what it answers besides its result is for a back end's own gradient"
_OF_CALLERS = "a part of a public function, which checks its operands"
_STEPS = "a GPU rounds each of its steps in half precision"
# For each rule: operators, and the reason.
_RIGHT: dict[str, dict[str, str]] = {
    "rounding": dict.fromkeys(("sigmoid_backward", "tanh_backward", "smooth_l1_loss_backward"), _STEPS),
    # It reads the size of a dimension that is not there: once it refuses, once it answers.
    "refused": dict.fromkeys(("_fft_c2c", "_fft_c2r", "_fft_r2c"), _OF_CALLERS),
    "options": dict.fromkeys(("native_dropout", "native_channel_shuffle"), _OF_CALLERS),
    "misfits": dict.fromkeys(("native_dropout", "native_channel_shuffle"), _OF_CALLERS),
    "handed": {"linspace": "large whole numbers are rounded on the way"},
}
_SIZES = {
    "_int_mm": "a GPU multiplies multiples of eight alone",
    "_upsample_bicubic2d_aa": "a GPU has not the shared memory",
    "_upsample_bilinear2d_aa": "a GPU has not the shared memory",
    "logcumsumexp": "a complex number has many logarithms",
}
_NUMBERS = {
    "_standard_gamma_grad": "its formula loses all digits there",
    "group_norm": "its mean takes all digits of numbers so alike",
    "native_group_norm": "its mean takes all digits of numbers so alike",
    "special_zeta": "of negative numbers nobody says what it is",
}
_TYPED = {
    "addr": "nobody says in which dtype it computes",
    "max": "a GPU refuses it",
    "min": "a GPU refuses it",
}
_HALVES = {
    **dict.fromkeys(
        ("_fused_rms_norm", "rms_norm"), "in float16 a GPU comes past its end on the way to the second gradient"
    ),
    **dict.fromkeys(("_linalg_slogdet", "_slow_conv2d_forward"), _OF_ITS_GRADIENT),
    "_safe_softmax": _OF_CALLERS,
    "linalg_cholesky_ex": "its matrices have no root",
}
_EMPTIED = {
    "group_norm": "a GPU refuses it",
    "native_channel_shuffle": _OF_CALLERS,
    "log_sigmoid_forward": _OF_ITS_GRADIENT,
    "pixel_unshuffle": "the CPU's answer has another shape than its documentation says",
}
_AMID = dict.fromkeys(("_grouped_mm", "_int_mm"), "a GPU takes aligned memory alone")
_VAST = {
    **dict.fromkeys(("conv2d", "conv3d", "convolution"), "a GPU convolves no whole numbers"),
    "special_zeta": "of negative numbers nobody says what it is",
}
_RIGHT.update(
    amid=_AMID,
    vast=_VAST,
    halves=_HALVES,
    emptied=_EMPTIED,
    sizes=_SIZES,
    numbers=_NUMBERS,
    typed=_TYPED,
    lazy={"linalg_cholesky_ex": "its matrices have no root"},
    stray={"_int_mm": "a GPU multiplies multiples of eight alone"},
)
_BAGS = ("_embedding_bag", "_embedding_bag_forward_only", "embedding_bag")
_BESIDE = (*_BAGS, "_native_batch_norm_legit_no_training", "log_sigmoid_forward")
_OF_OPERANDS = ("sizes", "numbers", "lazy", "wanting", "twice", "halves", "dims", "amid", "vast", "cuts", "stray")
for _rule in ("outs", "typed", "strides", "handed", "again", "deterministic", *_OF_OPERANDS):
    _RIGHT[_rule] = {
        **_RIGHT.get(_rule, {}),
        **dict.fromkeys(_BESIDE, _OF_ITS_GRADIENT),
        "_pack_padded_sequence": "its lengths lie on the host",
    }
for _rule in _OF_OPERANDS:
    _RIGHT[_rule].update(
        multilabel_margin_loss_backward="its operand is what another back end's forward left",
        native_batch_norm_backward="which gradients it gives is said by what wants one",
        _batch_norm_impl_index="it says which library computed",
    )
OPERATORS = frozenset(name for names in _RIGHT.values() for name in names)


def why_right(rule: str, func: Any) -> str:
    """Return why a rule asks nothing of an overload since a GPU met it, or an empty text."""
    return _RIGHT.get(rule, {}).get(name_of(func).partition(".")[0], "")
