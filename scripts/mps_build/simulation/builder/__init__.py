"""Builds the library that a Linux torch needs to have an `mps` device."""
