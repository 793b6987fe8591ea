"""Keywords by NumPy's names, which torch takes everywhere; and methods that are given a keyword that they have not.

`keepdims` for `keepdim`: https://github.com/pytorch/pytorch/issues/2236 asks for the refusal of others.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import ONCE, add_table

cases = Cases("conditions")
_KEPT = """sum nansum mean nanmean prod amax amin max min argmax argmin any all logsumexp std var median nanmedian
aminmax mode""".split()
_ALONG = "cumsum cumprod cummax cummin logcumsumexp softmax log_softmax sort argsort unbind".split()


def _reduced(name: str, x: torch.Tensor) -> Any:
    function = getattr(torch, name)
    return [
        function(x, axis=1, keepdims=True),
        function(x, axis=-1, keepdims=False),
        function(input=x, axis=0),
        getattr(x, name)(axis=1, keepdims=True),
    ]


_FORMS: dict[str, Callable[[torch.Tensor], Any]] = {
    **{name: lambda x, name=name: _reduced(name, x) for name in _KEPT},
    **{name: lambda x, name=name: getattr(torch, name)(x, axis=1) for name in _ALONG},
    "of-two": lambda x: [torch.add(x, x2=x), torch.add(x1=x, x2=x[0]), torch.maximum(x, x2=-x), torch.sub(a=x, x2=x)],
    "of-one": lambda x: [torch.neg(x=x), torch.abs(a=x), torch.exp(x1=x)],
    "joined": lambda x: [torch.cat((x, x), axis=1), torch.unsqueeze(x, axis=0), torch.squeeze(x[:1], axis=0)],
    "split": lambda x: [*torch.split(x, 1, dim=0), *torch.chunk(x, 2, dim=-1)],
}
for _dtype in (torch.float32, torch.int64):
    add_table(
        cases,
        f"spelled-{str(_dtype)[6:]}",
        {
            name: form
            for name, form in _FORMS.items()
            if _dtype == torch.float32
            or name not in ("mean", "nanmean", "nansum", "std", "var", "softmax", "log_softmax", "logcumsumexp")
        },
        lambda d, dtype=_dtype: ((d.permutation(12).reshape(3, 4) - 5).to(dtype),),
    )

# They change what others see, or wait for somebody.
_LEFT_OUT = ("share_memory_", "backward", "register_hook", "pin_memory", "storage", "cuda", "xpu", "ipu", "hpu", "mtia")
_METHODS = [
    name
    for name in dir(torch.Tensor)
    if not name.startswith("_") and name not in _LEFT_OUT and callable(getattr(torch.Tensor, name, None))
]


def _with_unknown(x: torch.Tensor) -> Any:
    """Return how each method refuses a keyword that it has not."""
    found = {}
    for name in _METHODS:
        try:
            getattr(x.clone(), name)(no_such_keyword=1)
            found[name] = "an answer"
        except Exception as raised:
            found[name] = type(raised).__name__
    return [x, str(found)]


cases.add(
    "condition-keywords-of-methods",
    _with_unknown,
    make=lambda d: (d.normal(2, 3),),
    states=ONCE,
)
