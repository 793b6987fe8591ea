"""Binders: from a kernel and a case to programs. Pure functions, shared by the families that contracts name."""
