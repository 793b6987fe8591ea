"""What is read of a tensor without elements, its views, lists of no tensor and of one, quotients of nothing by nothing.

Each answers or is refused, and ends no process: https://github.com/pytorch/pytorch/issues/145072,
https://github.com/pytorch/pytorch/issues/41817, https://github.com/pytorch/pytorch/issues/113037
"""

from __future__ import annotations

import operator
import warnings
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[[torch.Tensor], Any]

# x of (4, 5): a vector, rows, columns, all cut from it or made.
_EMPTY: dict[str, Form] = {
    "vector": lambda x: x[0, :0],
    "vector-last": lambda x: x[3, 5:],
    "vector-made": lambda x: torch.empty(0, dtype=x.dtype, device=x.device),
    "no-rows": lambda x: x[:0],
    "no-columns": lambda x: x[:, 2:2],
}
_PYTHON: dict[str, Callable[[Any], Any]] = {
    **{kind.__name__: kind for kind in (int, float, bool, complex, list, len, tuple)},
    "index": operator.index,
    "not": operator.not_,
    "contains": lambda e: 1 in e,
}
_METHODS = (
    "item tolist nonzero max min aminmax argmax argmin mean median nanmedian mode sum prod nansum norm any all"
    " amax amin logsumexp count_nonzero unique unique_consecutive argsort sort msort isfinite flatten ravel t"
    " clone contiguous numel dim size stride squeeze trace diag diag_embed diagflat tril triu conj abs"
)
# (method, arguments): the first dimension, the last one, none of them.
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "narrow": ((0, 0, 0), (-1, 0, 0), (0, 0, 1), (0, 1, 0)),
    "select": ((0, 0), (-1, 0), (0, -1)),
    "unbind": ((0,), (-1,)),
    "split": ((2,), (2, -1), (0,), ([0],)),
    "chunk": ((3,), (3, -1)),
    "tensor_split": ((3,), (3, -1), ([0, 1],), (0,)),
    "diagonal": ((), (1,), (-7,)),
    "unfold": ((0, 0, 1), (-1, 0, 1), (0, 1, 1)),
    "as_strided": (((0,), (1,)), ((0, 3), (3, 1)), ((3, 0), (1, 1))),
    "roll": ((1,), (2, 0), (2, -1)),
    "flip": ((0,), (-1,)),
    "repeat": ((2,), (1, 1, 0), (2, 2, 2)),
    "tile": ((2,), ((2, 2),)),
    "repeat_interleave": ((2,), (0,), (3, 0)),
    "expand": ((0,), (3, -1, -1), (4, 0)),
    "view": ((0,), (-1,), (0, -1), (3, 0)),
    "reshape": ((0,), (-1,), (2, 0, 3), (1,)),
    "unsqueeze": ((0,), (-1,)),
    "transpose": ((0, -1),),
    "rot90": ((),),
    **dict.fromkeys(
        "max min argmax sum prod any all cumsum cummax sort median amax logsumexp softmax".split(), ((0,), (-1,))
    ),
    **dict.fromkeys(("topk", "kthvalue"), ((0,), (1,), (0, 0))),
    "quantile": ((0.5,), (0.5, 0)),
}
_READ: dict[str, Callable[[torch.Tensor], Any]] = {
    **_PYTHON,
    **{name: lambda e, name=name: getattr(e, name)() for name in _METHODS.split()},
    **{
        f"{name}-{given}": lambda e, name=name, given=given: getattr(e, name)(*given)
        for name, ways in _ARGUMENTS.items()
        for given in ways
    },
    "narrow-function": lambda e: [torch.narrow(e, 0, 0, 0), torch.narrow_copy(e, 0, 0, 0)],
    "places": lambda e: [e[:0], e[..., None], e[e == e], e.take(e.nonzero()[:, 0]), e.masked_fill(e == 0, 1)],
    "place": lambda e: e[0],
    "iterated": lambda e: [one + 0 for one in e],
}


def _chained(some: Any) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated
        return torch.chain_matmul(*some)


