"""The Python and the torch under test, and whether a verdict is possible there."""
