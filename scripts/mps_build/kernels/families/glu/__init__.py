"""Gated linear units."""
