"""Fused optimizers, and the steps of a gradient scaler."""
