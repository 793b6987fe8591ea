"""Recorded hosts: written, scrubbed, replayed, filed among the tests."""
