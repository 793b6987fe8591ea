"""The MPS back end of PyTorch on Linux: its own host code over a software Metal. Nothing of it runs on a Mac."""
