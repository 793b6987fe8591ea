"""Reflection, replication and constant pads, and their gradients."""
