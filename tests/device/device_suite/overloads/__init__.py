"""Calls of single overloads: the dtypes, layouts, ranks, sizes and arguments that no other case has."""
