"""Builds PyTorch wheels with Metal (MPS) for Apple silicon, and proves them."""

__version__ = "0.1.0"
