"""A failed log, or what a crashing MPS process wrote, to its known cause and the fix."""

from .device_texts import DeviceText, classify_device_text
from .diagnosis import Triage, explain
from .render import render, render_device_text

__all__ = ["DeviceText", "Triage", "classify_device_text", "explain", "render", "render_device_text"]
