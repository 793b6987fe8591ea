"""The environment of every process that imports the torch under test: given by a list, never inherited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.cores import THREAD_VARIABLES

# What a process needs to find its home, its files, and an accelerator that the caller chose.
_PASSED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    *THREAD_VARIABLES,
)
# How an accelerator may be reached on a shared machine is its owner's to say.
_PASSED_PREFIXES = ("NCCL_", "NVSHMEM_", "TORCH_SYMM_MEM_")
# What changes the results or the route they take: it goes on record, passed or not.
_TELLING = (
    "PYTORCH_",
    "TORCH_",
    "OMP_",
    "MKL_",
    "KMP_",
    "OPENBLAS_",
    "VECLIB_",
    "CUDA_VISIBLE",
    "CUDA_LAUNCH",
    "NVIDIA_TF32",
    "CUBLAS_",
    "DYLD_",
    "LD_",
    "MTL_",
    "METAL_",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEnviron:
    """The whole environment of the children, and what of the caller's would have mattered."""

    variables: Mapping[str, str]
    kept: Mapping[str, str]
    removed: Mapping[str, str]


def suite_environ(caller: Mapping[str, str], *, overlay: Path | None = None) -> SuiteEnviron:
    """Return the environment for the suite.

    PYTORCH_ENABLE_MPS_FALLBACK above all must not get through (the CPU would be compared with
    itself), nor FAST_MATH, PREFER_METAL or watermarks: one wheel, one verdict.

    >>> made = suite_environ({"PATH": "/bin", "PYTORCH_ENABLE_MPS_FALLBACK": "1", "EDITOR": "vi"})
    >>> dict(made.removed), "EDITOR" in made.variables
    ({'PYTORCH_ENABLE_MPS_FALLBACK': '1'}, False)
    """
    variables = {name: value for name, value in caller.items() if name in _PASSED or name.startswith(_PASSED_PREFIXES)}
    telling = {name: value for name, value in sorted(caller.items()) if name.startswith(_TELLING)}
    variables |= {
        "PYTHONDONTWRITEBYTECODE": "1",  # nothing is written into a user's interpreter
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # a user's interpreter may hold any plugin
        "NVIDIA_TF32_OVERRIDE": "0",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }
    if overlay is not None:
        variables["PYTHONPATH"] = str(overlay)
    return SuiteEnviron(
        variables=variables,
        kept={name: value for name, value in telling.items() if variables.get(name) == value},
        removed={name: value for name, value in telling.items() if variables.get(name) != value},
    )
