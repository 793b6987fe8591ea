"""This machine as the device: the C runtime, guarded memory, and launches."""
