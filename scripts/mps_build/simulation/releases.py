"""What is known of the releases that can be simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.build.rehearsal.debian_source import DebianSource, debian_source
from mps_build.common.errors import SourceError

PATCHES = Path(__file__).parent / "patches"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """An official wheel: the Python that it is for, and the digest of its file."""

    python: str
    sha256: str


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


def find_release(version: str) -> Release:
    """Return what is known of a release.

    Raises:
        SourceError: it cannot be simulated, and why.
    """
    if version not in _RELEASES:
        raise SourceError(
            f"{version} cannot be simulated: PyTorch's MPS host code runs on Linux for {' and '.join(_RELEASES)} alone",
            hint="it needs its source and a Linux torch of exactly this version; Debian has those of these two alone",
        )
    return _RELEASES[version]
