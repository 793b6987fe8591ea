"""A macOS recipe as the whole rehearsal builds it: shaders as source, OpenMP on, what Debian's tree lacks off."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mps_build.common.recipe.model import Recipe, Variable

from ...build_request import gate_of
from ...compiler_cache.launcher import launchers
from ..darwin_recipe import darwin_recipe
from ..darwin_sdk import DarwinSdk
from ..linux_recipe import overlaid

LABEL = "rehearsal.linux"
_UNOPTIMISED = "-O0 -g0 -DNDEBUG"
# Darwin's own number is macOS's less 9 up to macOS 15 (Darwin 24).
_DARWIN_BEHIND_MACOS = 9

# Debian gives libraries versions and blanks their rpaths; the official ones have one name and look beside themselves.
RELOCATABLE = """\
set(HAVE_SOVERSION OFF CACHE BOOL "one copy of each library in the wheel" FORCE)
# Not `-Xpreprocessor -fopenmp`, CMake's way for Apple's clang: ccache (4.11.2) takes both words away.
set(OpenMP_C_FLAGS "{openmp}" CACHE STRING "the declared one's header" FORCE)
set(OpenMP_CXX_FLAGS "{openmp}" CACHE STRING "the declared one's header" FORCE)
set(OpenMP_C_LIB_NAMES libomp CACHE STRING "" FORCE)
set(OpenMP_CXX_LIB_NAMES libomp CACHE STRING "" FORCE)
set(OpenMP_libomp_LIBRARY "{libomp}" CACHE STRING "the declared one" FORCE)
function(mps_build_relocatable)
  foreach(each IN ITEMS torch_python shm nnapi_backend torch_global_deps torch torch_cpu c10)
    if(TARGET ${{each}})
      get_target_property(imported ${{each}} IMPORTED)
      if(NOT imported)
        set_target_properties(${{each}} PROPERTIES INSTALL_RPATH "@loader_path" INSTALL_RPATH_USE_LINK_PATH OFF)
      endif()
    endif()
  endforeach()
  if(TARGET torch_cpu)
    # setup.py looks along the rpaths for libomp, puts it beside the libraries and removes the folder's rpath.
    set_property(TARGET torch_cpu APPEND PROPERTY INSTALL_RPATH "{libomp_folder}")
    # Apple's Foundation brings both along; the stub has its own names only.
    target_link_options(torch_cpu PRIVATE "-Wl,-weak-lobjc" "SHELL:-framework CoreFoundation")
  endif()
  # At -O0 the names that this one registers are made before another call, where the audit's reader cannot see them.
  if(TARGET torch_cpu)
    set_property(SOURCE "${{CMAKE_SOURCE_DIR}}/aten/src/ATen/mps/MPSFallback.mm" TARGET_DIRECTORY torch_cpu
      APPEND PROPERTY COMPILE_OPTIONS "-O1")
  endif()
endfunction()
cmake_language(DEFER DIRECTORY "${{CMAKE_SOURCE_DIR}}" CALL mps_build_relocatable)
"""


def rehearsal_version(version: str) -> str:
    """Return the version of a wheel that never saw a Mac.

    >>> rehearsal_version("2.6.0")
    '2.6.0+rehearsal.linux'
    """
    return f"{version}+{LABEL}"


def darwin_number(macos: str) -> str:
    """Return the version of Darwin below a macOS release: CMake asks for it where it compiles for another system.

    >>> darwin_number("13.0")
    '22.0.0'
    """
    return f"{int(macos.split('.', maxsplit=1)[0]) + _DARWIN_BEHIND_MACOS}.0.0"


def relocatable_lines(libomp: Path) -> str:
    """Return the CMake lines for libraries of one name with relative rpaths, and for the declared OpenMP."""
    folder = libomp / "lib"
    return RELOCATABLE.format(
        openmp=f"-fopenmp=libomp -I{libomp / 'include'}", libomp=folder / "libomp.dylib", libomp_folder=folder
    )


def whole_recipe(recipe: Recipe, sdk: DarwinSdk, *, libomp: Path) -> Recipe:
    """Return the recipe with the environment and the gate of a whole build on Linux.

    The gate is the recipe's with shaders as source (`--allow-jit-shaders`): no Metal compiler is to be had here.
    """
    plain = darwin_recipe(recipe, sdk)
    flags = {f"CMAKE_{language}_FLAGS_MINSIZEREL": _UNOPTIMISED for language in ("C", "CXX", "OBJC", "OBJCXX")}
    rows: Mapping[str, tuple[str, str]] = {
        **{name: (value, "compiled to be compared, not measured") for name, value in flags.items()},
        "CMAKE_SYSTEM_VERSION": (darwin_number(recipe.deployment_target), "without it CMake has no rpaths for Darwin"),
        # On a Mac FindBLAS runs a program to learn this of Accelerate; in a cross build it asks this variable.
        "PYTORCH_BLAS_USE_CBLAS_DOT": ("ON", "Accelerate's dot products are called by their C names, as on a Mac"),
        "USE_OPENMP": ("1" if recipe.gate.openmp else "0", "the recipe's; libomp is the declared one"),
        "CMAKE_PREFIX_PATH": (f"{libomp};{sdk.stubs};/usr", "arm64 stand-ins before the host's libraries"),
    }
    own = [Variable(name=name, value=value, reason=why) for name, (value, why) in rows.items()]
    gate = gate_of(recipe.gate, allow_jit_shaders=True, without_metal4=True)
    return recipe.model_copy(update={"environment": overlaid(plain.environment, own), "gate": gate})


def cache_variables(launcher: Path, *, store: Path, compiler: str) -> dict[str, str]:
    """Return how ccache stands before zig: of one checkout, since a precompiled header names its own folder.

    Args:
        compiler: what identifies the compiler; the program that CMake calls is a script.
    """
    return {
        **launchers(launcher),
        "CCACHE_DIR": str(store),
        "CCACHE_BASEDIR": "",
        "CCACHE_SLOPPINESS": "pch_defines,time_macros",
        "CCACHE_COMPILERTYPE": "clang",
        "CCACHE_COMPILERCHECK": f"string:{compiler}",
        "CCACHE_DEPEND": "1",
    }
