"""What a profile changes: `release` how headers are read, `develop` also what is built less of; neither MPS, nor -O."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mps_build.common.recipe.model import Recipe

from .options import Profile
from .wide_headers import TORCH_CPU, TORCH_PYTHON, wide_header_lines

# Parts that nobody who changes kernels waits for; each can be had back with --set.
_LEFT_OUT: Mapping[str, str] = {
    "BUILD_TEST": "0",
    "INSTALL_TEST": "0",
    "USE_DISTRIBUTED": "0",
    "USE_KINETO": "0",
    "USE_COREML_DELEGATE": "0",
    "USE_PYTORCH_METAL_EXPORT": "0",
}
# A precompiled header names its own checkout's folder. ccache with a base_dir hands it to another checkout, whose next
# uncached file then fails, or reads the first checkout's headers: docs/build/faster_builds.md. An empty
# value also beats a base_dir in ccache's configuration file.
_ONE_CHECKOUT: Mapping[str, str] = {"CCACHE_BASEDIR": "", "CCACHE_SLOPPINESS": "pch_defines,time_macros"}


def profile_lines(profile: Profile, folder: Path, *, cached: bool) -> str:
    """Return what the profile adds to overrides.cmake; its headers are copied to `folder`.

    In `release` the header's templates stay uninstantiated, so that an object holds what it would hold without it
    (docs/build/faster_builds.md has the comparison). Behind a compiler cache it has no header: hits across checkouts
    and hosts are worth more, and the two do not go together.
    """
    if profile == "release" and cached:
        return ""
    instantiate = "ON" if profile == "develop" else "OFF"
    setting = f'set(CMAKE_PCH_INSTANTIATE_TEMPLATES {instantiate} CACHE BOOL "" FORCE)\n'
    return setting + wide_header_lines((TORCH_CPU, TORCH_PYTHON), folder)


def profile_settings(profile: Profile, recipe: Recipe) -> dict[str, str]:
    """Return the variables that the profile sets over the recipe's; --set wins over both."""
    if profile != "develop":
        return {}
    is_torch = recipe.wheel.distribution == "torch" and recipe.source.kind == "git"
    return {**(_LEFT_OUT if is_torch else {}), **_ONE_CHECKOUT}
