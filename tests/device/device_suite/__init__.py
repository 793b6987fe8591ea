"""The device suite's frame: what a case is, how it runs on two devices, and how its answers are compared.

Imports torch and the standard library only, and works with torch from 1.12 and Python from 3.8.
"""

from __future__ import annotations

from .cases import Case, Cases
from .draws import Draw
from .runs import Bench, DeviceRun

__all__ = ["Bench", "Case", "Cases", "DeviceRun", "Draw"]
