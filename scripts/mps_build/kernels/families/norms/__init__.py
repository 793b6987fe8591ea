"""Layer, group and RMS norms."""
