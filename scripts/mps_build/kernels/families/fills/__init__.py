"""One value into all elements."""
