"""The option of every command that runs something of a wheel that an index serves."""

from __future__ import annotations

import argparse


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add `--trust`."""
    parser.add_argument(
        "--trust", action="store_true", help="also run what the package index serves without a sha256 (a file is yours)"
    )
