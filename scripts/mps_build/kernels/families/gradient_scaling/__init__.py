"""The steps of a gradient scaler."""
