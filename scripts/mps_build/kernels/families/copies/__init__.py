"""Copies of bytes: as they lie, row by row, into longer tensors, channels last."""
