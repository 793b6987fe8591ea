"""Trying a macOS recipe on Linux: a Debian root with PyTorch's build dependencies, and a Darwin that is only a stub."""
