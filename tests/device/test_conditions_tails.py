"""Rule 2: functions of one number where the answer is small or changes fast: each range alone, to two in a thousand.

Beside large answers a wrong small one does not show: softplus below -10 was log(1 + exp(x)) in float32,
https://github.com/openvinotoolkit/openvino/issues/23673
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases

cases = Cases("conditions")

_ENDS = (1e-30, 1e-12, 1e-7, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.3, 0.6, 0.9, 1.1, 1.7, 2.6, 3.7, 5.0, 7.0, 9.0, 11.0, 13.0)
_FAR = (15.0, 17.0, 21.0, 26.0, 33.0, 45.0, 60.0, 80.0)
_ALLOWED = 2e-3
# Of large numbers the rest behind whole turns is all that counts: it is asked elsewhere.
_TURNING = ("sin", "cos", "tan", "sinc")
_BY_NAME = """exp exp2 expm1 sigmoid tanh sinh cosh asinh atan erf erfc sin cos tan sinc log1p log log2 log10 sqrt rsqrt
reciprocal square lgamma digamma acos asin atanh acosh erfinv logit""".split()
_FORMS: dict[str, Any] = {
    **{name: getattr(torch, name) for name in _BY_NAME},
    **{
        name: getattr(torch.special, name)
        for name in "erfcx log_ndtr ndtri i0 i0e i1 i1e expit entr bessel_j0 bessel_j1".split()
    },
    **{
        name: getattr(F, name) for name in "softplus logsigmoid silu gelu mish selu elu celu softsign hardswish".split()
    },
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "tanhshrink": F.tanhshrink,
    "pow": lambda x: x.abs().pow(-2.5),
    "power": lambda x: torch.pow(1.25, x),
}
# What loses all digits next to a zero of its own, or between numbers that nearly cancel, in a formula that is right.
_LOSES = {
    "lgamma": (0.9, 1.1, 1.7),
    "digamma": (1.1,),
    "tanhshrink": (1e-30, 1e-12, 1e-7, 1e-5, 1e-4, 1e-3, 0.01),
    "bessel_j0": (2.6, 5.0, 9.0, 11.0, *_FAR),
    "bessel_j1": (3.7, 7.0, 13.0, *_FAR),
    "log": (0.9, 1.1),
    "log2": (0.9, 1.1),
    "log10": (0.9, 1.1),
    "acos": (0.9,),
    "acosh": (1.1,),
    "logit": (0.6,),
    "ndtri": (0.6,),
}


def _lines(name: str) -> dict[str, torch.Tensor]:
    """Return seven numbers from each end on, of both signs, as float32."""
    ends = [one for one in (*_ENDS, *(() if name in _TURNING else _FAR)) if one not in _LOSES.get(name, ())]
    steps = 1 + torch.arange(7, dtype=torch.float64) / 40
    return {f"{sign * end:g}": (sign * end * steps).float() for end in ends for sign in (1, -1)}


def _near(name: str, bench: Any) -> None:
    lines, form = _lines(name), _FORMS[name]
    whole = torch.cat(list(lines.values()))
    with bench.device_run() as run:
        answer = form(run.bring(whole.clone()))
        where, found = answer.device.type, answer.cpu()
    assert where == bench.device.type and found.shape == whole.shape, f"{name}: {tuple(found.shape)} on {where}"
    wanted, own = form(whole.double()).split(7), form(whole).split(7)
    wrong = []
    tiny = torch.finfo(torch.float32).tiny
    for place, (got, want, mine) in zip(lines, zip(found.split(7), wanted, own)):
        # Subnormal answers may be 0; where the CPU in float32 is far off itself, no device is asked for more.
        usual = want.isfinite() & (want.abs() > 4 * tiny) & (want.abs() < 1e37)
        scale = want.abs()[usual]
        allowed = torch.maximum(_ALLOWED * scale, 8 * (mine.double() - want).abs()[usual])
        off = (got.double() - want).abs()[usual]
        if bool((~(off <= allowed)).any()):
            wrong.append(f"at {place}: off by {float((off / scale).max()):.3g} of the answer")
        if not torch.equal(got.isnan(), want.isnan()):
            wrong.append(f"at {place}: NaN at other places")
    assert not wrong, f"{name}: {'; '.join(wrong[:5])}"


for _name in _FORMS:
    cases.add(
        f"condition-tails-{_name}",
        lambda bench, name=_name: _near(name, bench),
        check=True,
        may_be_missing=True,
        since="2.0",
    )
