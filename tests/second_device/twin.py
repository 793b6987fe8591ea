"""A second device on host memory, `twin`, built from device.cpp by torch's own tools: once per torch, some 45 s of CPU.

It needs a C++ compiler, ninja and Python's headers; `load` says what is missing. Nothing it shows speaks of Metal.
"""

from __future__ import annotations

import functools
import shutil
import types
from pathlib import Path
from typing import Any

import torch

NAME = "twin"


class Unavailable(Exception):
    """The device cannot be built here; the text says why."""


@functools.lru_cache(maxsize=None)
def load() -> Any:
    """Build and register the device, and return its controls.

    `take_fallbacks()` returns and forgets how often each operator was computed by the CPU; `lack({"aten::erfinv"})`
    takes operators away; `warn(True)` says so of each, in torch.mps's words; `mix(True)` takes operands of the CPU.

    Raises:
        Unavailable: no compiler, no ninja, no headers, or a torch whose interfaces are others.
    """
    for tool in ("c++", "ninja"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not there")
    from torch.utils import cpp_extension

    source = Path(__file__).parent / "device.cpp"
    try:
        controls: Any = cpp_extension.load(
            name=f"twin_{torch.__version__.split('+')[0].replace('.', '_')}", sources=[str(source)], verbose=False
        )
    except (RuntimeError, OSError, ImportError) as error:
        raise Unavailable(f"it does not build with torch {torch.__version__}: {error}") from error
    torch.utils.rename_privateuse1_backend(NAME)
    controls.register_hooks()
    torch._register_device_module(NAME, _module())
    torch.utils.generate_methods_for_privateuse1_backend()
    return controls


def _module() -> types.ModuleType:
    """Return what torch asks of `torch.twin`; its random numbers are the CPU's."""
    module: Any = types.ModuleType(f"torch.{NAME}")
    module.is_available = lambda: True
    module.is_initialized = lambda: True
    module._is_in_bad_fork = lambda: False
    module.device_count = lambda: 1
    module.current_device = lambda: 0
    module.synchronize = lambda device=None: None
    module.manual_seed = module.manual_seed_all = torch.default_generator.manual_seed
    module.get_rng_state = lambda device=None: torch.default_generator.get_state()
    module.set_rng_state = lambda state, device=None: torch.default_generator.set_state(state)
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    return module  # type: ignore[no-any-return]