_LISTS: dict[str, Callable[[Any], Any]] = {
    **{
        name: lambda some, name=name: operator.attrgetter(name)(torch)(some)
        for name in "cat stack hstack vstack dstack column_stack row_stack concat linalg.multi_dot".split()
    },
    **{
        name: lambda some, name=name: getattr(torch, name)(*some)
        for name in "block_diag cartesian_prod broadcast_tensors atleast_1d atleast_2d atleast_3d".split()
    },
    "chain_matmul": _chained,
    "cat-last": lambda some: torch.cat(some, -1),
    "stack-last": lambda some: torch.stack(some, -1),
    "meshgrid": lambda some: torch.meshgrid(*some, indexing="ij"),
    "einsum": lambda some: torch.einsum("ij", *some),
    "einsum-none": lambda some: torch.einsum("", *some),
    "tensordot": lambda some: torch.functional.tensordot(*some, dims=0),
    "pad_sequence": lambda some: torch.nn.utils.rnn.pad_sequence(some),
    "pack_sequence": lambda some: torch.nn.utils.rnn.pack_sequence(some).data,
    "parameters": lambda some: torch.nn.utils.parameters_to_vector(some),
    "combinations": lambda some: torch.combinations(*some),
    "where": lambda some: torch.where(*some),
    **{
        f"foreach-{name}": lambda some, name=name: getattr(torch, f"_foreach_{name}")(some)
        for name in "neg abs sqrt exp norm".split()
    },
    "foreach-add": lambda some: [*torch._foreach_add(some, 1.0), *torch._foreach_add(some, some)],
    "foreach-mul": lambda some: [*torch._foreach_mul(some, some), *torch._foreach_mul(some, [2.0] * len(some))],
    "foreach-zero": lambda some: torch._foreach_zero_([one.clone() for one in some]),
}
_GIVEN: dict[str, Callable[[torch.Tensor], Any]] = {
    "none": lambda x: [],
    "matrix": lambda x: [x],
    "vector": lambda x: [x[0]],
    "number": lambda x: [x[0, 0]],
    "empty-vector": lambda x: [x[0, :0]],
    "empty-matrix": lambda x: [x[:, :0]],
}


def _read(empties: Any) -> dict[str, Form]:
    return {
        f"{place}-{name}": lambda x, form=form, empty=empty: form(empty(x))
        for place, empty in _EMPTY.items()
        for name, form in _READ.items()
        if place in empties
    }


# Below what checks the number of elements: this one ends no process, whether it answers or not.
_BELOW: dict[str, Form] = {
    "number": lambda x: torch.ops.aten._local_scalar_dense(x[1, 2]),
    **{
        f"{place}-local": lambda x, empty=empty: torch.ops.aten._local_scalar_dense(empty(x))
        for place, empty in _EMPTY.items()
    },
}
_TABLES = {
    "read": _read(_EMPTY),
    "listed": {
        f"{given}-{name}": lambda x, form=form, some=some: form(some(x))
        for given, some in _GIVEN.items()
        for name, form in _LISTS.items()
        if (given, name) != ("none", "block_diag")  # what is made of no tensor lies on the host
    },
}
_SOME = {**_TABLES, "read": _read(("vector", "no-columns"))}
for _dtype in (torch.float32, torch.float16, torch.int64, torch.bool):
    for _name, _forms in (_TABLES if _dtype == torch.float32 else _SOME).items():
        _case = f"nothing-{_name}-{str(_dtype)[6:]}"
        add_table(cases, _case, _forms, lambda d, dtype=_dtype: (d.of(dtype, 4, 5),))
        if _dtype in (torch.float32, torch.int64):
            add_refused(cases, _case, lambda d, dtype=_dtype: (d.of(dtype, 4, 5),), _forms)

for _dtype in (torch.float32, torch.int64):
    _case = f"nothing-below-{str(_dtype)[6:]}"
    # With 2.6.0 it ends the process on the CPU too: https://github.com/pytorch/pytorch/issues/145072
    add_table(cases, _case, _BELOW, lambda d, dtype=_dtype: (d.of(dtype, 4, 5),), since="2.13")

_DIVIDED: dict[str, Callable[..., torch.Tensor]] = {
    **{
        f"{mode}": lambda x, y, mode=mode, **out: torch.div(x, y, rounding_mode=mode, **out)
        for mode in (None, "floor", "trunc")
    },
    **{
        name: lambda x, y, name=name, **out: getattr(torch, name)(x, y, **out)
        for name in ("fmod", "remainder", "floor_divide", "true_divide")
    },
}
_QUOTIENTS: dict[str, Callable[..., Any]] = {
    "answered": lambda form, x, y: form(x, y),
    "turned": lambda form, x, y: form(y, x),
    "written": lambda form, x, y: form(x, y, out=torch.empty_like(x)),
    "number": lambda form, x, y: form(x, 2),
}
_PAIRS: dict[str, Any] = {
    "vectors": lambda x: (x[0, :0], x[1, 5:]),
    "rows": lambda x: (x[:0], x[4:]),
    "columns": lambda x: (x[:, :0], x[:, 5:]),
    "spread": lambda x: (x[:, :0], x[:1, :1]),
    "number": lambda x: (x[:0], x[1, 1]),
}
for _dtype in (torch.float32, *HALVES, torch.int32, torch.int64, torch.uint8, torch.int8, torch.bool):
    add_table(
        cases,
        f"nothing-divided-{str(_dtype)[6:]}",
        {
            f"{name}-{use}-{pair}": lambda x, form=form, act=act, two=two: act(form, *two(x))
            for name, form in _DIVIDED.items()
            for use, act in _QUOTIENTS.items()
            for pair, two in _PAIRS.items()
        },
        lambda d, dtype=_dtype: (d.of(dtype, 4, 5),),
    )
