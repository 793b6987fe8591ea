"""What is known of the releases that can be simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.build.rehearsal.debian_source import DebianSource, debian_source
from mps_build.common.errors import SourceError

PATCHES = Path(__file__).parent / "patches"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release of PyTorch.

    Attributes:
        cpu_files: sources of libtorch that ask USE_MPS, compiled again; below aten/src/ATen.
        patches: what a 64-bit Linux needs, in the order to apply them.
        wheel_python, wheel_sha256: the official macOS wheel whose Metal kernels run here.
    """

    version: str
    standard: str
    cpu_files: tuple[str, ...]
    patches: tuple[str, ...]
    wheel_python: str
    wheel_sha256: str

    @property
    def package(self) -> DebianSource:
        """Debian's packages of this release."""
        return debian_source(self.version)

    @property
    def patches_root(self) -> Path:
        """The folder of the patches."""
        return PATCHES / f"v{self.version}"


_RELEASES: Mapping[str, Release] = {
    "2.6.0": Release(
        version="2.6.0",
        standard="17",
        cpu_files=(
            *("native/DispatchStub.cpp", "native/Copy.cpp", "native/Convolution.cpp", "native/RNN.cpp"),
            # The last is what attention.cpp calls and libtorch does not export.
            *("native/transformers/attention.cpp", "native/transformers/sdp_utils_cpp.cpp"),
        ),
        patches=("int64-is-long.patch", "mps-without-macos.patch", "rnn-registered-once.patch"),
        wheel_python="3.12",
        wheel_sha256="9a610afe216a85a8b9bc9f8365ed561535c93e804c2a317ef7fabcc5deda0989",
    )
}


def find_release(version: str) -> Release:
    """Return what is known of a release.

    Raises:
        SourceError: it cannot be simulated, and why.
    """
    if version not in _RELEASES:
        raise SourceError(
            f"{version} cannot be simulated: its MPS back end was compiled for Linux for {', '.join(_RELEASES)} alone",
            hint="it needs a Linux torch of the same release (Debian's libtorch), and patches of its own",
        )
    return _RELEASES[version]
