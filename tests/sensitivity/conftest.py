"""Finds the harness beside these tests; the suite's own options are not wanted here."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "device")]
