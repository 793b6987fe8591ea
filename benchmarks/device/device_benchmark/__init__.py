"""Times training and inference on a device against the CPU; needs torch (1.12 or newer) and the standard library."""
