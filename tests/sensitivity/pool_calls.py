"""One call of each overload that upstream's samples reach, beside those of the suite's cases, for `wider.json`.

Overloads that are made of others are among them (a dispatcher takes them apart where gradients are recorded, not in
inference mode), and kernels that MPS has not yet: a later release may have them.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, Iterator

import torch

from conditions import Conditions, Facts
from conditions_reach import name_of
from device_suite.opinfo import load_op_db
from device_suite.opinfo_samples import tensors_in
from device_suite.overloads.described import Drawn, overload, tensor_text, texts
from generic_plants import UNDEFINED
from overload_calls import is_drawn
from rule_samples import sample_of

SEEDS = Path(__file__).parent / "pool_seeds.json"
_DTYPES = (torch.float32, torch.int64, torch.complex64)
_SAMPLES, _ELEMENTS = 12, 2_000
# Not this suite's: other layouts and numbers, other libraries' kernels, the inside of autograd and of compilers.
_NOT_OURS = (
    "sparse",
    "quantiz",
    "fake_quant",
    "mkldnn",
    "cudnn",
    "miopen",
    "nested",
    "jagged",
    "fbgemm",
    "_test_",
    "_cufft",
    "_crow_",
)
_INSIDE = frozenset(
    (
        *("coalesce", "crow_indices", "col_indices", "ccol_indices", "row_indices", "indices", "values", "_indices"),
        *("_values", "_nnz", "_make_dual", "_fw_primal", "_backward", "item", "_local_scalar_dense", "_version"),
        *("is_coalesced", "_is_zerotensor", "is_pinned", "data", "output_nr", "is_same_size", "_use_cudnn_ctc_loss"),
        *("_has_compatible_shallow_copy_type", "can_cast", "result_type", "promote_types", "_dimI", "_dimV"),
    )
)


class _Whole(Conditions):
    """Records calls before they are taken apart, and those that they are made of."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        met = self._met(func, args, kwargs) if func.namespace == "aten" else None
        answer = NotImplemented
        if func.namespace == "aten":
            with self:
                answer = func.decompose(*args, **kwargs)
        if answer is NotImplemented:
            answer = func(*args, **kwargs)
        if met is not None:
            self._take(func, *met)
        return answer


def pool(known: set[str]) -> dict[str, Any]:
    """Return a described call of each overload that is not known yet, by name; and every call of the seeds."""
    whole, derived = _Whole(), Conditions()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in load_op_db():
            for dtype in _DTYPES:
                if dtype in op.dtypes:
                    _record(op, dtype, whole, derived)
    facts: dict[Any, Facts] = {**derived.facts, **whole.facts}
    found = {name_of(func): sample_of(func, one) for func, one in facts.items() if is_asked(func)}
    calls = {name: [call] for name, call in found.items() if name not in known and call is not None}
    calls.update(json.loads(SEEDS.read_text(encoding="utf-8")))
    asked = {name: [one for one in each if answers(name, one)] for name, each in sorted(calls.items())}
    return {name: each for name, each in asked.items() if each}


def with_outs(known: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return calls of overloads with `out=`, as their operators are called: those that have none, or fewer tensors."""
    found = {}
    for name, calls in known.items():
        func = overload(name)
        packet = getattr(torch.ops.aten, name.partition(".")[0])
        for other in (getattr(packet, one) for one in packet.overloads()) if func is not None else ():
            if is_asked(func) and not is_drawn(func):
                call = _with_out(func, other, calls[0])
                has = max((len(texts(one)) for one in known.get(name_of(other), ())), default=0)
                if call is not None and len(texts(call)) > has and answers(name_of(other), call):
                    found[name_of(other)] = [call]
    return found


def _with_out(func: Any, other: Any, call: Any) -> Any:
    outs = [one.name for one in other._schema.arguments if one.alias_info is not None and one.kwarg_only]
    rest = [one.name for one in other._schema.arguments if one.name not in outs]
    if not outs or rest != [one.name for one in func._schema.arguments]:
        return None
    try:
        drawn = Drawn(call, 0)
        args, kwargs = drawn.arguments(drawn.bases, torch.device("cpu"), lambda dtype: dtype)
        answer = func(*args, **kwargs)
    except Exception:
        return None
    answers_of = list(answer) if isinstance(answer, (tuple, list)) else [answer]
    if len(answers_of) != len(outs) or not all(isinstance(one, torch.Tensor) for one in answers_of):
        return None
    laid = {
        key: tensor_text(one.dtype, one.shape, "dense", 0, 0 if one.dtype.is_floating_point else 1)
        for key, one in zip(outs, answers_of)
    }
    return [call[0], {**call[1], **laid}]


def is_asked(func: Any) -> bool:
    """Say whether the pool takes an overload: it writes to nothing, and it is aten's own."""
    name = name_of(func)
    inside = any(part in name for part in _NOT_OURS) or name.split(".")[0] in (*_INSIDE, *UNDEFINED)
    return not inside and not name.startswith("sym_") and not func._schema.is_mutable


def answers(name: str, call: Any) -> bool:
    """Say whether the CPU answers a call with the values that are drawn for it."""
    drawn = Drawn(call, 0)
    try:
        args, kwargs = drawn.arguments(drawn.bases, torch.device("cpu"), lambda dtype: dtype)
        overload(name)(*args, **kwargs)
    except Exception:
        return False
    return True


def _record(op: Any, dtype: torch.dtype, whole: Conditions, derived: Conditions) -> None:
    gradients = bool(op.supports_autograd) and dtype == torch.float32
    for sample in _few(op, dtype, gradients):
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        try:
            with torch.inference_mode(), whole:
                op(*args, **kwargs)
            if gradients:
                with derived:
                    wanted = [one for one in tensors_in(op(*args, **kwargs)) if one.requires_grad]
                    torch.autograd.grad(sum(one.abs().sum() for one in wanted), _leaves(sample), allow_unused=True)
        except Exception:  # a sample that this CPU does not answer
            continue


def _leaves(sample: Any) -> list[torch.Tensor]:
    found = tensors_in((sample.input, sample.args, sample.kwargs))
    return [one for one in found if one.requires_grad]


def _few(op: Any, dtype: torch.dtype, gradients: bool) -> Iterator[Any]:
    count = 0
    try:
        for sample in op.sample_inputs("cpu", dtype, requires_grad=gradients):
            tensors = tensors_in((sample.input, sample.args, sample.kwargs))
            if all(one.layout == torch.strided and 0 < one.numel() <= _ELEMENTS for one in tensors):
                yield sample
                count += 1
            if count == _SAMPLES:
                return
    except Exception:  # samples that need a library
        return
