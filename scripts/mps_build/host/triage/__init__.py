"""A failed log, or what a crashing MPS process wrote, to its known cause and the fix."""

from .device_texts import DeviceText, classify_device_text
from .diagnosis import Triage, explain
from .judging import Explained, WrittenBy, judge, render, render_causes, render_device_text

__all__ = [
    "DeviceText",
    "Explained",
    "Triage",
    "WrittenBy",
    "classify_device_text",
    "explain",
    "judge",
    "render",
    "render_causes",
    "render_device_text",
]
