"""Convolutions by kernels of their own, and their weights rearranged."""
