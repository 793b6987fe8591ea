"""What is known of the releases that can be simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from mps_build.common.errors import SourceError
from mps_build.wheel_build.mm.tree import MpsTree
from mps_build.wheel_build.rehearsal.debian_source import SOURCES, DebianSource, debian_source

PATCHES = Path(__file__).parent / "patches"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """An official wheel: the Python that it is for, and the digest of its file; None: what the index says of it."""

    python: str | None
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release of PyTorch.

    Attributes:
        root: Debian's packages that a simulation of it is built and run with, with all that they depend on.
        cpu_files: sources of libtorch that ask USE_MPS, compiled again; below aten/src/ATen.
        patches: what a 64-bit Linux needs, in the order to apply them.
        flags: what else its host code is compiled with.
        shared_header: what all its operators' files include, read once for them; below aten/src.
        tree_version: what version.txt says, where it is another: upstream does not raise it for a patch release.
        wheel: the official macOS wheel whose Metal kernels run here; None: the release compiles all of them from text.
        is_built: Linux's torch is built from the user's tree, with MPS in its C++; else it is Debian's, without.
        userland: whose Python and libraries the root has; None: those of Debian's own package of this release.
    """

    version: str
    standard: str
    root: tuple[str, ...]
    cpu_files: tuple[str, ...]
    patches: tuple[str, ...]
    flags: tuple[str, ...] = ()
    shared_header: str | None = None
    tree_version: str | None = None
    wheel: Wheel | None = None
    is_built: bool = False
    userland: DebianSource | None = None

    @property
    def home(self) -> DebianSource:
        """The Debian that the root is of."""
        return self.userland or self.package

    @property
    def package(self) -> DebianSource:
        """Debian's packages of this release."""
        return debian_source(self.version)

    @property
    def patches_root(self) -> Path:
        """The folder of the patches."""
        return PATCHES / f"v{self.version}"


# clang 19 is in both suites; the C++ library is the one that a suite's own compiler has.
_TOOLS = ("clang-19", "lld-19", "ninja-build", "patchelf")
_TORCH = ("python3-torch", "libtorch-dev", "libcpuinfo-dev", "python3-pytest", "python3-pip", "python3-psutil")

_RELEASES: Mapping[str, Release] = {
    "2.6.0": Release(
        version="2.6.0",
        standard="17",
        root=(*_TOOLS, "libstdc++-14-dev", "libc6-dev", "libfmt-dev", *_TORCH),
        cpu_files=(
            *("native/DispatchStub.cpp", "native/Copy.cpp", "native/Convolution.cpp", "native/RNN.cpp"),
            # The last is what attention.cpp calls and libtorch does not export.
            *("native/transformers/attention.cpp", "native/transformers/sdp_utils_cpp.cpp"),
        ),
        patches=("int64-is-long.patch", "mps-without-macos.patch", "rnn-registered-once.patch"),
        wheel=Wheel(python="3.12", sha256="9a610afe216a85a8b9bc9f8365ed561535c93e804c2a317ef7fabcc5deda0989"),
    ),
    "1.13.1": Release(
        version="1.13.1",
        standard="17",
        root=(*_TOOLS, "libstdc++-12-dev", "libc6-dev", "libfmt-dev", *_TORCH, "python3-sympy"),
        cpu_files=(
            *("Context.cpp", "cpu/FlushDenormal.cpp", "native/DispatchStub.cpp", "native/Copy.cpp"),
            *("native/Convolution.cpp", "native/Pooling.cpp", "native/RNN.cpp"),
        ),
        patches=(
            *("int64-is-long.patch", "mps-without-macos.patch", "rnn-registered-once.patch"),
            "block-not-lambda.patch",
        ),
        shared_header="ATen/mps/MPSStream.h",
        tree_version="1.13.0",
        # As the tree itself is compiled; and a macro of Apple's mach/vm_page_size.h that no later release asks.
        flags=("-Wno-narrowing", "-Dround_page(size)=(((size)+4095ul)&~4095ul)"),
    ),
}


# What a tree is built with, and what it is run with.
_TO_BUILD = ("clang-19", "lld-19", "llvm-19", "ninja-build", "patchelf", "cmake")
_TO_RUN = (
    *("libc6-dev", "python3-dev", "python3-yaml", "python3-numpy", "python3-setuptools", "python3-typing-extensions"),
    *("python3-pytest", "python3-pip", "python3-psutil", "python3-sympy", "python3-networkx", "python3-jinja2"),
    *("python3-fsspec", "python3-filelock", "python3-packaging", "python3-requests", "libblas-dev", "liblapack-dev"),
)
_UTILITIES = "ATen/native/mps/OperationUtils.h"  # what all operators of the host code include
# What third_party has, for Debian's tree, which has none.
_THIRD_PARTY = (
    *("libcpuinfo-dev", "libcpp-httplib-dev", "libeigen3-dev", "libfmt-dev", "libfp16-dev", "libflatbuffers-dev"),
    *("flatbuffers-compiler-dev", "flatbuffers-compiler", "libfxdiv-dev", "libonnx-dev", "libprotobuf-dev"),
    *("libprotoc-dev", "libpsimd-dev", "libpthreadpool-dev", "libsleef-dev", "nlohmann-json3-dev"),
    *("protobuf-compiler", "pybind11-dev", "python3-pybind11"),
)
# The first release that runs on trixie's Python 3.13; older ones are built with bookworm's 3.11.
_NEWER, _LIBRARY = Version("2.6"), {"trixie": "libstdc++-14-dev", "bookworm": "libstdc++-12-dev"}


def find_release(version: str) -> Release:
    """Return what is known of a release that Debian has a torch of.

    Raises:
        SourceError: it cannot be simulated so, and what is needed.
    """
    if version not in _RELEASES:
        raise SourceError(
            f"{version} cannot be simulated over Debian's torch, which is known here for {' and '.join(_RELEASES)}",
            hint=f"a torch is built from your clone, once, in about an hour on two cores: "
            f"nox -s simulate -- v{version} --source ~/pytorch",
        )
    return _RELEASES[version]


def has_debian_torch(version: str) -> bool:
    """Whether Linux's torch of a release is Debian's, where nobody says otherwise."""
    return version in _RELEASES


def built_release(version: str, tree: MpsTree, *, is_debian: bool) -> Release:
    """Return what is read from a tree whose own torch is built.

    Args:
        is_debian: the tree is Debian's source package, without third_party.
    """
    suite = SOURCES["2.6.0" if Version(version) >= _NEWER else "1.13.1"]
    known = _RELEASES.get(version)
    return Release(
        version=version,
        standard=tree.standard,
        root=(*_TO_BUILD, _LIBRARY[suite.suite], *_TO_RUN, *(_THIRD_PARTY if is_debian else ())),
        cpu_files=(),
        patches=(),
        flags=tuple(flag for flag in tree.flags if flag not in ("-DUSE_MPS", "-fno-objc-arc")),
        wheel=known.wheel if known else Wheel(python=None, sha256=None),
        shared_header=_UTILITIES if (tree.root / "aten/src" / _UTILITIES).is_file() else None,
        is_built=True,
        userland=suite,
    )
