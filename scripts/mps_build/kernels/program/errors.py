"""What a binder raises."""

from __future__ import annotations


class NotBound(Exception):
    """A contract knows the family but not this member, with the reason."""


class WrongBinding(Exception):
    """A contract does not fit the kernel it was matched with: its fault, not the kernel's."""
