"""Gradients of distances."""
