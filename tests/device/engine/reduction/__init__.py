"""A failing case as a few public calls: recorded, cut down to what still fails, and written as a script."""
