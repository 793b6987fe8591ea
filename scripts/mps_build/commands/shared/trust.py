"""The option of every command that runs something of a wheel that an index serves."""

from __future__ import annotations

import argparse

_SERVED = "also run what the package index serves without a sha256 (a file is yours)"


def add_trust(parser: argparse.ArgumentParser, text: str = _SERVED) -> None:
    """Add the option; where it is given, what the index gives no hash of may run (`limits_of_run`)."""
    parser.add_argument("--trust", action="store_true", help=text)
