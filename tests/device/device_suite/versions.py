"""Which torch this is, and what it lacks."""

from __future__ import annotations

import re

import torch


def parse_release(text: str) -> tuple[int, int]:
    """Return (major, minor) of a version such as `2.6.0+cpu` or `2.16.0.dev20260915`.

    >>> parse_release("2.10.0.dev1")
    (2, 10)
    """
    found = re.match(r"(\d+)\.(\d+)", text)
    if found is None:
        raise ValueError(f"not a version of torch: {text!r}")
    return int(found.group(1)), int(found.group(2))


TORCH = parse_release(torch.__version__)


def is_at_least(release: str) -> bool:
    """Say whether this torch is `release` ("2.1") or newer."""
    return parse_release(release) <= TORCH
