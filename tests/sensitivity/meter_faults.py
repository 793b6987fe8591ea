"""Faults of a meter and of what it measures, for `benchmark_mps --inject` and for test_meter.py. HITS counts them."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode

HITS = {"NoSynchronise": 0, "heating": 0, "WrongMatmul": 0, "WrongLater": 0, "SkippedWork": 0, "NoMemory": 0}
_KERNELS = ("aten.mm.default", "aten.bmm.default", "aten.convolution.default", "aten.native_layer_norm.default")

_results: dict[Any, Any] = {}
_calls = {"runs": 0, "mm": 0}


class _Cached(TorchDispatchMode):
    """Gives a kernel's result of the first call again, at once; `debt` is the time that it then did not take."""

    name = ""

    def __init__(self) -> None:
        super().__init__()
        self.debt = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func)
        if name == "aten._local_scalar_dense.default":
            self.read()
        if name not in _KERNELS or (kwargs or {}):
            return func(*args, **(kwargs or {}))
        key = (name, *((arg.data_ptr(), tuple(arg.shape), arg.stride()) for arg in args if torch.is_tensor(arg)))
        if key not in _results:
            began = time.perf_counter()
            result = func(*args)
            _results[key] = (result, time.perf_counter() - began)
            return result
        HITS[self.name] += 1
        result, seconds = _results[key]
        self.debt += seconds
        return result

    def read(self) -> None:
        """Do what reading a number makes necessary."""


class NoSynchronise(_Cached):
    """A device that works behind our back, and a synchronise that does not wait: reading a number does."""

    name = "NoSynchronise"

    def read(self) -> None:
        debt, self.debt = self.debt, 0.0
        time.sleep(debt)


class SkippedWork(_Cached):
    """A device that never does the work again: the results are right, and far too soon."""

    name = "SkippedWork"


@contextlib.contextmanager
def heating() -> Iterator[None]:
    """A device that becomes slower with every piece of work."""
    _calls["runs"] += 1

    class Slower(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if str(func) not in _KERNELS:
                return func(*args, **(kwargs or {}))
            HITS["heating"] += 1
            began = time.perf_counter()
            result = func(*args, **(kwargs or {}))
            time.sleep((time.perf_counter() - began) * 0.12 * _calls["runs"])
            return result

    with Slower():
        yield


class WrongMatmul(TorchDispatchMode):
    """A matrix product that is 1 % too large."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if str(func) in ("aten.mm.default", "aten.addmm.default", "aten.bmm.default"):
            HITS["WrongMatmul"] += 1
            return result * 1.01
        return result


class WrongLater(TorchDispatchMode):
    """A matrix product that is right until it has been computed often."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if str(func) == "aten.mm.default":
            _calls["mm"] += 1
            if _calls["mm"] > 8:
                HITS["WrongLater"] += 1
                result[0] = 0
        return result


class NoMemory(TorchDispatchMode):
    """A device with room for 100 rows, that says so as MPS does."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(func) == "aten.mm.default" and args[0].shape[0] > 100:
            HITS["NoMemory"] += 1
            raise RuntimeError("MPS backend out of memory (MPS allocated: 8.93 GB, max allowed: 9.07 GB).")
        return func(*args, **(kwargs or {}))


def forget() -> None:
    """Begin as a new process would."""
    _results.clear()
    _calls.update(runs=0, mm=0)
    HITS.update(dict.fromkeys(HITS, 0))
