"""Recorders around a run: which overloads it dispatches, which functions it calls, which graphs it needs."""

from __future__ import annotations

from typing import Any, Iterator

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Copies and fills: MPS has kernels for them, and compiles no graph.
_WITHOUT_A_GRAPH = frozenset(
    {"_to_copy", "copy", "clone", "detach", "alias", "empty", "empty_like", "empty_strided", "new_empty", "set"}
    | {"new_empty_strided", "zeros", "zeros_like", "zero", "fill", "full", "ones", "ones_like", "new_zeros", "new_ones"}
    | {"resize", "_local_scalar_dense", "lift_fresh", "_reshape_copy"}
)


class Dispatched(TorchDispatchMode):
    """Collects the overloads that are dispatched, and the keys of graphs: operator, dtypes, shapes, layouts, options.

    Views and copies make no graph.
    """

    def __init__(self) -> None:
        super().__init__()
        self.overloads: set[str] = set()
        self.keys: set[Any] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.overloads.add(str(func))
        answer = func(*args, **(kwargs or {}))
        schema = func._schema
        name = schema.name.split("::")[1].rstrip("_")
        is_view = any(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns)
        if not is_view and name not in _WITHOUT_A_GRAPH:
            self.keys.add((func, *_facts((args, list((kwargs or {}).values())))))
        return answer


def _facts(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value.dtype, tuple(value.shape), value.is_contiguous()
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _facts(one)
    else:
        yield str(value)


class Called(TorchFunctionMode):
    """Collects the public functions that are called, properties too."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: set[Any] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.functions.add(func)
        return func(*args, **(kwargs or {}))
