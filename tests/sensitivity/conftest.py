"""Finds the harness beside these tests; the suite's own options are not wanted here."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
