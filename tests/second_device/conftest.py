"""Finds the device suite and its planting tools beside these tests."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "sensitivity"), str(HERE.parent / "device")]
