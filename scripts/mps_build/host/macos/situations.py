"""The error situations of Apple's developer tools as one table; a cause stands before what it causes."""

from __future__ import annotations

from collections.abc import Mapping

from .metal_situations import METAL
from .situation import Situation
from .xcode_situations import ROOT_CAUSES, XCODE

SITUATIONS: tuple[Situation, ...] = (*ROOT_CAUSES, *METAL, *XCODE)
BY_ID: Mapping[str, Situation] = {situation.id: situation for situation in SITUATIONS}
