"""LU: blocks solved, updated, exchanged; pivots; small inverses."""
