"""Negative log likelihood and CTC."""
