"""Builds PyTorch wheels with Metal (MPS) for Apple silicon, and verifies them."""

__version__ = "0.2.0"
