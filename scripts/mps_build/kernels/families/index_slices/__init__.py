"""Slices that an index or a mask chooses: selected, copied, filled, added, reduced into."""
