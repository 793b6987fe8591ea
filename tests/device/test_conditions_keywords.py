"""Functions that make tensors, with each keyword that they have; and with what they have not, which is a TypeError."""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.answers import attempt
from device_suite.refusals import add_refused

cases = Cases("conditions")

# Each with what it is given; x has a shape of (2, 3).
_MADE: dict[str, Callable[[torch.Tensor], tuple[Any, ...]]] = {
    "tensor": lambda x: ([[1, 2], [3, 0]],),
    "as_tensor": lambda x: ([1.5, 2],),
    "zeros": lambda x: ((2, 3),),
    "zeros-sizes": lambda x: (2, 3),
    "ones": lambda x: ((2, 3),),
    "ones-none": lambda x: ((0, 3),),
    "full": lambda x: ((2, 3), 2),
    "arange": lambda x: (5,),
    "arange-step": lambda x: (1, 8, 2),
    "linspace": lambda x: (0, 4, 5),
    "logspace": lambda x: (0, 3, 4, 2),
    "eye": lambda x: (3, 2),
    "scalar_tensor": lambda x: (3,),
    "tril_indices": lambda x: (3, 2),
    "triu_indices": lambda x: (2, 3, 1),
    "hann_window": lambda x: (5,),
    "hamming_window": lambda x: (5, False),
    "blackman_window": lambda x: (4,),
    "bartlett_window": lambda x: (5,),
    "kaiser_window": lambda x: (4, True, 2.0),
    "fftfreq": lambda x: (4,),
    "rfftfreq": lambda x: (4, 0.5),
}
_RANDOM: dict[str, Any] = {
    "empty": lambda x: ((2, 3),),
    "empty_strided": lambda x: ((2, 3), (1, 2)),
    "rand": lambda x: ((2, 3),),
    "randn": lambda x: (2, 3),
    "randint": lambda x: (2, 5, (2, 3)),
    "randperm": lambda x: (6,),
    "normal": lambda x: (0.0, 1.0, (2, 3)),
}
# Of a tensor: the device is its own.
_OF: dict[str, Any] = {
    "zeros_like": lambda x: (x,),
    "ones_like": lambda x: (x,),
    "full_like": lambda x: (x, 2),
    "new_zeros": lambda x: (x, (2, 2)),
    "new_ones": lambda x: (x, 2, 2),
    "new_full": lambda x: (x, (3,), 2),
    "new_tensor": lambda x: (x, [1, 2]),
}
_OF_RANDOM: dict[str, Any] = {
    "empty_like": lambda x: (x,),
    "new_empty": lambda x: (x, (2, 2)),
    "rand_like": lambda x: (x,),
    "randn_like": lambda x: (x,),
    "randint_like": lambda x: (x, 2, 5),
}
_ALL = {**_MADE, **_RANDOM, **_OF, **_OF_RANDOM}
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "float32": {"dtype": torch.float32},
    "float16": {"dtype": torch.float16},
    "int64": {"dtype": torch.int64},
    "int8": {"dtype": torch.int8},
    "bool": {"dtype": torch.bool},
    "complex64": {"dtype": torch.complex64},
    "kind": {"dtype": float},
    "none": {"dtype": None},
    "wanted": {"dtype": torch.float32, "requires_grad": True},
    "not-wanted": {"requires_grad": False},
    "layout": {"layout": torch.strided},
    "not-pinned": {"pin_memory": False},
    "laid": {"memory_format": torch.preserve_format},
    "laid-dense": {"memory_format": torch.contiguous_format},
    "copied": {"copy": True},
}


def _function(name: str) -> Any:
    """Return a function by its name, each time anew."""
    name = name.split("-", maxsplit=1)[0]
    owner: Any = torch.Tensor if name.startswith("new_") else torch.fft if name.endswith("fftfreq") else torch
    return getattr(owner, name)


def _called(run: Any, name: str, x: torch.Tensor, own: dict[str, Any], arguments: dict[str, Any]) -> Any:
    if isinstance(arguments.get("dtype"), torch.dtype):
        arguments = {**arguments, "dtype": run.cast(arguments["dtype"])}
    y = _function(name)(*_ALL[name](x), **own, **arguments)
    return y, str((tuple(y.shape), y.stride(), y.requires_grad, y.is_leaf, y.layout, y.device == x.device))


def _asked(run: Any, x: torch.Tensor) -> Any:
    answers = {}
    for name in _ALL:
        own = {} if name in _OF or name in _OF_RANDOM else {"device": x.device}
        free = name in _RANDOM or name in _OF_RANDOM
        for way, arguments in _ARGUMENTS.items():

            def answer(name: str = name, own: Any = own, arguments: Any = arguments, free: bool = free) -> Any:
                y, form = _called(run, name, x, own, arguments)
                return [torch.zeros_like(y) if free else y * 1, form]

            answers[f"{name}-{way}"] = attempt(answer)
    return answers


cases.add(
    "condition-keywords",
    _asked,
    make=lambda d: (d.normal(2, 3),),
    states=("fresh",),
    floor=1.0,
    may_be_missing=True,
    since="2.0",
)

# What none of them has, or has of another kind.
_WRONG: dict[str, dict[str, Any]] = {
    "unknown": {"dpype": torch.float16},
    "unknown-device": {"devise": "cpu"},
    "unknown-gradient": {"require_grad": True},
    "dtype-text": {"dtype": "float32"},
    "dtype-number": {"dtype": 1},
    "device-number": {"device": 1.5},
    "device-unknown": {"device": "no_such_device"},
    "device-place": {"device": "cpu:x"},
    "layout-text": {"layout": "strided"},
    "gradient-text": {"requires_grad": "yes"},
    "gradient-of-integers": {"dtype": torch.int64, "requires_grad": True},
    "pinned-text": {"pin_memory": "no"},
    "format-text": {"memory_format": "contiguous"},
    "out-list": {"out": [1.0]},
    "generator-number": {"generator": 3},
    "size-twice": {"size": (2, 3), "shape": (2, 3)},
}


def _wrong(name: str, x: torch.Tensor, arguments: dict[str, Any]) -> Any:
    own = name in _OF or name in _OF_RANDOM or "device" in arguments
    return _function(name)(*_ALL[name](x), **({} if own else {"device": x.device}), **arguments)


for _way, _arguments in _WRONG.items():
    add_refused(
        cases,
        f"keyword-{_way}",
        lambda d: (d.normal(2, 3),),
        {name: lambda x, name=name, arguments=_arguments: _wrong(name, x, arguments) for name in _ALL},
    )
