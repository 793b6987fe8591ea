"""Softmax: in one kernel, by rows, or in parts that are put together."""
