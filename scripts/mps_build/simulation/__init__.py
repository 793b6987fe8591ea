"""The MPS back end of PyTorch on Linux: its own host code over a software Metal. Nothing of it runs on a Mac."""

DEFAULT_MACOS = "15.2"  # what a simulated device answers as
