"""The two build back ends of PyTorch as values: where they build, and what is handed to them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

Backend = Literal["setuptools", "scikit-build-core"]


def build_folder(backend: Backend, *, source: Path, build: Path) -> Path:
    """Return where the back end builds: setup.py knows only build/ beside itself."""
    return source / "build" if backend == "setuptools" else build


def forwarded(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that every PyTorch build hands to CMake: USE_*, BUILD_*, CMAKE_* (not CMake's own)."""
    own = {"CMAKE_BUILD_PARALLEL_LEVEL", "CMAKE_GENERATOR", "CMAKE_ARGS", "CMAKE_BUILD_TYPE"}
    names = sorted(name for name in environ if name.startswith(("USE_", "BUILD_", "CMAKE_")) and name not in own)
    return {name: environ[name] for name in names}


def config_settings(*, python: Path, build: Path, environ: Mapping[str, str], overrides: Path) -> dict[str, str]:
    """Return what scikit-build-core is given: the folder that was configured, and the same values as there."""
    defines = forwarded(environ) | {
        "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": str(overrides),
        "Python_EXECUTABLE": str(python),
    }
    return {"build-dir": str(build), **{f"cmake.define.{name}": value for name, value in defines.items()}}
