"""Assertions on the device."""
