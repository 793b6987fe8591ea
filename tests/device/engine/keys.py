"""Graph keys: what a back end compiles anew, since operator, dtypes, shapes, layout or options are others."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, ContextManager, Iterator

import torch

try:
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError:  # torch 1.12 has another interface: nothing is watched there
    TorchDispatchMode = None  # type: ignore[assignment,misc]

# Copies and fills: MPS has kernels for them, and compiles no graph.
_WITHOUT_A_GRAPH = frozenset(
    {"_to_copy", "copy", "clone", "detach", "alias", "empty", "empty_like", "empty_strided", "new_empty", "set"}
    | {"new_empty_strided", "zeros", "zeros_like", "zero", "fill", "full", "ones", "ones_like", "new_zeros", "new_ones"}
    | {"resize", "_local_scalar_dense", "lift_fresh", "_reshape_copy", "scalar_tensor", "_efficientzerotensor"}
    # Questions about a tensor, and marks of the profiler.
    | {"is_pinned", "is_set_to", "is_same_size", "_has_same_storage_numel", "_assert_async", "_linalg_check_errors"}
    | {"_record_function_enter_new", "_record_function_exit", "_nnz", "is_coalesced"}
)


def key_of(case: Any, call: Any) -> Any:
    """Return what tells the graphs of one call from those of another: all of its levels but the values."""
    levels = call.levels
    shape = call.row.shape(call.operator)
    named = tuple((name, str(one)) for name, one in levels.items() if name not in ("@values", "@size", "@shape"))
    return case.operator, case.transformation, shape, named


class Dispatched:
    """Collects what is dispatched while a context of `watching` is open.

    Attributes:
        operators: the overloads, such as `aten.add.Tensor`.
        keys: (operator, dtypes, shapes, layouts, options) of what compiles a graph; views make none, and in place or
            with out= a call compiles that of the plain one.
    """

    def __init__(self) -> None:
        self.operators: set[str] = set()
        self.keys: set[Any] = set()

    def watching(self) -> ContextManager[Any]:
        """Return a context in which all that is dispatched is collected."""
        if TorchDispatchMode is None:
            return contextlib.nullcontext()
        found = self

        class Mode(TorchDispatchMode):
            @classmethod
            def _should_skip_dynamo(cls) -> bool:
                return False  # else the first call imports all of torch.compile: 5 s of each process of --quick

            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                answer = func(*args, **(kwargs or {}))
                found.take(func, args, kwargs or {})
                return answer

        return Mode()

    def take(self, func: Any, args: Any, kwargs: Any) -> None:
        """Take in one call."""
        self.operators.add(str(func))
        name = func._schema.name.split("::")[1].rstrip("_")
        is_view = any(one.alias_info is not None and not one.alias_info.is_write for one in func._schema.returns)
        if not is_view and name not in _WITHOUT_A_GRAPH:
            read = [kwargs[one] for one in kwargs if one not in _outs(func)]
            self.keys.add((name, *_facts((args, read))))


@functools.lru_cache(maxsize=None)
def _outs(func: Any) -> frozenset[str]:
    """Return the names of the arguments that an overload only writes to."""
    return frozenset(
        one.name
        for one in func._schema.arguments
        if one.kwarg_only and one.alias_info is not None and one.alias_info.is_write
    )


def _facts(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value.dtype, tuple(value.shape), value.layout == torch.strided and value.is_contiguous()
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _facts(one)
    else:
        yield str(value)
