"""Sparse tensors: coalescing, products, softmax, pointers."""
