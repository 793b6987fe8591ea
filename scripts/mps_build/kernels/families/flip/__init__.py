"""Tensors turned around along dimensions."""
