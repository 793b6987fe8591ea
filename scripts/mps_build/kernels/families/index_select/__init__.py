"""Slices that indices choose."""
