"""Tensors made of numbers alone: fills, ranges, identity matrices, triangles."""
