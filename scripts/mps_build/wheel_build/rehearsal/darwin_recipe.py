"""A macOS recipe configured for macOS arm64 on Linux: what the stub SDK makes of its environment and gate."""

from __future__ import annotations

from mps_build.common.environment import Toolchain
from mps_build.common.recipe.model import Recipe, Variable

from .darwin_sdk import DarwinSdk
from .linux_recipe import debian_variables, overlaid, unoptimised_variables

# setup.py's own Darwin branches look at the host; CMake gets its target from the settings below.
_OF_THE_HOST = frozenset({"_PYTHON_HOST_PLATFORM", "ARCHFLAGS", "MACOSX_DEPLOYMENT_TARGET"})


def darwin_recipe(recipe: Recipe, sdk: DarwinSdk) -> Recipe:
    """Return the recipe with an environment that CMake reads as a Mac's, and the gate as it is but for OpenMP."""
    kept = tuple(variable for variable in recipe.environment if variable.name not in _OF_THE_HOST)
    compilers = {f"CMAKE_{language}_COMPILER": str(sdk.tools / "cc") for language in ("C", "OBJC")}
    compilers |= {f"CMAKE_{language}_COMPILER": str(sdk.tools / "c++") for language in ("CXX", "OBJCXX")}
    rows = {
        "CMAKE_SYSTEM_NAME": ("Darwin", "the system that is built for"),
        "CMAKE_SYSTEM_PROCESSOR": ("arm64", "its processor"),
        # CMAKE_OSX_ARCHITECTURES stays unset, as on a Mac: with it the tree wants to build its own protoc
        # (CMakeLists.txt:791-823 of 2.6.0).
        "CMAKE_OSX_SYSROOT": (str(sdk.sdk), "the stub SDK"),
        "CMAKE_OSX_DEPLOYMENT_TARGET": (recipe.deployment_target, "the recipe's"),
        "CMAKE_PREFIX_PATH": (f"{sdk.stubs};/usr", "arm64 stand-ins before the host's libraries"),
        "fmt_ROOT": ("/usr/lib/x86_64-linux-gnu/cmake/fmt", "a Darwin target does not look there by itself"),
    }
    own = [Variable(name=name, value=value, reason=why) for name, (value, why) in rows.items()]
    own += [Variable(name=name, value=value, reason="zig, for macOS arm64") for name, value in compilers.items()]
    # BLAS is Accelerate here, as on a Mac.
    system = [variable for variable in debian_variables() if "BLAS" not in variable.name]
    gate = recipe.gate.model_copy(update={"openmp": False})
    return recipe.model_copy(
        update={"environment": overlaid(kept, (*system, *unoptimised_variables(), *own)), "gate": gate}
    )


def zig_toolchain(sdk: DarwinSdk) -> Toolchain:
    """Return zig by its wrappers; xcrun and the LLVM tools by PATH."""
    return Toolchain(name="zig", path=(str(sdk.tools),))
