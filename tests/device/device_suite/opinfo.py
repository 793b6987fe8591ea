"""Upstream's own operator samples, from the installed wheel: which there are, which are left out, and why.

`torch.testing._internal` promises nothing between releases: whatever is missing there leaves cases out, with the
reason; it never lets one pass. Samples, bounds and states are this suite's own (opinfo_run.py).
"""

from __future__ import annotations

import fnmatch
import functools
import importlib
import sys
import warnings
from typing import Any

import torch

from .cases import Case, Cases
from .opinfo_run import ask_operator
from .states import Refused

_RANDOM = "random by design: the device's numbers are not the CPU's"
_UNSET = "its result is whatever the memory held"
_FREE = "the answer is not unique"
_KEPT = "what it keeps for its own backward is each back end's matter; the public function is asked"
_TUNED = "depends on the precision by design (a tolerance in units of eps)"
# Patterns of upstream's names, with the reason. Only float32 asks them all; a pattern must not hide a neighbour.
LEFT_OUT = {
    **dict.fromkeys(
        (
            *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "normal.*"),
            *("rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "uniform"),
            *("nn.functional.*dropout*", "nn.functional.rrelu", "nn.functional.fractional_max_pool*d"),
            *("nn.functional.gumbel_softmax", "svd_lowrank", "pca_lowrank", "torch.ops.aten.*dropout*"),
        ),
        _RANDOM,
    ),
    **dict.fromkeys(("empty*", "new_empty*", "resize_", "resize_as_"), _UNSET),
    **dict.fromkeys(("linalg.eig", "ormqr", "geqrf", "linalg.householder_product", "symeig", "eig"), _FREE),
    **dict.fromkeys(("linalg.matrix_rank*", "matrix_rank"), _TUNED),
    **dict.fromkeys(
        ("*native_batch_norm*", "_batch_norm_with_update", "native_layer_norm", "native_group_norm"), _KEPT
    ),
    "jiterator*": "compiles CUDA code at run time",
    "*sparse*": "sparse layouts are no part of this suite",
    "item": "the host's number, not the device's tensor",
}

# Where values repeat, which of the equal ones comes first is open; in float32 they do not repeat.
TIES = ("argsort", "sort", "msort", "topk", "kthvalue", "mode", "*median*", "cummax", "cummin")


class Unavailable(Exception):
    """Upstream's samples cannot be had here; the message says why."""


@functools.lru_cache(maxsize=None)
def load_op_db() -> tuple[Any, ...]:
    """Return upstream's OpInfos; raise Unavailable where this torch or this Python has none."""
    arguments, sys.argv = sys.argv, sys.argv[:1]  # common_utils reads the command line as its own
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            upstream: Any = importlib.import_module("torch.testing._internal.common_methods_invocations")
            return tuple(upstream.op_db)
    except Exception as raised:  # numpy or expecttest missing, or anything that a private module may do
        raise Unavailable(f"no upstream samples: {type(raised).__name__}: {raised}") from raised
    finally:
        sys.argv = arguments


def name_of(op: Any) -> str:
    """Return an OpInfo's name with its variant: `norm.fro`."""
    variant = getattr(op, "variant_test_name", "")
    return f"{op.name}.{variant}" if variant else str(op.name)


def why_left_out(name: str, dtype: torch.dtype) -> str | None:
    """Return the reason why an operator is not asked, or None.

    >>> why_left_out("nn.functional.dropout2d", torch.float32)
    "random by design: the device's numbers are not the CPU's"
    """
    if dtype != torch.float32 and any(fnmatch.fnmatchcase(name, pattern) for pattern in TIES):
        return "values repeat in this dtype, and the order of equal ones is open"
    return next((reason for pattern, reason in LEFT_OUT.items() if fnmatch.fnmatchcase(name, pattern)), None)


class Sweep(Cases):
    """The cases of one dtype: `opinfo-<operator>-<dtype>`; listed only with --full: listing imports upstream's tests.

    Without --full, and where upstream's samples cannot be had, it is one case that is skipped with the reason.
    """

    def __init__(self, dtype: torch.dtype, *, samples: int) -> None:
        super().__init__("opinfo")
        self._dtype, self._samples = dtype, samples
        self._short = str(dtype)[len("torch.") :]
        self._missing = "only with --full"
        self.add(f"opinfo-{self._short}", lambda bench: _skip(self._missing), check=True, full=True)

    def listed(self, *, full: bool) -> list[Case]:
        """Return a case for each operator that has samples of the dtype."""
        if not full:
            return list(self)
        found = Cases("opinfo")
        try:
            for op in load_op_db():
                if self._dtype in op.supported_dtypes("cpu"):
                    self._add_operator(found, op)
        except Unavailable as why:
            self._missing = str(why)
            return list(self)
        except Exception as raised:  # a private interface that is another one in this release
            self._missing = f"upstream's samples are of an unknown form: {type(raised).__name__}: {raised}"
            return list(self)
        return list(found)

    def _add_operator(self, found: Cases, op: Any) -> None:
        case_id = f"opinfo-{name_of(op)}-{self._short}"
        reason = why_left_out(name_of(op), self._dtype)
        if reason is not None:
            found.add(case_id, lambda bench: _skip(reason), check=True, full=True)
            return
        found.add(
            case_id,
            lambda bench: ask_operator(case_id, op, self._dtype, self._samples, bench),
            check=True,
            full=True,
            limit_seconds=180.0,
        )


def _skip(reason: str) -> None:
    raise Refused(reason)
