"""A macOS recipe as Linux can try it: what stays, what is left out, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mps_build.common.environment import Toolchain
from mps_build.common.recipe.model import Gate, Recipe, Variable

# Variables that mean something to a Mac only.
_OF_A_MAC = frozenset(
    {
        "MACOSX_DEPLOYMENT_TARGET",
        "_PYTHON_HOST_PLATFORM",
        "ARCHFLAGS",
        "USE_PYTORCH_METAL_EXPORT",
        "USE_COREML_DELEGATE",
        "SDKROOT",
        "DEVELOPER_DIR",
    }
)
_NOT_IN_DEBIAN = "Debian's tree is without third_party, so what comes from there is off or the system's"
_SYSTEM_LIBRARIES: Mapping[str, tuple[str, str]] = {
    # setup.py takes any text for yes: without it, it would ask git for submodules that are not there.
    "USE_SYSTEM_LIBS": ("ON", _NOT_IN_DEBIAN),
    "ONNX_NAMESPACE": ("onnx", "the name in Debian's own libonnx"),
    "BLAS": ("Generic", "Debian's BLAS, whichever stands behind libblas"),
    "GENERIC_BLAS_LIBRARIES": ("blas", "the same"),
    "USE_CCACHE": ("0", "a rehearsal's figures are those of the compiler"),
    "USE_OPENMP": ("0", "clang without its libomp would link gcc's libgomp and fail at import"),
}
_OFF = (
    "USE_CUDA USE_ROCM USE_XPU USE_DISTRIBUTED USE_TENSORPIPE USE_GLOO USE_MPI USE_MKLDNN USE_KINETO USE_FBGEMM "
    "USE_XNNPACK USE_PYTORCH_QNNPACK USE_QNNPACK USE_NNPACK USE_ITT USE_NUMA USE_VULKAN "
    "USE_FLASH_ATTENTION USE_MEM_EFF_ATTENTION USE_MAGMA BUILD_BINARY"
)


def linux_recipe(recipe: Recipe, *, debian: bool) -> Recipe:
    """Return the recipe with the environment and the gate that a Linux rehearsal has.

    The gate asks for USE_MPS *off*: PyTorch's CMakeLists turns it off by itself wherever no Apple SDK answers.
    """
    kept = tuple(variable for variable in recipe.environment if variable.name not in _OF_A_MAC)
    gate = Gate(use_mps=False, cxx_standard=recipe.gate.cxx_standard, openmp=False if debian else recipe.gate.openmp)
    environment = overlaid(kept, debian_variables()) if debian else kept
    return recipe.model_copy(update={"environment": environment, "gate": gate})


def debian_variables() -> tuple[Variable, ...]:
    """Return what a build of Debian's tree sets."""
    off = (Variable(name=name, value="0", reason=_NOT_IN_DEBIAN) for name in _OFF.split())
    own = (Variable(name=name, value=value, reason=why) for name, (value, why) in _SYSTEM_LIBRARIES.items())
    return (*off, *own)


def split_variables(libtorch: Path) -> tuple[Variable, ...]:
    """Return what compiles the bindings alone, against a libtorch that is there, and fast."""
    rows = {
        "BUILD_LIBTORCHLESS": ("ON", "upstream's split build: the bindings only"),
        "LIBTORCH_LIB_PATH": (str(libtorch), "the libtorch they are built against"),
    }
    own = (Variable(name=name, value=value, reason=why) for name, (value, why) in rows.items())
    return (*own, *unoptimised_variables())


def unoptimised_variables() -> tuple[Variable, ...]:
    """Return what has files compiled at -O0: they are compiled to be tried."""
    rows = {
        # Release always appends -O2 (cmake/public/utils.cmake), whatever the flags say; this type does not.
        "CMAKE_BUILD_TYPE": ("MinSizeRel", "the one build type whose optimisation level can be given"),
        "CMAKE_C_FLAGS_MINSIZEREL": ("-O0 -DNDEBUG", "a rehearsal is compiled, not measured"),
        "CMAKE_CXX_FLAGS_MINSIZEREL": ("-O0 -DNDEBUG", "a rehearsal is compiled, not measured"),
    }
    return tuple(Variable(name=name, value=value, reason=why) for name, (value, why) in rows.items())


def overlaid(below: Iterable[Variable], above: Iterable[Variable]) -> tuple[Variable, ...]:
    """Return both, where a name that both have is `above`'s."""
    return tuple({variable.name: variable for variable in (*below, *above)}.values())


def clang_toolchain(*, against_gcc: bool) -> Toolchain:
    """Return clang with a fast linker.

    Args:
        against_gcc: what it compiles is linked with what gcc made; clang from 18 on names some templates otherwise
            (https://github.com/llvm/llvm-project/issues/102443).
    """
    variables = {"CC": "clang", "CXX": "clang++", "LDFLAGS": "-fuse-ld=mold"}
    reasons = {"CC": "reads headers fastest", "CXX": "reads headers fastest", "LDFLAGS": "links in a second"}
    if against_gcc:
        variables["CXXFLAGS"] = "-fclang-abi-compat=17"
        reasons["CXXFLAGS"] = "names templates as the gcc that made libtorch does"
    return Toolchain(name="clang", variables=variables, reasons=reasons)


# Debian gives libraries versions and no rpaths; a wheel needs them by one name, beside each other.
RELOCATABLE = """\
set(HAVE_SOVERSION OFF CACHE BOOL "one copy of each library in the wheel" FORCE)
function(mps_build_relocatable)
  foreach(each IN ITEMS torch_python shm nnapi_backend torch_global_deps torch torch_cpu c10)
    if(TARGET ${each})
      get_target_property(imported ${each} IMPORTED)
      if(NOT imported)
        set_target_properties(${each} PROPERTIES INSTALL_RPATH "$ORIGIN")
      endif()
    endif()
  endforeach()
endfunction()
cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL mps_build_relocatable)
"""
