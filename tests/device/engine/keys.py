"""Graph keys: what a back end compiles anew, since operator, dtypes, shapes, layout or options are others.

`key_of` tells two drawn calls apart before anything runs; `Compiled` counts what the calls of a run dispatched.
"""

from __future__ import annotations

from typing import Any, Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Copies and fills: MPS has kernels for them, and compiles no graph.
_WITHOUT_A_GRAPH = frozenset(
    """_to_copy copy clone detach alias empty empty_like empty_strided new_empty new_empty_strided zeros zeros_like
    zero fill full ones ones_like new_zeros new_ones resize _local_scalar_dense lift_fresh _reshape_copy set""".split()
)


def key_of(case: Any, call: Any) -> Any:
    """Return what tells the graphs of one call from those of another: all of its levels but the values."""
    levels = call.levels
    shape = call.row.shape(call.operator)
    named = tuple((name, str(one)) for name, one in levels.items() if name not in ("@values", "@size", "@shape"))
    return case.operator, case.transformation, shape, named


class Compiled(TorchDispatchMode):
    """Collects the distinct (operator, dtypes, shapes, layouts, options) that are dispatched; views make no graph."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[Any] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
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
