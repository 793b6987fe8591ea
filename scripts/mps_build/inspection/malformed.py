"""The error of every reader of foreign bytes."""

from __future__ import annotations


class Malformed(Exception):
    """The bytes are not the structure they claim to be."""
