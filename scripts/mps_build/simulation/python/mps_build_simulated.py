"""Says to torch, when it is imported, that it has MPS: its bindings were compiled without.

A torch that was built with MPS needs none of it: a variable says where it lies.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_SEED = 67280421310721  # of a new generator: c10::detail::default_rng_seed_val


def _has_mps(module: ModuleType) -> None:
    """Change torch._C."""
    module._has_mps = True  # type: ignore[attr-defined]
    module.has_mps = True  # type: ignore[attr-defined]  # its name before 2.0
    if not hasattr(module, "_mps_compileShader"):
        module._mps_compileShader = _ShaderLibrary  # type: ignore[attr-defined]


def _makes_generators(module: Any) -> None:
    """Change torch, once it is complete: its own modules have the class that its bindings have."""
    if hasattr(module._C, "_mps_get_default_generator"):  # before 2.0 mps draws with the CPU's
        module.Generator = module._C.Generator = _generator_class(module._C, module.Generator)


def _generator_class(module: Any, plain: Any) -> type:
    """Return torch.Generator with one for mps: torch/csrc/Generator.cpp leaves it out where USE_MPS is not set."""

    class OfGenerators(type):
        def __call__(cls, device: Any = "cpu") -> Any:
            if str(device).partition(":")[0] != "mps":
                return plain(device)
            made = module._mps_get_default_generator().clone_state()
            made.manual_seed(_SEED)
            return made

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, plain)

        def __getattr__(cls, name: str) -> Any:
            return getattr(plain, name)

    return OfGenerators("Generator", (), {"__module__": plain.__module__, "__doc__": plain.__doc__})


class _ShaderLibrary:
    """Metal source text, compiled; its kernels are its attributes (torch/csrc/mps/Module.cpp)."""

    def __init__(self, source: str) -> None:
        import torch

        self._library: Any = torch.classes.mps_build_simulated.Library(source)

    def __getattr__(self, name: str) -> _Kernel:
        return _Kernel(self._library.kernel(name))

    def __dir__(self) -> list[str]:
        return list(self._library.names())


class _Kernel:
    """A kernel that can be called with tensors, numbers, and lists of numbers."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def __call__(self, *args: Any, threads: Any = None, group_size: Any = None, arg_casts: Any = None) -> None:
        import torch

        if not (arg_casts is None or isinstance(arg_casts, (str, dict))):
            raise RuntimeError(f"Unexpected caster arg type {type(arg_casts).__name__}")
        given = [
            each if isinstance(each, torch.Tensor) else _as_bytes(each, arg_casts, place)
            for place, each in enumerate(args)
        ]
        lengths, groups = _sizes(threads), _sizes(group_size)
        tensors = [each for each in args if isinstance(each, torch.Tensor)]
        lengths = lengths or [each.numel() for each in tensors[:1]]
        if not lengths:
            raise RuntimeError("Number of threads is undefined or has wrong dimention")
        if groups and len(groups) != len(lengths):
            raise RuntimeError("group_size and threads have different lengths")
        self._kernel.launch(given, [int(not isinstance(each, torch.Tensor)) for each in args], lengths, groups)

    def __getattr__(self, name: str) -> int:
        if name not in ("max_threads_per_threadgroup", "thread_execution_width", "static_thread_group_memory_length"):
            raise AttributeError(name)
        return int(getattr(self._kernel, name)())


def _sizes(given: Any) -> list[int]:
    """Return a number or up to three of them as a list; None is none."""
    if given is None:
        return []
    sizes = [given] if isinstance(given, int) else list(given)
    if not 0 < len(sizes) < 4:
        raise RuntimeError("Number of threads is undefined or has wrong dimention")
    return sizes


def _as_bytes(value: Any, casts: Any, place: int) -> Any:
    """Return a number, or a list of them, as a tensor whose bytes are the argument."""
    import torch

    types: dict[Any, Any] = {name: getattr(torch, name) for name in ("int32", "int16", "int8", "uint8")}
    types |= {"fp16": torch.float16, "bf16": torch.bfloat16}
    numbers = list(value) if isinstance(value, (list, tuple)) else [value]
    if not numbers:
        raise RuntimeError("Empty list/tuple can not be an argument to metal kernel")
    if not isinstance(numbers[0], (int, float)):
        raise RuntimeError("Unsupported argument type")
    cast = casts.get(place) if isinstance(casts, dict) else casts
    if cast and cast not in types:
        raise RuntimeError(f"Unsupported cast instruction {cast}")
    plain = torch.int64 if isinstance(numbers[0], int) else torch.float32
    return torch.tensor(numbers, dtype=plain, device="cpu").to(types.get(cast, plain))


def _stores_on_mps(module: ModuleType) -> None:
    """Change torch.storage: torch/csrc/Storage.cpp leaves the allocator of mps out where USE_MPS is not set."""
    import torch

    storage: Any = module.UntypedStorage

    def make(cls: Any, *args: Any, device: Any = None, **more: Any) -> Any:
        if device is None or torch.device(device).type != "mps" or more:
            return super(storage, cls).__new__(cls, *args, **({} if device is None else {"device": device}), **more)
        size = args[0] if args else 0
        if isinstance(size, int):
            tensor = torch.empty(size, dtype=torch.uint8, device=device)
        else:
            tensor = torch.tensor(list(size), dtype=torch.uint8, device=device)
        return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()

    storage.__new__ = make


_CHANGES: dict[str, Callable[[ModuleType], None]] = {
    "torch": _makes_generators,
    "torch._C": _has_mps,
    "torch.storage": _stores_on_mps,
}


class _Loader:
    """Loads a module as it is, then says what our library adds."""

    def __init__(self, loader: object, change: Callable[[ModuleType], None]) -> None:
        self._loader, self._change = loader, change

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)  # type: ignore[attr-defined]
        self._change(module)


class _Finder:
    """Finds the modules that are changed where they are, for `_Loader`."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        change = _CHANGES.get(name)
        if change is None:
            return None
        found = PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        if found is not None and found.loader is not None:
            found.loader = _Loader(found.loader, change)  # type: ignore[assignment]
        return found


if "MPS_BUILD_MODULES" in os.environ:  # simulation/libraries.py
    sys.path.append(os.environ["MPS_BUILD_MODULES"])
if "MPS_BUILD_AS_MAC" in os.environ:
    __import__("mps_build.as_mac")
if "MPS_BUILD_TORCH" in os.environ:
    sys.path.append(os.environ["MPS_BUILD_TORCH"])
else:
    sys.meta_path.insert(0, _Finder)
