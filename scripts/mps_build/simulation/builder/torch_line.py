"""How CMake is called for a Linux torch with MPS in its C++, and what enters it from outside. Pure.

PyTorch turns its CMake option USE_MPS off wherever no Apple SDK answers, and with it on it would want Objective-C++,
frameworks and xcrun. So only the macro is set: every C++ file is what it is on a Mac, and what the MPS back end
defines stays open in libtorch. Our library has it, and is loaded first.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mps_build.wheel_build.rehearsal.linux import RELOCATABLE, debian_variables, unoptimised_variables
from mps_build.wheel_build.wide_headers import C10, TORCH_CPU, TORCH_PYTHON, wide_header_lines

from .root import Root

# As the host code is compiled: names of templates, the macro, and no warnings, which nobody would read.
CXX_FLAGS = "-DUSE_MPS -fclang-abi-compat=17 -w -g0"
_OF_DEBIAN = {"USE_SYSTEM_LIBS", "ONNX_NAMESPACE"}
_OF_THE_BLAS = {"BLAS", "GENERIC_BLAS_LIBRARIES"}
# A file of kernels is compiled once for each kind of vectors; the plain kind is enough here.
_NO_VECTORS = {
    f"{language}_HAS_{kind}_{number}": "OFF"
    for language in ("C", "CXX")
    for kind in ("AVX", "AVX2", "AVX512")
    for number in (1, 2, 3)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchTree:
    """A copy of the user's tree, and where it is built.

    Attributes:
        is_debian: it has no third_party: the libraries are the root's.
    """

    tree: Path
    build: Path
    version: str
    is_debian: bool


def configure_words(root: Root, torch: TorchTree, overrides: Path) -> tuple[str, ...]:
    """Return the arguments of CMake."""
    llvm = root.clang.parent
    linker = f"--ld-path={root.path}/usr/lib/llvm-19/bin/ld.lld -Wl,--disable-new-dtags"
    # What is built is run: protoc, and what writes headers. It takes loader and libraries from the root.
    loader = f"-Wl,--dynamic-linker={root.loader},-rpath,{os.pathsep.join(map(str, root.library_folders))}"
    settings = {
        **{each.name: each.value for each in debian_variables() if torch.is_debian or each.name not in _OF_DEBIAN},
        **{each.name: each.value for each in unoptimised_variables()},
        **_NO_VECTORS,
        "BUILD_PYTHON": "ON",
        "BUILD_TEST": "OFF",
        "BUILD_FUNCTORCH": "OFF",
        "USE_NUMPY": "ON",
        "TORCH_BUILD_VERSION": torch.version,
        "Python_EXECUTABLE": str(root.python),
        "CMAKE_MAKE_PROGRAM": str(root.ninja),
        "CMAKE_C_COMPILER": str(root.clang),
        "CMAKE_CXX_COMPILER": str(llvm / "clang++"),
        "CMAKE_AR": str(llvm / "llvm-ar"),
        "CMAKE_RANLIB": str(llvm / "llvm-ranlib"),
        "CMAKE_C_FLAGS": "-w -g0",
        "CMAKE_CXX_FLAGS": CXX_FLAGS,
        # Nothing is taken from the caller's system, which may have the same libraries of another age.
        "CMAKE_SYSROOT": str(root.path),
        "CMAKE_FIND_ROOT_PATH": f"{root.path};{torch.tree};{torch.build}",
        # Where Debian's scripts, which nobody runs here, would choose one BLAS of several.
        "CMAKE_LIBRARY_PATH": ";".join(str(root.libraries / each) for each in ("blas", "lapack")),
        **{f"CMAKE_FIND_ROOT_PATH_MODE_{kind}": "ONLY" for kind in ("LIBRARY", "INCLUDE", "PACKAGE")},
        "CMAKE_SHARED_LINKER_FLAGS": linker,
        "CMAKE_MODULE_LINKER_FLAGS": linker,
        "CMAKE_EXE_LINKER_FLAGS": f"{linker} {loader} -Wl,--allow-shlib-undefined",
        "CMAKE_INSTALL_PREFIX": str(torch.tree / "torch"),
        "CMAKE_PROJECT_Torch_INCLUDE": str(overrides),
    }
    words = ("-G", "Ninja", "-S", str(torch.tree), "-B", str(torch.build))
    return (str(root.path / "usr/bin/cmake"), *words, *(f"-D{name}={value}" for name, value in settings.items()))


def environment(torch: TorchTree) -> dict[str, str]:
    """Return the variables that configuring and compiling see: nothing of the caller's decides what is built."""
    own = {each.name: each.value for each in debian_variables() if each.name in _OF_THE_BLAS}  # CMake asks them here
    # CMake looks in the root for what stands above the folders of PATH: /usr before the link /bin.
    fixed = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": os.environ.get("HOME", "/")}
    version = {"PYTORCH_BUILD_VERSION": torch.version, "PYTORCH_BUILD_NUMBER": "1"}
    return {**fixed, **own, **version, "NINJA_STATUS": "[%f/%t] "}


def override_lines(folder: Path) -> str:
    """Return the CMake lines: rpaths, and headers read once, which are written to `folder`."""
    return RELOCATABLE + wide_header_lines((C10, TORCH_CPU, TORCH_PYTHON), folder)
