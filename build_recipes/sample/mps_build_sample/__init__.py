"""A small library with PyTorch's build contract; `python -m mps_build_sample` says what it can do here."""

from mps_build_sample._C import apply, fingerprint, mps_built, operators, scale_on_gpu
from mps_build_sample.version import __version__, git_version

__all__ = ["__version__", "apply", "fingerprint", "git_version", "mps_built", "operators", "scale_on_gpu"]
