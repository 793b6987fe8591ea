"""A static package index: wheels read, matched into sets, kept or let go, and written as pages."""
