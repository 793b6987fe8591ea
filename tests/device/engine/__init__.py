"""The machinery of the device suite: what a case is, how it is drawn and run on two devices, how answers are compared.

Imports torch and the standard library only, and works with torch from 1.12 and Python from 3.8.
"""

from __future__ import annotations

from .cases import Case, Cases
from .draws import Draw
from .runs import Bench, DeviceRun

__all__ = ["Bench", "Case", "Cases", "DeviceRun", "Draw"]
